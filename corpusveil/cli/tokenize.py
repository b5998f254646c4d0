"""``corpusveil tokenize``: split a corpus into words or collocations."""

from __future__ import annotations

from corpusveil.cli.derived import derived
from corpusveil.cli.options import ProgressOption
from corpusveil.pipelines.settings import Settings


@derived("tokenize")
def tokenize(settings: Settings, progress: ProgressOption = "auto") -> None:
    """Tokenize a corpus: shards of tokens for 'corpusveil train', as Parquet and with a sentence per line.

    Example: corpusveil tokenize 'c4/*.json.gz' --tokenizer gst --collocations collocations/c4 --output tokens/c4-gst
    """
    from corpusveil.cli.progress import Shown
    from corpusveil.pipelines import collocations

    collocations.tokenize(settings, Shown(progress))

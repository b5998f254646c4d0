"""``corpusveil train``: train word vectors on a tokenized corpus."""

from __future__ import annotations

from corpusveil.cli.derived import derived
from corpusveil.cli.options import ProgressOption
from corpusveil.pipelines.settings import Settings


@derived("train")
def train(settings: Settings, progress: ProgressOption = "auto") -> None:
    """Train word2vec: tokens in, vectors out; resumable, and deterministic with one thread.

    Example: corpusveil train --tokens tokens/c4-gst --output vectors/c4-gst --threads 6
    """
    from corpusveil.cli.progress import Shown
    from corpusveil.pipelines import collocations

    collocations.train(settings, Shown(progress))

"""``corpusveil count``: count the n-grams of a corpus."""

from __future__ import annotations

from corpusveil.cli.derived import derived
from corpusveil.cli.options import ProgressOption
from corpusveil.pipelines.settings import Settings


@derived("count")
def count(settings: Settings, progress: ProgressOption = "auto") -> None:
    """Count the n-grams of a corpus, within sentences, lower-cased; exact, in bounded memory, and resumable.

    Example: corpusveil count 'c4/*.json.gz' --output counts/c4 --engine spark
    """
    from corpusveil.cli.progress import Shown
    from corpusveil.pipelines import collocations

    collocations.count(settings, Shown(progress))

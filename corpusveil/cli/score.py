"""``corpusveil score``: find the collocations among counted n-grams."""

from __future__ import annotations

from corpusveil.cli.derived import derived
from corpusveil.cli.options import ProgressOption
from corpusveil.pipelines.settings import Settings


@derived("score")
def score(settings: Settings, progress: ProgressOption = "auto") -> None:
    """Score n-grams by how much more often than by chance their words stand together.

    Example: corpusveil score --counts counts/c4 --output collocations/c4 --min-count 20
    """
    from corpusveil.cli.progress import Shown
    from corpusveil.pipelines import collocations

    collocations.score(settings, Shown(progress))

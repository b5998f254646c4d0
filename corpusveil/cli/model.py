"""``corpusveil model``: make a language model from n-gram counts."""

from __future__ import annotations

from corpusveil.cli.derived import derived
from corpusveil.cli.options import ProgressOption
from corpusveil.pipelines.settings import Settings


@derived("model")
def model(settings: Settings, progress: ProgressOption = "auto") -> None:
    """Make a language model from n-gram counts: Kneser-Ney trigrams, which 'denoise' reads.

    Example: corpusveil model --counts counts/c4 --output models/c4 --min-trigram 2
    """
    from corpusveil.cli.progress import Shown
    from corpusveil.pipelines.model import build

    build(settings, Shown(progress))

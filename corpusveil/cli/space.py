"""``corpusveil space``: build a space from word vectors."""

from __future__ import annotations

from corpusveil.cli.derived import derived
from corpusveil.cli.options import ProgressOption
from corpusveil.pipelines.settings import Settings


@derived("space")
def space(settings: Settings, progress: ProgressOption = "auto") -> None:
    """Build a space: vocabulary, vectors and one-dimensional lists, hashed and frozen.

    Example: corpusveil space --vectors vectors.txt.gz --output spaces/glove
    """
    from corpusveil.cli.progress import Shown
    from corpusveil.pipelines.space import build

    build(settings, Shown(progress))

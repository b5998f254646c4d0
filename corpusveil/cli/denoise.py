"""``corpusveil denoise``: make a release readable, with a model of public text."""

from __future__ import annotations

from corpusveil.cli.derived import derived
from corpusveil.cli.options import ProgressOption
from corpusveil.pipelines.settings import Settings


@derived("denoise")
def denoise(settings: Settings, progress: ProgressOption = "auto") -> None:
    """Replace a release's words by their likeliest originals. Reads no private data and spends nothing.

    Example: corpusveil denoise released --space spaces/c4 --model models/c4 --output readable
    """
    from corpusveil.cli.progress import Shown
    from corpusveil.pipelines.denoise import run

    run(settings, Shown(progress))

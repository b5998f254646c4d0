"""``corpusveil evaluate release``: the command; that of studies is in their package."""

from __future__ import annotations

from corpusveil.cli.derived import derived
from corpusveil.pipelines.settings import Settings


@derived("evaluate release")
def release(settings: Settings) -> None:
    """Compare a release with its original: a page, JSON and CSV. They show original text, so they are private.

    Example: corpusveil evaluate release reviews.parquet private/reviews --space spaces/glove --label stars
    --attribute gender --output evaluation
    """
    from corpusveil.cli.progress import Terminal
    from corpusveil_evaluate.report.beside_original import run

    run(settings, Terminal("none"))

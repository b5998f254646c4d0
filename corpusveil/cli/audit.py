"""``corpusveil audit``: check a guarantee, or choose epsilon."""

from __future__ import annotations

import typer

from corpusveil.cli.derived import derived
from corpusveil.pipelines.settings import Settings


@derived("audit")
def audit(settings: Settings) -> None:
    """Check a guarantee, on exact laws if there are any, otherwise on samples. Exit status 1 if it is refuted.

    Example: corpusveil audit --space spaces/glove --mechanism santext --epsilon 5

    Example: corpusveil audit --space spaces/glove --mechanism ring-geometric --mechanism santext --curve --output curve

    Example: corpusveil audit --space spaces/glove --mechanism ring-geometric --epsilon 10 --per document --document 500
    """
    from corpusveil.cli.progress import Shown
    from corpusveil.evaluation.attacks.audits import run

    if getattr(run(settings, Shown("none")), "refuted", False):
        raise typer.Exit(1)

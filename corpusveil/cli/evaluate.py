"""``corpusveil evaluate``."""

from __future__ import annotations

import typer

from corpusveil.cli.derived import Grouped, derived
from corpusveil.errors import PackageError
from corpusveil.pipelines.settings import Settings

COMMAND = ("evaluate", "Measure the privacy and the utility of a release.")

app = typer.Typer(
    help="Measure what a release discloses and how useful it still is.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


@app.command("release", cls=Grouped)
@derived("evaluate release")
def release(settings: Settings) -> None:
    """Compare a release with its original: a page, JSON and CSV. They show original text, so they are private.

    Example: corpusveil evaluate release reviews.parquet private/reviews --space spaces/glove --label stars
    --attribute gender --epsilon 1 --epsilon 5 --output evaluation
    """
    from corpusveil.cli.progress import Terminal
    from corpusveil.evaluation.report.beside_original import run

    run(settings, Terminal("none"))


@app.command("study", context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
def study() -> None:
    """Run a published study (needs corpusveil-studies, whose command replaces this one)."""
    raise PackageError("The published studies are a package of their own: pip install corpusveil-studies.")

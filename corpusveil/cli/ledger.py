"""``corpusveil ledger``: what was spent on which corpus, and whether the ledger is whole."""

from __future__ import annotations

from typing import Annotated

import typer

from corpusveil.errors import LedgerDiffersError

app = typer.Typer(
    help="What was spent on which documents, release by release.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


@app.command("show")
def show(url: Annotated[str, typer.Argument(help="The ledger, or a release.", metavar="URL")]) -> None:
    """Show what releases spent on which corpus, and what the worst document has spent in each metric.

    Of a release it says what a ledger calls it, or that it is denoised, spends nothing, and which release it is of.

    Example: corpusveil ledger show s3://bucket/ledger
    """
    from corpusveil.transforms.ledger import Ledger
    from corpusveil.transforms.released import spends_of

    print(spends_of(url) or Ledger(url).spent())


@app.command("verify")
def verify(
    url: Annotated[str, typer.Argument(help="The ledger.", metavar="URL")],
    records: Annotated[
        list[str] | None, typer.Option(help="Private records of a release, to hold it against; repeatable.")
    ] = None,
) -> None:
    """Check every entry against its name, and that the entries cover what the records of releases say was privatized.

    Example: corpusveil ledger verify s3://bucket/ledger --records s3://private/2026-11.records
    """
    from corpusveil.transforms.ledger import Ledger

    found = Ledger(url).verify(records or ())
    for difference in found.differences:
        print(difference.sentence)
    if found.too_low:
        raise LedgerDiffersError(f"{url}: {found.too_low} differences mean that more was spent than the ledger says.")
    print(found.verdict)

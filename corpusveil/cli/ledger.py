"""``corpusveil ledger``: the spending on each corpus, and a check of the ledger."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from corpusveil.errors import ConflictError, LedgerDiffersError

app = typer.Typer(
    help="Show what was spent on each document, by release.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


@app.command("show")
def show(
    url: Annotated[str, typer.Argument(help="The ledger, or a release.", metavar="URL")],
    document: Annotated[
        str | None,
        typer.Option(
            help=(
                "Show one document: its text, its id, or PATH:ROW. '-' reads the text from standard input, out of "
                "shell history."
            ),
            metavar="TEXT|ID",
        ),
    ] = None,
    delta: Annotated[float | None, typer.Option(help="Also show (epsilon, delta) at this delta, such as 1e-6.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, with exact numbers.")] = False,
    workers: Annotated[int, typer.Option(help="Processes that look at many documents, about 600 MiB each.")] = 1,
) -> None:
    """Show what releases spent on each corpus, and the most that a document has spent in each metric.

    With --document, show the spending of this document, recognized by its text or id.

    For the folder of a release, show its name in ledgers; for a denoised release, which spends nothing, show its
    source.

    Example: corpusveil ledger show s3://bucket/ledger

    Example: corpusveil ledger show s3://bucket/ledger --document review-1742 --delta 1e-6
    """
    from corpusveil.jobs.local import Local
    from corpusveil.transforms.ledger import Ledger
    from corpusveil.transforms.released import spends_of

    of_release = spends_of(url)
    if of_release is not None:
        if document is not None or delta is not None or as_json:
            raise ConflictError(
                f"{url}: this is a release, and --document, --delta and --json are for a ledger; leave them out."
            )
        print(of_release)
        return
    if document == "-":
        document = sys.stdin.read().removesuffix("\n")
    ledger = Ledger(url)
    if document is None:
        spent = ledger.spent(delta=delta, engine=Local(workers))
    else:
        spent = ledger.spent_on(document, delta=delta)
    print(json.dumps(spent.as_dict(), indent=1, ensure_ascii=False) if as_json else spent)


@app.command("verify")
def verify(
    url: Annotated[str, typer.Argument(help="The ledger.", metavar="URL")],
    records: Annotated[
        list[str] | None, typer.Option(help="Private records of a release to compare with the ledger. Repeatable.")
    ] = None,
) -> None:
    """Check that entries match their names, and that they cover everything that the records of releases list.

    Example: corpusveil ledger verify s3://bucket/ledger --records s3://private/2026-11.records
    """
    from corpusveil.transforms.ledger import Ledger

    found = Ledger(url).verify(records or ())
    for difference in found.differences:
        print(difference.sentence)
    if found.too_low:
        raise LedgerDiffersError(f"{url}: in {found.too_low} differences, more was spent than the ledger says.")
    print(found.verdict)

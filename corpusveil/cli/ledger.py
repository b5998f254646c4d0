"""``corpusveil ledger``."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from corpusveil.cli.options import Grouped, group
from corpusveil.errors import DiffersError, SettingError

COMMAND = ("ledger", "Show and check what privacy units have spent.")

app = group("Show what privacy units have spent, by release.")


@app.command("show", cls=Grouped)
def show(
    url: Annotated[str, typer.Argument(help="The folder or URL of a ledger or a release.", metavar="URL")],
    unit: Annotated[
        str | None,
        typer.Option(
            "--unit",
            "--document",
            help=(
                "Show one unit: its value, such as a customer's id, NAME=VALUE if the ledger has several kinds of "
                "units, or the text if the unit is content. '-' reads it from standard input. Default: all units."
            ),
            metavar="VALUE",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, with exact numbers.")] = False,
) -> None:
    """Show what each release spent, and the most that any unit has spent, in nats.

    With --unit, show the spending of one unit, such as one customer.

    Given a release's folder, show this release's name in ledgers.

    Example: corpusveil ledger show s3://bucket/ledger

    Example: corpusveil ledger show s3://bucket/ledger --unit 1742
    """
    from corpusveil.ledger.summary import Ledger
    from corpusveil.transforms.release.manifest import spends_of

    of_release = spends_of(url)
    if of_release is not None:
        if unit is not None or as_json:
            raise SettingError(f"{url}: this is a release, and --unit and --json are for a ledger; leave them out.")
        print(of_release)
        return
    ledger = Ledger(url)
    if unit is None:
        spent = ledger.spent()
    else:
        value = sys.stdin.read().removesuffix("\n") if unit == "-" else unit
        spent = ledger.spent_on(value)
    print(json.dumps(spent.as_dict(), indent=1, ensure_ascii=False) if as_json else spent)


@app.command("verify", cls=Grouped)
def verify(
    url: Annotated[str, typer.Argument(help="The folder or URL of the ledger.", metavar="URL")],
    records: Annotated[
        list[str] | None,
        typer.Option(help="A release's private records, to compare. Repeatable. Default: none.", metavar="URL"),
    ] = None,
) -> None:
    """Check that entries match their names, and that they cover everything that the records of releases list.

    Example: corpusveil ledger verify s3://bucket/ledger --records s3://private/2026-11.records
    """
    from corpusveil.ledger.summary import Ledger

    check = Ledger(url).verify(records or ())
    for sentence in check.differences:
        print(sentence)
    if check.differences:
        raise DiffersError(check.verdict)
    print(check.verdict)

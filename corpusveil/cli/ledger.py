"""``corpusveil ledger``: what was spent on which corpus, and whether the ledger is whole."""

from __future__ import annotations

from typing import Annotated

import typer

from corpusveil.errors import WorkError

app = typer.Typer(
    help="What was spent on which documents, release by release.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)
NAMES = {"total": "sum of epsilons", "largest": "largest epsilon of a token", "ldp": "plain LDP, nats"}


@app.command("show")
def show(url: Annotated[str, typer.Argument(help="The ledger.", metavar="URL")]) -> None:
    """Show what releases spent on which corpus, and what the worst document has spent in each metric.

    Example: corpusveil ledger show s3://bucket/ledger
    """
    from rich.console import Console
    from rich.table import Table

    from corpusveil.budget.budget import written
    from corpusveil.storage.ledger import Ledger
    from corpusveil.transforms.spending import READINGS, summary, worst

    ledger = Ledger.existing(url)
    columns = ("corpus", "release", "mechanism", "metric", "documents", "tokens", "total", "largest", "ldp")
    table = Table(*columns)
    for line in summary(ledger.entries()):
        table.add_row(*(f"{line[name]:,}" if isinstance(line[name], int) else str(line[name]) for name in columns))
    console = Console(width=160)
    console.print(table)
    most: dict[tuple[str, str], float] = {}
    for spent in worst(ledger.entries(), READINGS):
        place = spent.reading, spent.metric
        most[place] = max(most.get(place, 0.0), spent.value)
    for (reading, metric), value in sorted(most.items()):
        within = f" in metric {metric}" if metric else " over all metrics"
        print(f"The worst document: {written(value)} {NAMES[reading]}{within}")


@app.command("verify")
def verify(
    url: Annotated[str, typer.Argument(help="The ledger.", metavar="URL")],
    records: Annotated[
        list[str] | None, typer.Option(help="Private records of a release, to hold it against; repeatable.")
    ] = None,
) -> None:
    """Check every entry against its name, and the records of releases against the entries.

    Example: corpusveil ledger verify s3://bucket/ledger --records s3://private/2026-11.records
    """
    from corpusveil.storage.ledger import Ledger
    from corpusveil.storage.records import Records
    from corpusveil.transforms.spending import differences

    ledger = Ledger.existing(url)
    found = list(differences(ledger, [Records(one) for one in records or ()]))
    for difference in found:
        print(difference.sentence)
    low = [difference for difference in found if difference.too_low]
    if low:
        raise WorkError(f"{url}: {len(low)} differences mean that more was spent than the ledger says.")
    print(f"{url}: {len(ledger.names()):,} entries are whole" + (", the records agree." if records else "."))

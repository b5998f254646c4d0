"""``corpusveil plan``."""

from __future__ import annotations

from typing import Annotated

import typer

from corpusveil.cli.options import Terminal
from corpusveil.errors import DataError, SettingError

COMMAND = ("plan", "Estimate the time, memory and budget of a release.")


def plan(
    file: Annotated[str, typer.Argument(help="The configuration.", metavar="FILE.toml")],
    unit: Annotated[
        list[str] | None,
        typer.Option(help="Show what units in this column would spend. Repeatable. Default: none.", metavar="COLUMN"),
    ] = None,
) -> None:
    """Forecast from a sample what a release would read, write and spend, and how long it would take; write nothing.

    The configuration's space and collocation table must exist. Put 'plan' before a call of 'privatize' to forecast
    that call. Given a release's folder, show this release's name in ledgers.

    Example: corpusveil plan release.toml --unit customer_id

    Example: corpusveil plan privatize 'reviews/*.parquet' --risk 0.5 --output private
    """
    from corpusveil.pipelines.privatize import foresee
    from corpusveil.pipelines.settings.sections import LedgerSettings
    from corpusveil.pipelines.settings.toml import read
    from corpusveil.transforms.release.manifest import spends_of

    if (spends := spends_of(file)) is not None:
        print(spends)
        return
    try:
        settings = read(file).settings
    except DataError as error:
        if file.endswith(".toml"):
            raise
        raise DataError(
            f"{error} For an input that is no configuration, put 'plan' before the call: 'corpusveil plan privatize …'."
        ) from None
    if settings.output is None:
        raise SettingError(f"{file}: the file has no release to plan; add [output] and the sections that it needs.")
    if unit:
        ledger = settings.ledger or LedgerSettings(path=f"{settings.output.path}.ledger")
        settings = settings.model_copy(update={"ledger": ledger.model_copy(update={"unit": unit})})
    foresee(settings, Terminal())

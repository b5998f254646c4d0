"""``corpusveil mechanisms``: what there is, and what each promises."""

from __future__ import annotations

import dataclasses
import inspect
import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from corpusveil.mechanisms import find, names


def mechanisms(
    name: Annotated[str | None, typer.Argument(help="A mechanism, for its parameters and mathematics.")] = None,
) -> None:
    """List the mechanisms, or explain one.

    Example: corpusveil mechanisms ring-geometric
    """
    if name is None:
        table = Table("mechanism", "guarantee", "summary", "paper", box=None, pad_edge=False)
        for known in names():
            cls = find(known)
            table.add_row(known, "epsilon" if cls.private else "none", cls.summary, cls.paper)
        Console().print(table)
        return
    cls = find(name)
    print(f"{cls.name}: {cls.summary}\npaper: {cls.paper}\n")
    print(inspect.getdoc(sys.modules[cls.__module__]))
    print("\nparameters:")
    for field in dataclasses.fields(cls):
        if field.name != "space":
            print(f"  {field.name} = {field.default}")

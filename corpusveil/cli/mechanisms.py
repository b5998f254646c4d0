"""``corpusveil mechanisms``."""

from __future__ import annotations

import dataclasses
import inspect
import sys
from typing import Annotated

import typer

COMMAND = ("mechanisms", "List the mechanisms, or explain one.")

WHICH = """\
How to choose:
  ring-geometric   the default choice: an exact bound, a computed risk, and the speed of the files
  santext, tem     if the distances of an embedding matter; their tables take a minute
  syntf            if any two words need the same epsilon (plain LDP)
  passage-exchange if people will read the texts: it replaces each by a public one ('privatize --store en')
Choose epsilon by what a reader guesses: 'privatize --risk 0.5', 'preview', 'plan'.
"""


def mechanisms(
    name: Annotated[
        str | None, typer.Argument(help="The mechanism to explain. Default: list all.", metavar="NAME")
    ] = None,
) -> None:
    """List the mechanisms, or explain one.

    Example: corpusveil mechanisms ring-geometric
    """
    from rich.console import Console
    from rich.table import Table

    from corpusveil.mechanisms import find, names
    from corpusveil.passages.passage_exchange import PassageExchange

    if name is None:
        print(WHICH)
        table = Table("mechanism", "guarantee", "summary", "paper", box=None, pad_edge=False)
        for known in names():
            cls = find(known)
            table.add_row(known, "epsilon" if cls.private else "none", cls.summary, cls.paper)
        table.add_row(PassageExchange.name, "plain LDP", PassageExchange.summary, PassageExchange.paper)
        Console().print(table)
        return
    if name == PassageExchange.name:
        print(inspect.getdoc(sys.modules[PassageExchange.__module__]))
        return
    cls = find(name)
    print(f"{cls.name}: {cls.summary}\npaper: {cls.paper}\n")
    print(inspect.getdoc(sys.modules[cls.__module__]))
    print("\nparameters:")
    for field in dataclasses.fields(cls):
        if field.name != "space":
            print(f"  {field.name} = {field.default}")

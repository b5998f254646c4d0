"""``corpusveil mechanisms``."""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from corpusveil.errors import SettingError, UserError

COMMAND = ("mechanisms", "List the mechanisms, or explain one.")

if TYPE_CHECKING:
    from corpusveil.mechanisms import Mechanism

WHICH = """\
How to choose:
  ring-geometric   the default choice: an exact bound, a computed risk, and the speed of the files
  santext, tem     if the distances of an embedding matter; their tables take a minute
  syntf            if any two words need the same epsilon (plain LDP)
  passage-exchange if people shall read the texts: a public text for each ('privatize --store en')
Choose epsilon by what a reader guesses: 'privatize --risk 0.5', 'preview', 'plan'.
"""
PAPER_EPSILONS = (0.1, 0.5, 1.0, 5.0, 10.0, 25.0, 50.0)
"""Those of the studies."""


def mechanisms(
    name: Annotated[str | None, typer.Argument(help="A mechanism; shows its parameters and mathematics.")] = None,
    space: Annotated[
        str | None,
        typer.Option(help="With a mechanism: show its figures in this space, by epsilon.", metavar="URL"),
    ] = None,
    epsilon: Annotated[
        list[float] | None,
        typer.Option(help="With --space: use these epsilons, and print the guarantee at each. Repeatable. Default: 1."),
    ] = None,
    parameter: Annotated[
        list[str] | None, typer.Option(help="With --space: a parameter. Repeatable.", metavar="NAME=VALUE")
    ] = None,
) -> None:
    """List the mechanisms, or explain one.

    Example: corpusveil mechanisms ring-geometric

    Example: corpusveil mechanisms santext --space spaces/glove
    """
    from rich.console import Console
    from rich.table import Table

    from corpusveil.mechanisms import find, make, names
    from corpusveil.passages.passage_exchange import PassageExchange
    from corpusveil.pipelines.fields import pairs
    from corpusveil.spaces import load_space

    if space is None and (epsilon or parameter):
        raise SettingError("--epsilon and --parameter need --space; add it, or leave them out.")
    if name is None and space is not None:
        raise SettingError("--space is for one mechanism; name the mechanism.")
    if name is None:
        print(WHICH)
        table = Table("mechanism", "guarantee", "summary", "paper", box=None, pad_edge=False)
        for known in names():
            cls = find(known)
            table.add_row(known, "epsilon" if cls.private else "none", cls.summary, cls.paper)
        table.add_row(PassageExchange.name, "plain LDP", PassageExchange.summary, PassageExchange.paper)
        Console().print(table)
        return
    if name == PassageExchange.name and space is None:
        print(inspect.getdoc(sys.modules[PassageExchange.__module__]))
        return
    cls = find(name)
    print(f"{cls.name}: {cls.summary}\npaper: {cls.paper}\n")
    print(inspect.getdoc(sys.modules[cls.__module__]))
    print("\nparameters:")
    for field in dataclasses.fields(cls):
        if field.name != "space":
            print(f"  {field.name} = {field.default}")
    if space is not None:
        made = make(name, load_space(space), **pairs("parameter", parameter or []))
        _table(made, epsilon or PAPER_EPSILONS)
        for value in epsilon or (1.0,):
            print(f"\nguarantee at epsilon {value:g}:")
            try:
                print(made.guarantee(value))
            except UserError as error:  # it is not defined there
                print(error)


def _table(mechanism: Mechanism, epsilons: Sequence[float]) -> None:
    """Print what the mechanism does in a space, at the epsilons at which it is defined."""
    from rich.console import Console
    from rich.table import Table

    table = Table("epsilon", "known words unchanged (N_w)", "plain LDP, nats", box=None, pad_edge=False)
    refusal: UserError | None = None
    for epsilon in sorted(set(epsilons)):
        try:
            plain = mechanism.guarantee(epsilon).plain_ldp
            unchanged = mechanism.retention(epsilon)
        except UserError as error:
            refusal = error
        else:
            table.add_row(f"{epsilon:g}", f"{unchanged:.4f}", "none" if plain is None else f"{plain:.4g}")
    if refusal is not None and not table.row_count:
        raise refusal
    print(f"\nin this space ({len(mechanism.space):,} words):")
    Console().print(table)

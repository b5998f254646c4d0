"""``corpusveil audit``: does a guarantee hold, and which epsilon to choose."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from corpusveil.cli.options import SpaceOption
from corpusveil.cli.privatize import mechanism_parameters
from corpusveil.errors import UserError
from corpusveil.evaluation.audit import LEVEL, PAIRS, WORDS, audit
from corpusveil.evaluation.curve import EPSILONS, AtRisk, Point, at_equal_risk, curve
from corpusveil.evaluation.pages import render_curve
from corpusveil.evaluation.prior import INPUTS, prior_of
from corpusveil.mechanisms import Mechanism, make
from corpusveil.mechanisms.registry import parameters
from corpusveil.spaces import load_space
from corpusveil.storage import files

WIDTH = 120
UNCHANGED, RECOVERED = "known words unchanged", "known words recovered"


def audit_command(
    space: SpaceOption,
    mechanism: Annotated[list[str], typer.Option(help="The mechanism; with --curve, several.", metavar="NAME")],
    epsilon: Annotated[list[float] | None, typer.Option(help="Epsilon of a word; with --curve, the grid.")] = None,
    parameter: Annotated[
        list[str] | None, typer.Option(help="A parameter of the mechanism (repeatable).", metavar="NAME=VALUE")
    ] = None,
    claim: Annotated[bool, typer.Option("--claim", help="Check what its paper claims instead.")] = False,
    draws: Annotated[
        int | None,
        typer.Option(help="Draws a word, where laws are sampled; default 100,000, or 5,000 where each takes long."),
    ] = None,
    pairs: Annotated[int, typer.Option(help="Pairs of words, where there is no exact law.")] = PAIRS,
    level: Annotated[float, typer.Option(help="The chance to refute what holds, where there is no exact law.")] = LEVEL,
    words: Annotated[int, typer.Option(help="Words that are compared, where there is an exact law.")] = WORDS,
    curve: Annotated[bool, typer.Option("--curve", help="Show what is kept and recovered, by epsilon.")] = False,
    inputs: Annotated[int, typer.Option(help="With --curve: the most frequent words, which are inputs.")] = INPUTS,
    output: Annotated[
        str | None, typer.Option(help="Write JSON there; with --curve a folder of JSON and a page.", metavar="URL")
    ] = None,
) -> None:
    """Check a guarantee: on exact laws where there are some, else on samples. Exit status 1 when it is refuted.

    Example: corpusveil audit --space spaces/glove --mechanism santext --epsilon 5

    Example: corpusveil audit --space spaces/glove --mechanism ring-geometric --mechanism santext --curve --output curve
    """
    opened = load_space(space)
    given = mechanism_parameters(parameter or [])
    known = {name for one in mechanism for name in parameters(one)}
    if curve:
        if unknown := sorted(set(given) - known):
            raise UserError(f"--parameter {unknown[0]}: none of these mechanisms has it.")
        made = [make(one, opened, **{k: v for k, v in given.items() if k in parameters(one)}) for one in mechanism]
        _curve(made, epsilon or list(EPSILONS), inputs, output)
        return
    if len(mechanism) != 1 or epsilon is None or len(epsilon) != 1:
        raise UserError("audit checks one mechanism at one epsilon: give each once, or add --curve.")
    found = audit(
        make(mechanism[0], opened, **given), epsilon[0], claim=claim, draws=draws, pairs=pairs, level=level, words=words
    )
    for line in found.lines():
        print(line)
    if output is not None:
        files.write_bytes(output, (json.dumps(found.as_dict(), indent=1) + "\n").encode())
    if found.refuted:
        raise typer.Exit(1)


def _curve(made: list[Mechanism], epsilons: list[float], inputs: int, output: str | None) -> None:
    points = curve(made, sorted(epsilons), inputs)
    risks = at_equal_risk(points)
    prior = prior_of(made[0].space, inputs)
    note = (
        f"Inputs are the {prior.words.size:,} most frequent words ({prior.covered:.1%} of public counts); guessing "
        f"without looking is right in {prior.guess:.1%}."
    )
    _print(points, risks)
    print(note)
    if output is not None:
        told = {"note": note, "points": [one.as_dict() for one in points], "at_equal_risk": [_fields(r) for r in risks]}
        files.write_bytes(files.join(output, "curve.json"), (json.dumps(told, indent=1) + "\n").encode())
        files.write_bytes(files.join(output, "curve.html"), render_curve(points, risks, note).encode())
        print(files.join(output, "curve.html"))


def _fields(one: AtRisk) -> dict[str, float | str | None]:
    names = ("risk", "mechanism", "epsilon", "retention", "distance", "plain_ldp")
    return {name: getattr(one, name) for name in names}


def _print(points: list[Point], risks: list[AtRisk]) -> None:
    columns = ("mechanism", "epsilon", UNCHANGED, "distinct of 100", "distance", RECOVERED, "plain LDP")
    table = Table(*columns, box=None)
    for one in points:
        table.add_row(
            one.mechanism, f"{one.epsilon:g}", f"{one.retention:.3f}", f"{one.distinct:.1f}", text(one.distance),
            text(one.risk), text(one.plain_ldp),
        )  # fmt: skip
    Console(width=WIDTH).print(table)
    if risks:
        print("\nat equal risk:")
        table = Table(RECOVERED, "mechanism", "epsilon", UNCHANGED, "distance", "plain LDP", box=None)
        for risk in risks:
            table.add_row(
                f"{risk.risk:g}", risk.mechanism, f"{risk.epsilon:.3g}", f"{risk.retention:.3f}", text(risk.distance),
                text(risk.plain_ldp),
            )  # fmt: skip
        Console(width=WIDTH).print(table)


def text(value: float | None) -> str:
    """Write a figure, a dash where there is none."""
    return "-" if value is None else f"{value:.4g}"

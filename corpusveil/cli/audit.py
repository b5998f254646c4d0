"""``corpusveil audit``: check a guarantee, or choose epsilon."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from corpusveil.cli.options import SpaceOption, mechanism_parameters
from corpusveil.errors import ConflictError, UnknownError
from corpusveil.evaluation.defaults import LEVEL, PAIRS, WORDS


def audit(
    space: SpaceOption,
    mechanism: Annotated[
        list[str], typer.Option(help="The mechanism; with --curve, any number of mechanisms.", metavar="NAME")
    ],
    epsilon: Annotated[list[float] | None, typer.Option(help="Epsilon of a word. With --curve: the grid.")] = None,
    parameter: Annotated[
        list[str] | None, typer.Option(help="A parameter of the mechanism. Repeatable.", metavar="NAME=VALUE")
    ] = None,
    claim: Annotated[bool, typer.Option("--claim", help="Check what its paper claims instead.")] = False,
    draws: Annotated[
        int | None,
        typer.Option(help="Draws of each word if laws are sampled. Default: 100,000, or 5,000 if draws are slow."),
    ] = None,
    pairs: Annotated[int, typer.Option(help="Pairs of words to compare, if there is no exact law.")] = PAIRS,
    level: Annotated[
        float, typer.Option(help="The chance of refuting a true guarantee, if there is no exact law.")
    ] = LEVEL,
    words: Annotated[int, typer.Option(help="Words to compare, if there is an exact law.")] = WORDS,
    curve: Annotated[
        bool, typer.Option("--curve", help="Show the retention and the risk of words, by epsilon.")
    ] = False,
    inputs: Annotated[
        int | None,
        typer.Option(
            help="With --curve: use this many of the most frequent words as inputs. Default: all words, which for a "
            "mechanism on vectors takes time in proportion to the square of their number."
        ),
    ] = None,
    risk: Annotated[
        list[float] | None,
        typer.Option(help="With --curve: add the epsilon that 'privatize --risk' chooses for this share. Repeatable."),
    ] = None,
    document: Annotated[
        list[int] | None,
        typer.Option(
            help="Check the guarantee of documents with this many words instead. Repeatable.", metavar="WORDS"
        ),
    ] = None,
    per: Annotated[str, typer.Option(help="With --document: whether epsilon is for a token or a document.")] = "token",
    delta: Annotated[float, typer.Option(help="With --document: the delta of (epsilon, delta).")] = 1e-6,
    distance: Annotated[
        float, typer.Option(help="With --document: the distance by which words may differ. inf: any two words.")
    ] = 1.0,
    pad: Annotated[
        int | None, typer.Option(help="With --document: check a grid of lengths, too.", metavar="WORDS")
    ] = None,
    pad_growth: Annotated[float, typer.Option(help="With --pad: as in 'privatize'.")] = 1.0,
    length_epsilon: Annotated[
        float | None, typer.Option(help="With --document: check lengths released with noise of this epsilon, too.")
    ] = None,
    length_extra: Annotated[int, typer.Option(help="With --length-epsilon: as in 'privatize'.", metavar="WORDS")] = 0,
    output: Annotated[
        str | None,
        typer.Option(
            help="Write JSON to this file; with --curve, write JSON and a page to this folder.", metavar="URL"
        ),
    ] = None,
) -> None:
    """Check a guarantee, on exact laws if there are any, otherwise on samples. Exit status 1 if it is refuted.

    Example: corpusveil audit --space spaces/glove --mechanism santext --epsilon 5

    Example: corpusveil audit --space spaces/glove --mechanism ring-geometric --mechanism santext --curve --output curve

    Example: corpusveil audit --space spaces/glove --mechanism ring-geometric --epsilon 10 --per document --document 500
    """
    from corpusveil.budget import Budget
    from corpusveil.budget.length import LengthGrid, LengthNoise
    from corpusveil.evaluation.attacks.document_audit import audit_documents
    from corpusveil.evaluation.attacks.guarantee_audit import audit as audit_words
    from corpusveil.evaluation.attacks.risk_curve import EPSILONS
    from corpusveil.evaluation.report.curve_report import risk_curve
    from corpusveil.mechanisms import make
    from corpusveil.mechanisms.registry import parameters
    from corpusveil.spaces import load_space
    from corpusveil.storage import files

    opened = load_space(space)
    given = mechanism_parameters(parameter or [])
    known = {name for one in mechanism for name in parameters(one)}
    if pad is not None and length_epsilon is not None:
        raise ConflictError("--pad and --length-epsilon exclude each other; leave one of them out.")
    if (pad is not None or length_epsilon is not None) and not document:
        raise ConflictError("--pad and --length-epsilon are checked with --document; add that.")
    if document:
        if curve or claim or risk or len(mechanism) != 1 or not epsilon:
            raise ConflictError(
                "--document is for the guarantee of a single mechanism; give epsilon, and leave --curve out."
            )
        budgets = [Budget(value, per) for value in epsilon]  # type: ignore[arg-type] # refused there
        length: LengthGrid | LengthNoise | None = None
        if pad is not None:
            length = LengthGrid(pad, pad_growth)
        elif length_epsilon is not None:
            length = LengthNoise(length_epsilon, length_extra)
        checked = audit_documents(
            make(mechanism[0], opened, **given), budgets, document, delta, distance, level=level, length=length
        )
        print(checked)
        if output is not None:
            files.write_bytes(output, (json.dumps(checked.as_dict(), indent=1) + "\n").encode())
        if checked.refuted:
            raise typer.Exit(1)
        return
    if curve:
        if unknown := sorted(set(given) - known):
            raise UnknownError(
                f"--parameter {unknown[0]}: none of these mechanisms has this parameter; correct it or leave it out."
            )
        made = [make(one, opened, **{k: v for k, v in given.items() if k in parameters(one)}) for one in mechanism]
        shown = risk_curve(made, epsilon or EPSILONS, inputs=inputs, risks=risk or ())
        print(shown)
        if output is not None:
            print(shown.save(output))
        return
    if risk:
        raise ConflictError("--risk needs --curve; add it, or leave --risk out.")
    if len(mechanism) != 1 or epsilon is None or len(epsilon) != 1:
        raise ConflictError("audit checks one mechanism at one epsilon; give each once, or add --curve.")
    found = audit_words(
        make(mechanism[0], opened, **given), epsilon[0], claim=claim, draws=draws, pairs=pairs, level=level, words=words
    )
    for line in found.lines():
        print(line)
    if output is not None:
        files.write_bytes(output, (json.dumps(found.as_dict(), indent=1) + "\n").encode())
    if found.refuted:
        raise typer.Exit(1)

"""Write ``corpusveil/__init__.pyi``, from which type checkers and editors know the names that are imported on use.

Also write ``docs/api.md``, the documentation page of these names.

``make lint`` runs it; ``tests/api/test_names.py`` fails if the files are out of date.
"""

from __future__ import annotations

from pathlib import Path

import corpusveil
from corpusveil.mechanisms.registry import classes

STUB = Path(corpusveil.__file__).with_suffix(".pyi")
PAGE = STUB.parents[1] / "docs" / "api.md"
TASKS = {
    "Release text": """
        release preview compare privatize privatize_table masker expr register_sql Release PassageRelease TextPolicy
        SpanPolicy RowNumbers""",
    "Corpora and engines": "privatize_corpus plan Outcome Forecast Local Spark Beam",
    "Mechanisms and budgets": "Budget Guarantee mechanism mechanism_names PassageExchange Mechanism",
    "Spaces and stores": """
        load_space demo_space read_vectors Vectors build_space Space load_store build_store Store""",
    "Collocations": """
        count_corpus CountOptions score_counts Scoring load_collocations Collocations tokenize_corpus train_vectors
        Training""",
    "Ledger and verification": "Ledger LedgerSummary LedgerCheck verify Verification",
    "Evaluation": """
        evaluate_release Findings write_report reader_ladder Ladder audit Audit hold_out audit_held_out HeldOutAudit
        audit_fit LawFit content_weights""",
    "Keys": "Key",
    "Errors": "CorpusveilError UserError WorkError NoClosedForm",
}
"""The public names by task, in an order in which their examples run; mechanisms are added."""


def stub() -> str:
    """Return the stub: an import for each public name and each mechanism, and the list of all."""
    places = dict(vars(corpusveil)["_places"]())
    places |= {name: (cls.__module__, name) for name, cls in classes().items() if cls.__module__ in own_modules()}
    imports = sorted((module, there, name) for name, (module, there) in places.items())
    lines = ["# Written by scripts/public_names.py, which 'make lint' runs.", ""]
    lines += [f"from {module} import {there} as {name}" for module, there, name in imports]
    lines += ["", "__version__: str", "__all__ = ["]
    lines += [f'    "{name}",' for name in sorted([*places, "__version__"])]
    return "\n".join([*lines, "]", ""])


HEAD = """# Python by task

`import corpusveil as cv` gives these names. Each object prints its description, without key and text. A wrong
call raises a `cv.UserError` that says what to write; a program checks its [`code`](errors.md). `make lint` writes this
page. All examples continue from these lines:
"""


def page() -> str:
    """Return the page of the public names: for each task its names, then their docstrings."""
    _, prompt, example = str(corpusveil.__doc__).partition(">>> ")
    lines = [HEAD, "```pycon", *(prompt + example).splitlines(), "```", ""]
    for title, names in tasks().items():
        lines += [f"## {title}", ""]
        lines += [", ".join(f"`cv.{name}`" for name in names)]
        lines += ["", *(f"::: {'.'.join(place(name))}" for name in names), ""]
    return "\n".join(lines)


def tasks() -> dict[str, list[str]]:
    """Return all public names by task, in an order in which their examples run one after the other."""
    mechanisms = [name for name, cls in classes().items() if cls.__module__ in own_modules()]
    named = {title: names.split() for title, names in TASKS.items()}
    named["Mechanisms and budgets"] += sorted(mechanisms)
    if missing := set(vars(corpusveil)["_places"]()) - {name for names in named.values() for name in names}:
        raise SystemExit(f"TASKS lacks {missing}")
    return named


def place(name: str) -> tuple[str, str]:
    """Return the module of a public name, and its name there."""
    places: dict[str, tuple[str, str]] = vars(corpusveil)["_places"]()
    return places.get(name) or (classes()[name].__module__, name)


def own_modules() -> set[str]:
    """Return the modules of the package's own mechanisms."""
    folder = Path(corpusveil.__file__).parent / "mechanisms"
    return {f"corpusveil.mechanisms.{path.stem}" for path in folder.glob("*.py")}


if __name__ == "__main__":
    STUB.write_text(stub())
    PAGE.write_text(page())

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


TASKS = {
    "Look and choose": ("preview", "plan", "Forecast"),
    "Release texts and files": (
        "release", "Key", "privatize", "privatize_table", "privatize_corpus", "RowNumbers", "masker", "expr",
        "register_sql", "Local", "Spark", "Beam", "Outcome",
    ),
    "Say a release in full": (
        "Release", "Budget", "TextPolicy", "SpanPolicy", "PassageRelease", "PassageExchange", "Guarantee",
    ),
    "Limit and check": ("Ledger", "LedgerSummary", "LedgerCheck", "verify", "Verification"),
    "Make stores, spaces and collocations of public text": (
        "build_store", "load_store", "Store", "build_space", "load_space", "demo_space", "Space", "read_vectors",
        "Vectors", "count_corpus", "CountOptions", "score_counts", "Scoring", "load_collocations", "Collocations",
        "tokenize_corpus", "train_vectors", "Training",
    ),
    "Mechanisms": ("mechanism", "mechanism_names", "Mechanism", "content_weights", "NoClosedForm"),
    "Evaluate": (
        "evaluate_release", "write_report", "Findings", "reader_ladder", "Ladder", "audit", "Audit", "hold_out",
        "audit_held_out", "HeldOutAudit", "audit_fit", "LawFit",
    ),
    "Errors": ("CorpusveilError", "UserError", "WorkError"),
}  # fmt: skip
"""The public names by what somebody wants to do."""
HEAD = """# Python by task

`import corpusveil as cv` gives these names. Each value prints a description of itself, without key and text. A wrong
call raises a `cv.UserError` that says what to write; a program checks its [`code`](errors.md). `make lint` writes this
page.
"""


def page() -> str:
    """Return the page of the public names by task; mechanisms follow the names that make them."""
    mechanisms = {name: (cls.__module__, name) for name, cls in classes().items() if cls.__module__ in own_modules()}
    places = dict(vars(corpusveil)["_places"]()) | mechanisms
    tasks = {task: [*names, *(sorted(mechanisms) if "mechanism" in names else ())] for task, names in TASKS.items()}
    tasks["Others"] = sorted(places.keys() - {name for names in tasks.values() for name in names})
    lines = [HEAD]
    for task, names in tasks.items():
        lines += [f"## {task}", ""] if names else []
        for name in (name for name in names if name in places):
            module, there = places[name]
            lines += [] if name == there else [f"`cv.{name}` is:", ""]
            lines += [f"::: {module}.{there}"]
        lines += [""] if names else []
    return "\n".join(lines)


def own_modules() -> set[str]:
    """Return the modules of the package's own mechanisms."""
    folder = Path(corpusveil.__file__).parent / "mechanisms"
    return {f"corpusveil.mechanisms.{path.stem}" for path in folder.glob("*.py")}


if __name__ == "__main__":
    STUB.write_text(stub())
    PAGE.write_text(page())

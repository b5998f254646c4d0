"""Replace private text by public text, or each word by a random one near it, with differential privacy.

All examples continue from these lines:

>>> import corpusveil as cv
>>> key = cv.Key.generate()
>>> space = cv.load_space("en")
>>> release = cv.Release(cv.RingGeometric(space), cv.Budget(epsilon=1.0), key=key)
>>> texts = ["The river was cold.", "My sister works as a nurse."]
"""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from typing import Any

__version__ = "0.6.0"

_PUBLIC = {
    "corpusveil.budget": ("Budget",),
    "corpusveil.collocations.count": ("CountOptions", "count_corpus"),
    "corpusveil.collocations.measures": ("Scoring",),
    "corpusveil.collocations.score": ("score_counts",),
    "corpusveil.collocations.collocation_table": ("Collocations", "load_collocations"),
    "corpusveil.collocations.tokenize": ("tokenize_corpus",),
    "corpusveil.collocations.training": ("train_vectors",),
    "corpusveil.collocations.word2vec": ("Training",),
    "corpusveil.errors": ("CorpusveilError", "NoClosedForm", "UserError", "WorkError"),
    "corpusveil_evaluate.audits.guarantee_audit": ("Audit", "audit"),
    "corpusveil_evaluate.attacks.held_out": ("HeldOutAudit", "LawFit", "audit_fit", "audit_held_out", "hold_out"),
    "corpusveil_evaluate.readers.content_words": ("content_weights",),
    "corpusveil_evaluate.readers.ladder": ("Ladder", "reader_ladder"),
    "corpusveil_evaluate.report.beside_original": ("evaluate_release",),
    "corpusveil_evaluate.report.findings": ("Findings",),
    "corpusveil_evaluate.report.release_page": ("write_report",),
    "corpusveil.jobs.spark": ("Spark",),
    "corpusveil.mechanisms": ("Guarantee", "Mechanism", "make_mechanism as mechanism", "names as mechanism_names"),
    "corpusveil.jobs.beam": ("Beam",),
    "corpusveil.jobs.local": ("Local",),
    "corpusveil.pipelines.python_calls": ("compare", "plan", "preview", "privatize_corpus", "release"),
    "corpusveil.sampling.keys": ("Key",),
    "corpusveil.spaces": ("Space", "demo_space", "load_space"),
    "corpusveil.spaces.build": ("build_space",),
    "corpusveil.spaces.vectors": ("Vectors", "read_vectors"),
    "corpusveil.text.policy": ("TextPolicy",),
    "corpusveil.text.spans": ("SpanPolicy",),
    "corpusveil.transforms.release.corpus": ("Outcome",),
    "corpusveil.transforms.identities": ("RowNumbers",),
    "corpusveil.ledger.summary": ("Ledger", "LedgerCheck", "LedgerSummary"),
    "corpusveil.transforms.release.planning": ("Forecast",),
    "corpusveil.transforms.release.release": ("Release",),
    "corpusveil.passages.build": ("build_store",),
    "corpusveil.transforms.release.passage_release": ("PassageRelease",),
    "corpusveil.passages.store": ("Store", "load_store"),
    "corpusveil.passages.passage_exchange": ("PassageExchange",),
    "corpusveil.transforms.release.verification": ("Verification", "verify"),
    "corpusveil.transforms.columns": ("expr", "register_sql"),
    "corpusveil.transforms.table": ("masker", "privatize", "privatize_table"),
}
"""Public names and their modules, which are imported when a name is first used.

Mechanisms are not listed: their classes come from the registry, so that a mechanism is one file.
``scripts/public_names.py`` writes both into ``__init__.pyi``, for type checkers and editors.
"""


def _places() -> dict[str, tuple[str, str]]:
    """Return the module and the original name of each public name, except mechanisms."""
    named = [(module, *name.split(" as ")) for module, several in _PUBLIC.items() for name in several]
    return {names[-1]: (module, names[0]) for module, *names in named}


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return [*__dir__(), "__version__"]
    if name.startswith("_"):
        raise AttributeError(_unknown(name))
    if (place := _places().get(name)) is not None:
        value = getattr(importlib.import_module("corpusveil.registry").imported(place[0]), place[1])
    else:
        value = importlib.import_module("corpusveil.mechanisms.registry").classes().get(name)
        if value is None:
            raise AttributeError(_unknown(name))
    globals()[name] = value
    return value


def _unknown(name: str) -> str:
    gone = importlib.import_module("corpusveil.gone").gone_setting(f"cv.{name}")
    return f"cv.{name}: {gone}." if gone else f"module {__name__!r} has no attribute {name!r}"


def __dir__() -> list[str]:
    there = [name for name, (module, _) in _places().items() if find_spec(module.partition(".")[0])]
    return sorted([*there, *importlib.import_module("corpusveil.mechanisms.registry").classes()])

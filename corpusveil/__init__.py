"""Privatize text corpora of any size with word-level metric differential privacy."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from corpusveil.budget import Budget
    from corpusveil.errors import CorpusveilError, NoClosedForm, UserError, WorkError
    from corpusveil.mechanisms import Guarantee
    from corpusveil.mechanisms import make as mechanism
    from corpusveil.sampling.keys import Key
    from corpusveil.spaces import Space, build_space, load_space, read_vectors
    from corpusveil.text.policy import TextPolicy
    from corpusveil.transforms.identities import RowNumbers
    from corpusveil.transforms.profiles import find as profile
    from corpusveil.transforms.release import Release
    from corpusveil.transforms.table import privatize, privatize_table
    from corpusveil.transforms.terms import term_vectors

_WHERE = {
    "Budget": "corpusveil.budget",
    "CorpusveilError": "corpusveil.errors",
    "Guarantee": "corpusveil.mechanisms",
    "Key": "corpusveil.sampling.keys",
    "NoClosedForm": "corpusveil.errors",
    "Release": "corpusveil.transforms.release",
    "RowNumbers": "corpusveil.transforms.identities",
    "Space": "corpusveil.spaces",
    "TextPolicy": "corpusveil.text.policy",
    "UserError": "corpusveil.errors",
    "WorkError": "corpusveil.errors",
    "build_space": "corpusveil.spaces",
    "load_space": "corpusveil.spaces",
    "mechanism": "corpusveil.mechanisms",
    "privatize": "corpusveil.transforms.table",
    "privatize_table": "corpusveil.transforms.table",
    "profile": "corpusveil.transforms.profiles",
    "read_vectors": "corpusveil.spaces",
    "term_vectors": "corpusveil.transforms.terms",
}

_CALLED_THERE = {"mechanism": "make", "profile": "find"}

__all__ = [
    "Budget",
    "CorpusveilError",
    "Guarantee",
    "Key",
    "NoClosedForm",
    "Release",
    "RowNumbers",
    "Space",
    "TextPolicy",
    "UserError",
    "WorkError",
    "__version__",
    "build_space",
    "load_space",
    "mechanism",
    "privatize",
    "privatize_table",
    "profile",
    "read_vectors",
    "term_vectors",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    module = importlib.import_module(_WHERE[name])
    return getattr(module, _CALLED_THERE.get(name, name))

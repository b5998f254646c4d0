"""Defaults of evaluations that options show, in a module of their own, since help loads no array library."""

from __future__ import annotations

PAIRS = 14
"""The number of pairs of words that an audit samples without an exact law."""
WORDS = 192
"""The number of words that an audit compares in a larger vocabulary: half drawn, and the nearest word of each."""
LEVEL = 0.05
"""The chance that an audit by samples refutes a true guarantee."""
DOCUMENTS = 10_000
"""The number of documents to evaluate."""

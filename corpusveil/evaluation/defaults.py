"""What evaluations do unless told otherwise, where options show it: apart, since help loads no array library."""

from __future__ import annotations

PAIRS = 14
"""Pairs of words that an audit draws for, where there is no exact law."""
WORDS = 192
"""Of a larger vocabulary, so many words an audit compares: half of them drawn, and the nearest of each."""
LEVEL = 0.05
"""The chance that an audit by samples refutes what holds."""
DOCUMENTS = 10_000
"""Documents that are looked at."""

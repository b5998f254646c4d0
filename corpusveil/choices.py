"""The allowed words of options, configuration keys and fields, and a default.

They are in a separate module that imports nothing, because the help of the command line needs them and has to start at
once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

Allocation = Literal["uniform", "word-share"]
"""How a document's budget is shared among its tokens."""
ALLOCATIONS: tuple[Allocation, ...] = get_args(Allocation)

STRATEGIES: Mapping[str, Mapping[str, str]] = {
    "s1": {"budget.per": "document", "text.tokenizer": "word", "budget.allocation": "word-share"},
    "s2": {"budget.per": "document", "text.tokenizer": "gst", "budget.allocation": "word-share"},
    "s3": {"budget.per": "document", "text.tokenizer": "gst", "budget.allocation": "uniform"},
    "s4": {"budget.per": "document", "text.tokenizer": "mst", "budget.allocation": "uniform"},
}
"""The strategies of the collocation study (Meisenbacher, Chevli, Matthes 2024), as settings."""

Codec = Literal["", ".gz", ".zst"]
"""A compression by the suffix of its files."""
CODECS: tuple[Codec, ...] = get_args(Codec)

Duplicates = Literal["independent", "same-noise"]
"""The treatment of equal texts with different identities."""
DUPLICATES: tuple[Duplicates, ...] = get_args(Duplicates)

Group = Literal[
    "Most used", "Settings", "What to release", "How private", "Text", "Names and other spans", "Files", "Ledger",
    "Engine", "Rarely used", "Options",
]  # fmt: skip
"""The headings of settings in help, in their order."""

Hyphens = Literal["split", "join"]
"""The treatment of a hyphen between two letters: *long-term* is three tokens, or one word."""
HYPHENS: tuple[Hyphens, ...] = get_args(Hyphens)

Markup = Literal["words", "strip"]
"""The treatment of HTML: read like any text, or only its text is read."""
MARKUPS: tuple[Markup, ...] = get_args(Markup)

Measure = Literal["pmi", "npmi", "llr", "t", "chi2", "jaccard", "log-dice"]
"""Measures of how much more often than by chance words are adjacent."""
MEASURES: tuple[Measure, ...] = get_args(Measure)

OnBadRows = Literal["refuse", "drop"]
"""The treatment of unreadable rows: the run stops, or they are left out and counted."""

OverCap = Literal["refuse", "drop"]
OVER_CAP: tuple[OverCap, ...] = get_args(OverCap)

Policy = Literal["privatize", "resample", "mask", "drop", "keep"]
"""The policies for a class of tokens."""
POLICIES: tuple[Policy, ...] = get_args(Policy)

Treatment = Literal["mask", "resample"]
"""The treatment of spans of a kind."""
TREATMENTS: tuple[Treatment, ...] = get_args(Treatment)

Separator = Literal["comma", "semicolon", "tab"]
"""The character between the cells of CSV, by its name."""
SEPARATORS: tuple[Separator, ...] = get_args(Separator)

"""The words that options, keys of a configuration and fields may be.

They stand here, and not beside what they choose between, because the help of the command line needs them and has to
start at once: this module imports nothing.
"""

from __future__ import annotations

from typing import Literal, get_args

Allocation = Literal["uniform", "word-share", "per-word", "position"]
"""How a document's budget is shared among its tokens."""
ALLOCATIONS: tuple[Allocation, ...] = get_args(Allocation)

Codec = Literal["", ".gz", ".zst"]
"""A compression by the suffix of its files."""
CODECS: tuple[Codec, ...] = get_args(Codec)

Compare = Literal["stamp", "content"]
"""When a shard counts as changed: by its size and its store's stamp, then by content; or by content alone."""

CsvFormulas = Literal["keep", "escape"]
"""What becomes of a cell of CSV that a spreadsheet would take for a formula: as it is, or an apostrophe before it."""
CSV_FORMULAS: tuple[CsvFormulas, ...] = get_args(CsvFormulas)

Duplicates = Literal["independent", "same-noise", "drop"]
"""What becomes of equal texts under different identities."""
DUPLICATES: tuple[Duplicates, ...] = get_args(Duplicates)

Hyphens = Literal["split", "join"]
"""What a hyphen between two letters does: *long-term* is three tokens, or one word."""
HYPHENS: tuple[Hyphens, ...] = get_args(Hyphens)

Measure = Literal["pmi", "npmi", "llr", "t", "chi2", "jaccard", "log-dice"]
"""How much more often than by chance words stand together."""
MEASURES: tuple[Measure, ...] = get_args(Measure)

OnBadRows = Literal["fail", "quarantine"]
"""What becomes of rows that can't be read: the run stops, or they are set aside among the private records."""

Policy = Literal["privatize", "resample", "mask", "drop", "keep"]
"""What becomes of a class of tokens."""
POLICIES: tuple[Policy, ...] = get_args(Policy)

NumberPolicy = Literal["privatize", "resample", "mask", "drop", "keep", "surrogate"]
"""What becomes of numbers: what becomes of any class of tokens, or another number of the same shape."""
NUMBER_POLICIES: tuple[NumberPolicy, ...] = get_args(NumberPolicy)

RiskOf = Literal["word", "context"]
"""Whose risk epsilon is chosen by: a reader of single words, or one who also knows a language model."""
RISK_OF: tuple[RiskOf, ...] = get_args(RiskOf)

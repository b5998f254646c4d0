"""Histories of a ledger: releases that are stopped at any write, edits and renames, and what came out of them."""

from __future__ import annotations

import itertools
from collections import defaultdict
from typing import Any

import numpy as np
from hypothesis import strategies as st

import corpusveil as cv
from corpusveil.errors import UserError
from corpusveil.jobs.local import Local
from corpusveil.spaces import Space
from corpusveil.storage import files
from corpusveil.storage.ledger import Ledger
from corpusveil.transforms.corpus import privatize_corpus
from corpusveil.transforms.ledger_check import differences
from corpusveil.transforms.spending import Spending, worst
from tests.engines.corpora import TEST_KEY, WORDS


def release_of(space: Space, epsilon: float = 1.0, number: int = 0, per: Any = "document") -> cv.Release:
    """Return one of many releases: each number has a key of its own."""
    key = cv.Key(bytes([number]) + TEST_KEY[1:])
    return cv.Release(cv.mechanism("ring-geometric", space), cv.Budget(epsilon, per), cv.TextPolicy(), key)


class Stopped(BaseException):
    """A process that ends in the middle of something."""


NAMES, LINES = ("a.jsonl", "b.jsonl", "c.jsonl"), tuple(f"{WORDS[k]} {WORDS[3 * k + 1]}" for k in range(5))
STEPS = st.one_of(
    st.tuples(st.just("run"), st.integers(0, 2), st.integers(0, 40)),
    st.tuples(st.just("edit"), st.integers(0, 2), st.lists(st.integers(0, 4), max_size=3)),
    st.tuples(st.just("rename"), st.integers(0, 2), st.integers(0, 2)),
)


def beyond_what_is_owed(space: Space, base: str, history: list[Any]) -> float:
    """Play a history at an address where nothing is yet.

    Returns by how much the ledger's worst document exceeds that of what became visible.
    """
    content: dict[str, list[int]] = {"a.jsonl": [0, 1], "b.jsonl": [2]}
    visible: dict[str, set[tuple[str, int, int]]] = defaultdict(set)
    outputs = itertools.count()
    current: dict[int, str] = {}

    def save() -> None:
        for name in NAMES:
            files.remove(f"{base}/in/{name}")
        for name, lines in content.items():
            data = "".join(f'{{"text": "{LINES[line]}"}}\n' for line in lines)
            files.write_bytes(f"{base}/in/{name}", data.encode())

    save()
    for kind, one, other in history:
        if kind == "edit" and NAMES[one] in content and other:
            content[NAMES[one]] = other
            save()
            current.clear()
        elif kind == "rename" and NAMES[one] in content and NAMES[other] not in content:
            content[NAMES[other]] = content.pop(NAMES[one])
            save()
            current.clear()
        elif kind == "run":
            output = current.setdefault(one, f"{base}/out{next(outputs)}")
            _run_stopped(release_of(space, 1.0, one), base, output, other)
            shards = sorted(content)
            for shard, name in enumerate(shards):
                if files.exists(f"{output}/data/part-{shard:05d}-of-{len(shards):05d}.jsonl"):
                    visible[str(one)] |= {(name, row, line) for row, line in enumerate(content[name])}
    if files.exists(f"{base}/ledger/secret.key"):
        ledger = Ledger.existing(f"{base}/ledger")
        held = max((spent.value for spent in worst(ledger.entries(), ["total"])), default=0.0)
        assert not list(differences(ledger, []))
    else:
        held = 0.0
    files.remove_folder(base)
    return held - _owed(visible)


def _run_stopped(release: cv.Release, base: str, output: str, stop_at: int) -> None:
    """Privatize, and end the process at its ``stop_at``-th write, before or behind it in turn; 0 lets it finish."""
    writes = itertools.count(1)
    named = ("write_bytes", "create_bytes", "copy_file")
    before = {name: getattr(files, name) for name in named}

    def counted(write: Any) -> Any:
        def wrapped(*arguments: Any, **named: Any) -> Any:
            number = next(writes)
            if number == stop_at and number % 2:
                raise Stopped
            made = write(*arguments, **named)
            if number == stop_at:
                raise Stopped
            return made

        return wrapped

    for name, write in before.items():
        setattr(files, name, counted(write))
    try:
        spending = Spending(f"{base}/ledger")
        privatize_corpus(release, [f"{base}/in"], output, Local(), corpus="news", spending=spending)
    except (Stopped, UserError):
        pass
    finally:
        for name, write in before.items():
            setattr(files, name, write)


def _owed(visible: dict[str, set[tuple[str, int, int]]]) -> float:
    """Return the largest sum of what the visible copies of one content, or of one identity, have cost."""
    cost = {line: float(cv.Budget(1.0, "document").shares(np.array([2]))[0]) * 2 for line in range(len(LINES))}
    by_content: dict[Any, float] = defaultdict(float)
    by_identity: dict[Any, float] = defaultdict(float)
    for documents in visible.values():
        for name, row, line in documents:
            by_content[line] += cost[line]
            by_identity[name, row] += cost[line]
    return max([*by_content.values(), *by_identity.values(), 0.0])

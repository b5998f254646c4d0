"""What a unit has spent is never counted too low: documents are edited, merged, split, retyped and given away.

Releases under several keys, as files or as a frame, are stopped at any write. What became visible is counted by hand:
the different noise of each author's documents.
"""

from __future__ import annotations

import itertools
import json
import tempfile
from collections import defaultdict
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import corpusveil as cv
from corpusveil.errors import SettingError, UserError
from corpusveil.jobs.local import Local
from corpusveil.ledger.entries import EntryStore
from corpusveil.spaces import Space
from corpusveil.storage import files
from corpusveil.storage.rows import Columns
from tests.calls import privatize_corpus
from tests.contracts.spaces import small_space
from tests.engines.corpora import WORDS
from tests.ledger.books import nats_of, release_of

AUTHORS, FILES, DOCUMENTS = 3, ("a.jsonl", "b.jsonl", "c.jsonl"), 5
LINES = tuple(f"{WORDS[k]} {WORDS[3 * k + 1]}" for k in range(5))
STEPS = st.one_of(
    st.tuples(st.sampled_from(["run", "run", "frame"]), st.integers(0, 2), st.integers(0, 30)),
    st.tuples(st.just("edit"), st.integers(0, DOCUMENTS - 1), st.integers(0, len(LINES) - 1)),
    st.tuples(st.just("give"), st.integers(0, DOCUMENTS - 1), st.integers(0, AUTHORS - 1)),
    st.tuples(st.sampled_from(["merge", "split"]), st.integers(0, 2), st.integers(0, 2)),
    st.tuples(st.just("retype"), st.integers(0, 2), st.just(0)),
)
Noise = tuple[int, str, str]
"""What makes noise fresh: the key, the id with its type, and the text."""


def cost(space: Space) -> float:
    """Return what one document, which has two tokens, spends under one release."""
    return nats_of(release_of(space, 1.0), LINES[0])


class Stopped(BaseException):
    """A process that ends in the middle of something."""


def play(space: Space, base: str, history: list[Any]) -> tuple[dict[int, float], dict[int, set[Noise]]]:
    """Play a history in a folder; return what the ledger says that each author has spent, and what became visible."""
    author, line = {n: n % AUTHORS for n in range(DOCUMENTS)}, {n: n for n in range(DOCUMENTS)}
    placed = {"a.jsonl": [0, 1, 2], "b.jsonl": [3, 4]}
    visible: dict[int, set[Noise]] = defaultdict(set)
    outputs, kind = itertools.count(), 0
    current: dict[int, str] = {}
    spending = cv.Ledger(f"{base}/ledger").spending("author", None)
    for what, first, second in history:
        if what in ("run", "frame"):
            identity = {n: n if kind == 0 else str(n) for n in author}
            of = {n: (a, str(a), a)[kind] for n, a in author.items()}
            release = release_of(space, 1.0, first)
            if what == "frame":
                done = _stopped(second, lambda: cv.privatize(
                    pa.table({"text": [LINES[line[n]] for n in line], "author": [of[n] for n in line]}),  # noqa: B023
                    release, [identity[n] for n in line], ledger=cv.Ledger(f"{base}/ledger"), unit="author",  # noqa: B023
                ))  # fmt: skip
                shown = list(line) if done else []
            else:
                for name in FILES:
                    files.remove(f"{base}/in/{name}")
                for name, numbers in placed.items():
                    rows = [{"id": identity[n], "author": of[n], "text": LINES[line[n]]} for n in numbers]
                    files.write_bytes(f"{base}/in/{name}", "".join(json.dumps(row) + "\n" for row in rows).encode())
                output = current.setdefault(first, f"{base}/out{next(outputs)}")
                _stopped(second, lambda: privatize_corpus(
                    release, [f"{base}/in"], output, Local(), columns=Columns(id="id"), spending=spending,  # noqa: B023
                ))  # fmt: skip
                shards = sorted(placed)
                there = [
                    files.exists(f"{output}/data/part-{s:05d}-of-{len(shards):05d}.jsonl") for s in range(len(shards))
                ]
                shown = [n for name, seen in zip(shards, there, strict=True) if seen for n in placed[name]]
            for n in shown:
                visible[author[n]].add((first, str(identity[n]), LINES[line[n]]))
            continue
        if what == "edit":
            line[first] = second
        elif what == "give":
            author[first] = second
        elif what == "retype":
            kind = first
        elif what == "merge" and len(placed) > 1:
            names = sorted(placed)
            placed[names[0]] += placed.pop(names[-1])
        elif what == "split" and len(placed) < len(FILES):
            name = min(placed)
            if len(placed[name]) > 1:
                placed[next(free for free in FILES if free not in placed)] = [placed[name].pop()]
        current.clear()
    ledger, held = cv.Ledger(f"{base}/ledger"), dict.fromkeys(range(AUTHORS), 0.0)
    if files.exists(f"{base}/ledger/secret.key"):
        assert not ledger.verify().differences
        for number in held:
            try:
                held[number] = ledger.spent_on(number).most
            except SettingError:
                continue
    files.remove_folder(base)
    return held, visible


def _stopped(stop_at: int, call: Any) -> bool:
    """Call, and end the process at its ``stop_at``-th write, before or after it in turn; 0 lets it finish."""
    writes = itertools.count(1)
    named = ("write_bytes", "create_bytes", "copy_file")
    before = {name: getattr(files, name) for name in named}

    def counted(write: Any) -> Any:
        def wrapped(*arguments: Any, **given: Any) -> Any:
            number = next(writes)
            if number == stop_at and number % 2:
                raise Stopped
            made = write(*arguments, **given)
            if number == stop_at:
                raise Stopped
            return made

        return wrapped

    for name, write in before.items():
        setattr(files, name, counted(write))
    try:
        call()
    except (Stopped, UserError):
        return False
    finally:
        for name, write in before.items():
            setattr(files, name, write)
    return True


HISTORIES = st.lists(STEPS, min_size=3, max_size=9)
CHAIN = [
    step
    for number, edit in enumerate((None, ("edit", 0, 1), ("retype", 1, 0), ("edit", 0, 2), ("retype", 0, 0)))
    for step in ([] if edit is None else [edit]) + [("run", number % 3, 0)]
]
"""One document whose text and the type of whose id change in turn."""


@pytest.fixture(scope="module")
def small() -> Space:
    return small_space(words=WORDS)


def never_too_low(small: Space, history: list[Any]) -> None:
    """Compare with the count by hand; exactly, if nothing was stopped."""
    with tempfile.TemporaryDirectory() as folder:
        held, visible = play(small, f"{folder}/history", history)
    stopped = any(step[0] in ("run", "frame") and step[2] for step in history)
    for author, spent in held.items():
        owed = cost(small) * len(visible[author])
        assert spent >= owed - 1e-9
        assert stopped or spent == pytest.approx(owed, abs=1e-6)


@pytest.mark.nightly
@settings(max_examples=300, deadline=None)
@given(history=HISTORIES)
def test_a_night_of_histories(small: Space, history: list[Any]) -> None:
    """Whatever happens in between, no author has spent more than the ledger says."""
    never_too_low(small, history)


def test_a_ledger_that_forgets_would_be_noticed(small: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    """Control for the histories above: without entries the same comparison fails."""
    never_too_low(small, CHAIN)
    monkeypatch.setattr(EntryStore, "enter", lambda *_: None)
    with pytest.raises(AssertionError):
        never_too_low(small, CHAIN)


@pytest.mark.parametrize("first", [1, *(pytest.param(each, marks=pytest.mark.nightly) for each in range(2, 7))])
def test_the_worst_author_is_at_least_what_is_owed_with_crashes_at_every_write(small: Space, first: int) -> None:
    """A run is stopped before or after each of its writes, and repeated; every day at each sixth moment."""
    for stop in range(first, 24, 6):
        never_too_low(small, [("run", 0, stop), ("run", 0, 0), ("run", 1, stop)])

"""Caps over many documents: the same decisions bucket by bucket as at once, in a memory that has a bound."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpusveil.budget.accounting import upward
from corpusveil.errors import CapError, UserError
from corpusveil.storage import files
from corpusveil.storage import ledger as entries_of
from corpusveil.storage.ledger import READINGS, ROWS, Entry, Held, Ledger, digest_of, write_entry
from corpusveil.transforms import ledger_passes, spent_documents
from corpusveil.transforms.composed_spending import composed_epsilon
from corpusveil.transforms.ledger_passes import Here, Where, ask
from corpusveil.transforms.spending import Caps, refuse_over
from corpusveil.transforms.spent_documents import KEYS, Question

DELTA = 1e-6
RELEASES = {"a": ("m", "ring-geometric"), "b": ("m", "ring-geometric"), "c": ("n", "tem")}
_FOLDERS = itertools.count()

Row = tuple[int, int, int, int, float]
"""Noise, content, identity, tokens, epsilon of a token."""


def entry_of(release: str, rows: Sequence[Row], corpus: str = "c") -> Entry:
    metric, mechanism = RELEASES[release]
    about = {"version": 2, "corpus": corpus, "column": "t", "shard": "s", "rows": [0, None], "release": release}
    about |= {"metric": metric, "mechanism": mechanism, "space": "5" * 64, "budget": {}}
    columns = [[tag(row[at]) for row in rows] for at in range(3)]
    tokens, each = [row[3] for row in rows], [row[4] if row[3] else 0.0 for row in rows]
    totals = [count * one for count, one in zip(tokens, each, strict=True)]
    columns += [tokens, totals, each, [3 * one for one in totals]]
    return Entry(about, pa.table(dict(zip(ROWS.names, columns, strict=True)), ROWS))


def tag(number: int) -> bytes:
    """Return a fingerprint; its halves differ, and each has all numbers in its low bytes."""
    return number.to_bytes(8, "little") + (number * 7 + 1).to_bytes(8, "little")


def by_hand(entries: Sequence[Entry], planned: Sequence[Entry]) -> tuple[dict[Any, float], float]:
    """Return the largest sums by key, reading and metric, and the most at delta: over dicts, document by document."""
    most: dict[Any, float] = defaultdict(float)
    composed = 0.0
    for key in KEYS:
        documents: dict[bytes, dict[Any, dict[str, Any]]] = defaultdict(dict)
        asked = set()
        for group, is_planned in ((entries, False), (planned, True)):
            for entry in group:
                for row in entry.table.to_pylist():
                    noise = documents[row[key]].setdefault((entry.about["release"], row["noise"]), dict(entry.about))
                    for name in ("tokens", *READINGS):
                        noise[name] = max(noise.get(name, 0), row[name])
                    if is_planned:
                        asked.add(row[key])
        for document in asked:
            noises = list(documents[document].values())
            for reading in READINGS:
                sums: dict[str, Fraction] = defaultdict(Fraction)
                for noise in noises:
                    sums["" if reading == "ldp" else noise["metric"]] += Fraction(noise[reading])
                for metric, value in sums.items():
                    most[key, reading, metric] = max(most[key, reading, metric], upward(value))
            composed = max(composed, composed_epsilon(noises, DELTA))
    return dict(most), composed


def asked(rows: int, *of: Any) -> Any:
    """Ask of all readings, with so many rows in a bucket."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ledger_passes, "BUCKET_ROWS", rows)
        folder = f"memory://passes-{next(_FOLDERS)}"
        answer = ask(Question(READINGS, DELTA, planned=True), *of, Where(Here(), folder))
        assert not any("caps-" in name for name in files.listing(folder))
        return answer


ROWS_OF = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 3), st.integers(0, 3), st.integers(0, 3), st.sampled_from([0.1, 1, 2])),
    max_size=8,
)
ENTRIES = st.lists(st.tuples(st.sampled_from("abc"), ROWS_OF), max_size=4)


@settings(max_examples=15, deadline=None)
@given(ENTRIES, ENTRIES)
def test_decisions_are_those_of_a_count_by_hand(before: list[Any], now: list[Any]) -> None:
    """Copies across entries, moved and edited documents, several metrics, equal noise, nothing at all."""
    entries, planned = ([entry_of(*one) for one in group] for group in (before, now))
    most, composed = by_hand(entries, planned)
    for rows in (5, 1 << 19):
        answer = asked(rows, entries, planned)
        assert {place: spent.value for place, spent in answer.spent.items()} == most
        assert (answer.composed.epsilon if answer.composed else 0.0) == pytest.approx(composed, rel=1e-12)


def many(copies: int) -> tuple[list[Entry], list[Entry]]:
    """Return a ledger and a plan: many documents, one text that is there often, one id that many texts share."""
    noise = itertools.count()
    plain = [(next(noise), 10 + number, 10 + number, 2 + number % 3, 1.0) for number in range(300)]
    often = [(next(noise), 1, 1000 + number, number % 2, 0.5) for number in range(copies)]
    shared = [(next(noise), 3000 + number, 2, 1 + number % 4, 0.25) for number in range(copies)]
    again = [(next(noise), *row[1:]) for row in [*plain, *often[:2]]]
    return [entry_of("a", plain + often), entry_of("c", plain[:50])], [
        entry_of("b", again + shared),
        entry_of("a", plain),
    ]


def test_memory_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """No table that is spread or looked at has more rows than a few buckets, also of what is there 500 times."""
    seen: list[int] = []

    def noting(work: Any) -> Any:
        def noted(rows: pa.Table, *more: Any) -> Any:
            seen.append(rows.num_rows)
            return work(rows, *more)

        return noted

    for module, name in (
        (ledger_passes, "keyed"), (ledger_passes, "distinct"), (ledger_passes, "answered"), (ledger_passes, "alike"),
        (spent_documents, "_largest"),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, noting(getattr(module, name)))
    entries, planned = many(500)
    monkeypatch.setattr(entries_of, "_ROWS_AT_ONCE", 16)
    found = asked(64, entries, planned)
    assert len(seen) > 50
    assert max(seen) <= 2 * 64
    seen.clear()
    at_once = asked(1 << 19, entries, planned)
    assert max(seen) > 1000
    assert found.spent == at_once.spent
    assert found.composed == at_once.composed
    assert found.spent["content", "total", "m"].value == (250 + 1) * 0.5
    assert found.spent["identity", "total", "m"].value == 125 * (1 + 2 + 3 + 4) * 0.25


def test_a_cap_exactly_reached_fits() -> None:
    """One rounding lower it does not, bucket by bucket as at once; the sentences are the same."""
    entries, planned = many(20)
    most = max(spent.value for spent in asked(1 << 19, entries, planned).spent.values() if spent.reading == "total")
    told = set()
    for rows in (32, 1 << 19):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ledger_passes, "BUCKET_ROWS", rows)
            refuse_over(Caps(total=most), entries, planned)
            with pytest.raises(CapError) as caught:
                refuse_over(Caps(total=math.nextafter(most, 0)), entries, planned)
            told.add(str(caught.value).partition(": a document")[2])
    assert len(told) == 1


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    """Return a ledger with two entries, beyond what is looked at at once."""
    found = Ledger.open(str(tmp_path / "ledger"))
    for entry in many(0)[0]:
        found.enter([entry], None)
    monkeypatch.setattr(ledger_passes, "BUCKET_ROWS", 64)
    return found


def path_of(entry: Held) -> Path:
    return Path(entry.address)


class TestEntriesInFiles:
    def test_that_are_damaged_stop_the_verdict(self, ledger: Ledger) -> None:
        """By the same sentence wherever the damage is met: in the file's end, or in its rows on a worker."""
        first, _ = held = list(ledger.entries())
        data = path_of(first).read_bytes()
        path_of(first).write_bytes(data[:30] + bytes(200) + data[230:])
        with pytest.raises(UserError, match="this entry of the ledger is damaged, and spending"):
            refuse_over(Caps(total=1e9), held, many(0)[1])
        path_of(first).write_bytes(data[:-30])
        with pytest.raises(UserError, match="this entry of the ledger is damaged, and spending"):
            list(ledger.entries())

    def test_that_are_taken_back_meanwhile_are_none(self, ledger: Ledger) -> None:
        held = list(ledger.entries())
        whole = ask(Question(("total",)), held)
        path_of(next(one for one in held if one.about["release"] == "c")).unlink()
        left = ask(Question(("total",)), held)
        assert {place[2] for place in whole.spent} == {"m", "n"}
        assert {place[2] for place in left.spent} == {"m"}

    def test_that_workers_cannot_see_are_counted(self, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
        """A ledger on the disk of whoever asks, and workers elsewhere: what they miss is read here."""
        held, planned = list(ledger.entries()), many(0)[1]
        expected = ask(Question(READINGS, planned=True), held, planned)
        tables, places = Held.tables, []

        class Elsewhere(Here):
            def run(self, function: Any, tasks: Any) -> Any:
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(Held, "tables", missing)
                    patch.setattr(ledger_passes.Source, "is_gone", lambda _: True)
                    return super().run(function, tasks)

        def missing(one: Held) -> Iterator[pa.Table]:
            places.append(one.name)
            raise FileNotFoundError
            yield

        assert ask(Question(READINGS, planned=True), held, planned, Where(Elsewhere())).spent == expected.spent
        assert sorted(places) == sorted(one.name for one in held)
        assert Held.tables is tables

    def test_are_written_in_pieces_with_the_same_bytes(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """As earlier versions wrote them at once; and digested column by column."""
        (entry, _), _ = many(40)
        path = tmp_path / "entry.parquet"
        for size in (1, 7, 1000):
            pieces = (entry.table.slice(first, size) for first in range(0, entry.rows, size))
            written = write_entry(str(path), entry.about, pieces)
            assert path.read_bytes() == entry.data()
            assert written is not None
            assert written.digest(b"s") == entry.digest(b"s")
        monkeypatch.setattr(entries_of, "_GROUP_ROWS", 100)
        pieces = (entry.table.slice(first, 30) for first in range(0, entry.rows, 30))
        assert write_entry(str(path), entry.about, pieces) is None
        monkeypatch.setattr(entries_of, "_ROWS_AT_ONCE", 1)
        assert digest_of(str(path), b"s") == (entry.digest(b"s"), entry.rows)


def test_caps_are_decided_once_where_no_other_run_came_between(tmp_path: Path) -> None:
    """The second look reads only what is new; with something new the caps are decided again."""
    ledger = Ledger.open(str(tmp_path))
    calls: list[int] = []
    ledger.enter(many(0)[0][:1], lambda entries: calls.append(len(entries)))
    assert calls == [0]
    other = Ledger.existing(str(tmp_path))

    def another(entries: Sequence[Any]) -> None:
        calls.append(len(entries))
        if len(calls) == 2:
            other.enter(many(0)[0][1:], None)

    ledger.enter(many(0)[1][:1], another)
    assert calls == [0, 1, 2]

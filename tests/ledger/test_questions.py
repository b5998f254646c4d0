"""SQL over entries says what a count by hand says: one row for equal noise, and exact sums."""

from __future__ import annotations

import os
import tempfile
import uuid
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from corpusveil.budget.accounting import INFINITE, SCALE, as_float
from corpusveil.ledger import questions
from corpusveil.ledger.entries import Entry
from corpusveil.ledger.questions import Books, connected
from tests.calls import refused
from tests.ledger.books import Row, entry_of


def random_rows(seed: int, size: int = 400) -> list[Row]:
    """Return rows of few units and noises, some of them equal, over the whole range of fingerprints."""
    random, tags = np.random.default_rng(seed), np.random.default_rng(1)
    units = [int.from_bytes(tags.bytes(16), "big") for _ in range(40)]
    rows = {}
    for number in random.integers(0, 600, size).tolist():
        unit, words = units[number % 40], number % 7
        rows[unit, number + seed % 2 * 1000] = Row(unit, number + seed % 2 * 1000, words, words * 12 * SCALE + 1)
    return list(rows.values())


def by_hand(entries: list[list[Row]]) -> dict[int, int]:
    """Return the nats of each unit over its different noise."""
    spent = {(row.unit, row.noise): row.nats for rows in entries for row in rows}
    sums: dict[int, int] = defaultdict(int)
    for (unit, _), nats in spent.items():
        sums[unit] += nats
    return sums


def test_sums_are_those_of_a_count_by_hand(tmp_path: Path) -> None:
    """Over releases and overlapping entries of one release; of all units, and of planned ones alone."""
    # the noise of another release has other fingerprints, which rows of an odd seed have
    content = {number: random_rows(number) for number in (0, 2, 1, 3)}
    entries = [entry_of(tmp_path / "in", rows, release="ab"[seed % 2]) for seed, rows in content.items()]
    planned = [row._replace(noise=row.noise + 9000) for row in random_rows(8, 30)]
    for more in ([], [planned]):
        sums = by_hand([*content.values(), *more])
        sums = {unit: nats for unit, nats in sums.items() if not more or unit in {row.unit for row in planned}}
        cap = int(np.median(list(sums.values())))
        with connected() as (_, connection):
            books = Books(connection, entries, [entry_of(tmp_path / "p", rows, release="d") for rows in more])
            most, unit = books.most()
            assert unit is not None
            assert most == max(sums.values()) == sums[unit.int]
            over = {number for number, nats in sums.items() if nats > cap}
            assert {other.int for other in books.over(cap)} == over
            assert books.totals() == sorted(sums.values())
            assert books.spent_by(unit) == by_hand(list(content.values()))[unit.int]
            lines = books.lines(unit)
            assert sum(line.nats for line in lines) == books.spent_by(unit)
            assert {line.about.release for line in lines} <= {"a", "b"}


def test_sums_beyond_64_bits_are_exact_and_what_nothing_bounds_stays_unbounded(tmp_path: Path) -> None:
    rows = [Row(1, n, nats=INFINITE - 1) for n in range(5)] + [Row(2, 9, nats=INFINITE)]
    with connected() as (_, connection):
        books = Books(connection, [entry_of(tmp_path / "in", rows)])
        most, unit = books.most()
        assert (most, unit, books.over(most)) == (5 * (INFINITE - 1), uuid.UUID(int=1), frozenset())
    assert as_float(most) == np.inf


@pytest.mark.parametrize("releases", [600, pytest.param(10_000, marks=pytest.mark.nightly)])
def test_a_ledger_of_many_releases_is_asked_in_bounded_memory(
    releases: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each night adds one; 300 ended every run in 0.5."""
    monkeypatch.setattr(questions, "MEMORY", "200MB" if releases < 1000 else questions.MEMORY)
    (tmp_path / "in").mkdir()
    first = entry_of(tmp_path / "in", [Row(unit, unit) for unit in range(50)])
    entries = []
    for number in range(releases):
        path = tmp_path / "in" / f"{number}.parquet"
        if number:
            os.link(first.path, path)
        entries.append(Entry(str(path), first.about.model_copy(update={"release": f"r{number}"})))
    planned = entry_of(tmp_path / "p", [Row(7, 1000)])
    with connected() as (_, connection):
        books = Books(connection, entries, [planned])
        assert (books.most(), books.over(1)) == ((2 * 10**9, uuid.UUID(int=7)), {uuid.UUID(int=7)})


def test_what_memory_and_folder_do_not_hold_is_refused_by_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(questions, "MEMORY", "1KB")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with refused("unsuitable-data", str(tmp_path), "TMPDIR"), connected() as (_, connection):
        connection.execute("SELECT i FROM range(10000000) t(i) ORDER BY hash(i)").fetchone()

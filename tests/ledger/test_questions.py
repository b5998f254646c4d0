"""SQL over entries says what a count by hand says: one row for equal noise, and exact sums."""

from __future__ import annotations

import uuid
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from corpusveil.budget.accounting import INFINITE, SCALE, as_float
from corpusveil.ledger import questions
from corpusveil.ledger.entries import READINGS
from corpusveil.ledger.questions import Books, connected
from tests.calls import refused
from tests.ledger.books import Row, entry_of


def random_rows(seed: int, size: int = 400) -> list[Row]:
    """Return rows of few units and noises, some of them equal, over the whole range of fingerprints."""
    random, tags = np.random.default_rng(seed), np.random.default_rng(1)
    units = [int.from_bytes(tags.bytes(16), "big") for _ in range(40)]
    rows = {}
    for number in random.integers(0, 600, size).tolist():
        unit = units[number % 40]
        words = number % 7
        rows[unit, number + seed % 2 * 1000] = Row(
            unit, number + seed % 2 * 1000, words, words * SCALE // 3, SCALE // 3 * (words > 0), words * 12 * SCALE + 1
        )
    return list(rows.values())


def by_hand(entries: list[tuple[list[Row], dict[str, str]]]) -> dict[tuple[str, str, int], int]:
    """Return the sum of each reading, metric and unit over different noise of a release."""
    spent: dict[tuple[str, int, int], tuple[str, Row]] = {}
    for rows, given in entries:
        for row in rows:
            spent[given["release"], row.unit, row.noise] = given["metric"], row
    sums: dict[tuple[str, str, int], int] = defaultdict(int)
    for metric, row in spent.values():
        sums["total", metric, row.unit] += row.total
        sums["largest", metric, row.unit] += row.largest
        sums["ldp", "", row.unit] += row.ldp
    return sums


@pytest.mark.parametrize("range_rows", [1 << 21, 100])
def test_sums_are_those_of_a_count_by_hand(range_rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over releases, metrics and overlapping entries of one release; of all units, and of planned ones alone."""
    monkeypatch.setattr(questions, "RANGE_ROWS", range_rows)
    kinds = [("a", "m"), ("a", "m"), ("b", "m"), ("c", "n")]
    # the noise of another release has other fingerprints, which rows of an odd seed have
    content = [(random_rows(2 * n + (release == "b")), {"release": release, "metric": metric})
               for n, (release, metric) in enumerate(kinds)]  # fmt: skip
    content[3] = ([row._replace(noise=row.noise + 5000) for row in content[3][0]], content[3][1])
    entries = [entry_of(tmp_path / "in", rows, **given) for rows, given in content]
    planned = ([row._replace(noise=row.noise + 9000) for row in random_rows(8, 30)], {"release": "d", "metric": "m"})
    for more, of_planned in (([], False), ([planned], True)):
        sums = by_hand([*content, *more])
        units = {row.unit for row in planned[0]}
        sums = {key: value for key, value in sums.items() if not of_planned or key[2] in units}
        with connected(str(tmp_path)) as connection:
            books = Books(connection, entries, [entry_of(tmp_path / "p", rows, **given) for rows, given in more])
            caps = {name: int(np.median([v for key, v in sums.items() if key[0] == name])) for name in READINGS}
            most = books.worst(caps, of_planned=of_planned)
            assert {(worst.reading, worst.metric) for worst in most} == {key[:2] for key in sums}
            for worst in most:
                mine = {unit: v for (*place, unit), v in sums.items() if place == [worst.reading, worst.metric]}
                assert worst.value == max(mine.values()) == mine[worst.unit.int]
                assert worst.over == sum(value > caps[worst.reading] for value in mine.values())


def test_sums_beyond_64_bits_are_exact_and_what_nothing_bounds_stays_unbounded(tmp_path: Path) -> None:
    rows = [Row(1, n, total=INFINITE - 1, largest=1) for n in range(5)] + [Row(2, 9, total=INFINITE)]
    with connected(str(tmp_path)) as connection:
        most = Books(connection, [entry_of(tmp_path / "in", rows)]).worst({"total": 5 * (INFINITE - 1)})
    assert (most[0].value, most[0].unit, most[0].over) == (5 * (INFINITE - 1), uuid.UUID(int=1), 0)
    assert as_float(most[0].value) == np.inf


def test_what_memory_and_folder_do_not_hold_is_refused_by_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(questions, "MEMORY", "1KB")
    with refused("too-large", str(tmp_path), "TMPDIR"), connected(str(tmp_path)) as connection:
        connection.execute("SELECT i FROM range(10000000) t(i) ORDER BY hash(i)").fetchone()

"""(ε, δ) over releases: composed exactly within a metric, added across, and decided before anything is drawn."""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import corpusveil as cv
from corpusveil.budget.composition import epsilon_at
from corpusveil.budget.privacy_loss import BoundedRange, Pure
from corpusveil.cli.main import run
from corpusveil.errors import BadValueError, CapError, UnsetError
from corpusveil.mechanisms import registry
from corpusveil.spaces import Space
from corpusveil.storage.ledger import ROWS, Entry
from corpusveil.transforms.composed_spending import composed_epsilon
from corpusveil.transforms.spending import Caps, worst, worst_composed
from tests.contracts.spaces import small_space

DELTA = 1e-6


@pytest.fixture(scope="module")
def space() -> Space:
    return small_space(120)


def entry(
    rows: Sequence[tuple[int, int, float]], *, release: str = "r", metric: str = "m", mechanism: str = "ring-geometric",
    noise: str | None = None,
) -> Entry:  # fmt: skip
    """Return an entry of documents: which, its tokens, and the epsilon of each."""
    tags = [
        secrets.token_bytes(16) if noise is None else f"{noise}{number:04}".encode().ljust(16) for number, _, _ in rows
    ]
    content = [f"c{number}".encode().ljust(16) for number, _, _ in rows]
    identity = [f"i{number}".encode().ljust(16) for number, _, _ in rows]
    tokens, epsilons = [count for _, count, _ in rows], [epsilon for _, _, epsilon in rows]
    totals = [count * epsilon for count, epsilon in zip(tokens, epsilons, strict=True)]
    table = pa.table(
        dict(zip(ROWS.names, (tags, content, identity, tokens, totals, epsilons, totals), strict=True)), ROWS
    )
    about = {
        "release": release,
        "metric": metric,
        "mechanism": mechanism,
        "space": "5" * 64,
        "corpus": "c",
        "column": "t",
    }
    return Entry(about, table)


def test_releases_in_one_metric_compose_exactly() -> None:
    """Three releases of 200 tokens at 0.1 are 600 tokens, not three times what 200 are."""
    found = worst_composed([entry([(0, 200, 0.1)], release=name) for name in "abc"], DELTA)
    assert found is not None
    assert found.epsilon == epsilon_at([(Pure(0.1), 600)], DELTA)
    assert found.epsilon < 3 * epsilon_at([(Pure(0.1), 200)], DELTA)
    assert sorted(found.before) == ["a", "b", "c"]


def test_across_metrics_epsilons_and_deltas_add_up() -> None:
    found = worst_composed([entry([(0, 200, 0.1)]), entry([(0, 300, 0.2)], metric="n", mechanism="santext")], DELTA)
    apart = epsilon_at([(Pure(0.1), 200)], DELTA / 2) + epsilon_at([(BoundedRange(0.2), 300)], DELTA / 2)
    assert found is not None
    assert found.epsilon == pytest.approx(apart, rel=1e-12)
    assert found.metrics == 2


def test_a_share_of_a_delta_that_is_too_small_to_compose_at_is_pure() -> None:
    found = worst_composed([entry([(0, 200, 0.1)]), entry([(0, 300, 0.2)], metric="n")], 1e-10)
    assert found is not None
    assert found.epsilon == pytest.approx(80.0)


def test_the_worst_of_many_documents_is_found_without_composing_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against composing each: the same document, after few of them."""
    random = np.random.default_rng(2)
    entries = [
        entry([(n, int(random.integers(0, 60)), float(random.choice([0.1, 0.4, 1.0]))) for n in range(300)],
              release=name, metric=metric, mechanism=mechanism)
        for name, metric, mechanism in (("a", "m", "ring-geometric"), ("b", "m", "ring-geometric"), ("c", "n", "tem"))
    ]  # fmt: skip
    slow = 0.0
    for number in range(300):
        rows = [{**part.about, **part.table.slice(number, 1).to_pylist()[0]} for part in entries]
        slow = max(slow, composed_epsilon(rows, DELTA))
    calls: list[int] = []
    once = composed_epsilon
    monkeypatch.setattr(
        "corpusveil.transforms.composed_spending.composed_epsilon",
        lambda rows, delta: (calls.append(1), once(rows, delta))[1],
    )
    found = worst_composed(entries, DELTA)
    assert found is not None
    assert found.epsilon == slow
    assert len(calls) < 100


def test_different_shares_of_one_document_are_not_counted_too_low() -> None:
    """An entry has only the largest share and the sum: the stated bound is at least that of the shares themselves."""
    shares = [0.5] * 10 + [0.1] * 90
    row = {"metric": "m", "mechanism": "ring-geometric", "tokens": 100, "total": sum(shares), "largest": 0.5}
    true = epsilon_at([(Pure(0.5), 10), (Pure(0.1), 90)], DELTA)
    assert true <= composed_epsilon([row], DELTA) <= sum(shares)


def test_equal_noise_is_free_and_what_promises_nothing_is_not() -> None:
    again = [entry([(0, 100, 0.1)], noise="n"), entry([(0, 100, 0.1)], noise="n")]
    found = worst_composed(again, DELTA)
    assert found is not None
    assert found.epsilon == epsilon_at([(Pure(0.1), 100)], DELTA)
    nothing = worst_composed([entry([(0, 100, math.inf)])], DELTA)
    assert nothing is not None
    assert nothing.epsilon == math.inf


@pytest.mark.parametrize("name", [name for name in registry.names() if registry.find(name).private])
def test_what_a_ledger_takes_for_a_token_bounds_what_its_mechanism_says(name: str, space: Space) -> None:
    """A ledger knows names and epsilons only: its loss at distance 1 is never below the mechanism's own."""
    given = {"K": 5} if name == "custext" else {}
    mechanism = registry.make(name, space, **given)
    for epsilon in (0.8, 14.0):  # at the larger one words of two groups of custext are within distance 1
        taken = BoundedRange(epsilon) if mechanism.ranged else Pure(epsilon)
        own = mechanism.privacy_loss(epsilon, 1.0)
        assert own is not None
        for count in (1, 30):
            assert epsilon_at([(own, count)], 1e-4) <= epsilon_at([(taken, count)], 1e-4) + 2.0**-18 * count


class TestCaps:
    def test_are_in_epsilon_and_delta_over_releases(self, space: Space, tmp_path: Path) -> None:
        """By sums the third release would exceed 20; composed, many fit, and the first that does not draws nothing."""
        text = " ".join(space.word(number) for number in range(100))
        ledger = cv.Ledger(str(tmp_path / "ledger"), cap=20, cap_delta=DELTA)
        ((epsilon, count),) = cv.Budget(10, "document").of_words(100).items()
        fitting = max(n for n in range(1, 40) if epsilon_at([(Pure(epsilon), count * n)], DELTA) <= 20)
        assert fitting > 3

        def release_again() -> None:
            mechanism = cv.mechanism("ring-geometric", space)
            release = cv.Release(mechanism, cv.Budget(10, "document"), key=cv.Key.generate())
            cv.privatize([text], release, ids=["a"], ledger=ledger, corpus="c")

        for _ in range(fitting):
            release_again()
        with pytest.raises(CapError, match=r"cap 20: a document would have spent 2[0-9.]* at delta = 1e-06"):
            release_again()
        spent = ledger.spent(delta=DELTA)
        assert spent.composed == epsilon_at([(Pure(epsilon), count * fitting)], DELTA)
        assert len(spent.releases) == fitting

    @pytest.mark.parametrize(
        ("values", "error"),
        [
            ({"delta": 1e-6}, UnsetError),
            ({"total": 1.0, "delta": 0.0}, BadValueError),
            ({"total": 1.0, "delta": 2.0}, BadValueError),
        ],
    )
    def test_need_a_delta_that_is_one_and_a_cap(self, values: dict[str, float], error: Any) -> None:
        with pytest.raises(error, match="cap_delta"):
            Caps(**values)


class TestLookUp:
    @pytest.fixture
    def ledger(self, space: Space, tmp_path: Path) -> cv.Ledger:
        ledger = cv.Ledger(str(tmp_path / "ledger"))
        texts = ["aaaa aaab aaac", "aaad aaae"]
        for epsilon, ids in ((1.0, ["a", 17]), (2.0, ["b", 17])):  # the first text comes again under another id
            release = cv.Release(cv.mechanism("ring-geometric", space), cv.Budget(epsilon), key=cv.Key.generate())
            cv.privatize(texts, release, ids=ids, ledger=ledger, corpus="mine")
        return ledger

    @pytest.mark.parametrize(("document", "total"), [("aaaa aaab aaac", 9.0), ("a", 9.0), ("b", 9.0), ("17", 6.0)])
    def test_by_text_or_by_id_says_what_caps_would_count(self, ledger: cv.Ledger, document: str, total: float) -> None:
        found = ledger.spent_on(document, delta=DELTA)
        (metric,) = found.names
        assert found.worst["total", metric] == total
        assert sorted(line["total"] for line in found.releases) == [total / 3, total * 2 / 3]
        assert found.composed is not None
        assert found.composed <= total

    def test_nothing_is_said_of_a_document_that_is_not_there(self, ledger: cv.Ledger) -> None:
        assert ledger.spent_on("aaaa").worst == {}
        assert "nothing" in repr(ledger.spent_on("c"))

    def test_nothing_is_found_without_the_ledgers_secret(self, ledger: cv.Ledger) -> None:
        """Entries alone recognise no document: a guess cannot be checked."""
        Path(ledger.url, "secret.key").write_bytes(bytes(32))
        assert ledger.spent_on("a").worst == {}
        assert ledger.spent_on("aaaa aaab aaac").worst == {}

    def test_the_command_says_it_in_words_and_in_json(
        self, ledger: cv.Ledger, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """A metric is its mechanism and space, a release has its day; JSON has every digit."""
        assert run(["ledger", "show", ledger.url, "--document", "a", "--delta", "1e-6"]) == 0
        shown = capsys.readouterr().out
        assert "ring-geometric on space " in shown
        assert "-".join(ledger.spent().releases[0]["date"].split("-")[:2]) in shown
        assert run(["ledger", "show", ledger.url, "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert {one["spent"] for one in told["worst"] if one["reading"] == "total"} == {9.0}
        assert run(["ledger", "show", ledger.url, "--document", "x", "--delta", "7"]) == 2

    def test_alike_called_metrics_are_told_apart(self) -> None:
        from corpusveil.transforms.ledger_summary import Names

        called = Names([entry([(0, 1, 1.0)], metric="1" * 16), entry([(0, 1, 1.0)], metric="2" * 16)])
        assert called.metric("1" * 16) == "ring-geometric on space 55555555, metric 11111111"


@pytest.mark.parametrize("rows", [16, 64])
def test_in_parts_the_worst_document_is_the_same(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Documents are compared part by part where there are many; no part hides one."""
    entries = [entry([(n, n + 1, 0.3) for n in range(40)], release=name) for name in "abc"]
    whole = worst_composed(entries, DELTA, entries[:1]), max(spent.value for spent in worst(entries, ["total"]))
    monkeypatch.setattr("corpusveil.transforms.ledger_passes.BUCKET_ROWS", rows)
    in_parts = worst_composed(entries, DELTA, entries[:1]), max(spent.value for spent in worst(entries, ["total"]))
    assert in_parts == whole


def test_pure_readings_are_as_they_were() -> None:
    """Composed figures are shown in addition to the sums, and do not replace them."""
    entries = [entry([(0, 200, 0.1)], release=name) for name in "ab"]
    (total,) = {spent.value for spent in worst(entries, ["total"])}
    assert total == 40.0

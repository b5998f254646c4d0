"""How runs enter what they will spend, under every interleaving of their steps and crashes at every one of them.

The steps are those of the real code (``enter``); the store is a set of names, and an entry is its release and shard.
"""

from __future__ import annotations

import functools
import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from corpusveil.errors import CapError, CorpusveilError, WorkError
from corpusveil.ledger.protocol import Refuse, enter

Entry = tuple[str, int]
"""What a release spends on a shard of one unit: 1."""
Protocol = Callable[["Replay", Mapping[str, Entry], str, Refuse | None], None]


@dataclass(frozen=True)
class Step:
    """An operation on the store: to ``list`` all names, or on one file."""

    what: str
    name: str = ""


class NextError(Exception):
    """The step that comes after all outcomes that are known."""


@dataclass
class Replay:
    """A store with outcomes that are known, which then raises the next step."""

    outcomes: list[Any]

    def _step(self, what: str, name: str = "") -> Any:
        if not self.outcomes:
            raise NextError(Step(what, name))
        return self.outcomes.pop(0)

    def listed(self) -> Any:
        return self._step("list")

    def read(self, name: str) -> Any:
        return self._step("read", name)

    def create(self, name: str, data: Any = None) -> Any:
        return self._step("create", name)

    def remove(self, name: str) -> Any:
        return self._step("remove", name)


@functools.cache
def digest_of(release: str, shard: int) -> str:
    return hashlib.blake2b(f"{release} {shard}".encode(), digest_size=16).hexdigest()


def refusing(cap: float, planned: Collection[Entry]) -> Refuse:
    """Refuse where the unit of a planned shard would have spent more than a cap: one sum over different noise."""

    def refuse(entries: Sequence[Entry]) -> None:
        spent = Counter(shard for _, shard in {*entries, *planned})
        if any(spent[shard] > cap for _, shard in planned):
            raise CapError("full")

    return refuse


def without_a_second_look(store: Replay, planned: Mapping[str, Entry], run: str, refuse: Refuse | None) -> None:
    """Look once, and then enter."""
    if refuse is not None:
        there = [store.read(name) for name in store.listed() if name.endswith(".parquet")]
        refuse([entry for entry in there if entry is not None])
    enter(store, planned, run, None)


@dataclass
class Run:
    """One run of a release over shards; runs of one release draw the same noise."""

    release: str
    number: int
    cap: float | None = 1.0
    shards: tuple[int, ...] = (0,)
    protocol: Protocol = enter
    known: dict[Any, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.number:016x}"

    def next(self, history: tuple[Any, ...]) -> Step | str:
        """Return the step after these outcomes, or how the run ended."""
        if history not in self.known:
            self.known[history] = self._replayed(history)
        then: Step | str = self.known[history]
        return then

    def _replayed(self, history: tuple[Any, ...]) -> Step | str:
        planned = {digest_of(self.release, shard): (self.release, shard) for shard in self.shards}
        refuse = None if self.cap is None else refusing(self.cap, planned.values())
        known = [ENTRIES[outcome[:32]] if what == "read" and outcome else outcome for what, outcome in history]
        try:
            self.protocol(Replay(known), planned, self.name, refuse)
        except NextError as step:
            then: Step = step.args[0]
            return then
        except (CapError, WorkError):
            return "refused"
        return "admitted"


ENTRIES = {digest_of(release, shard): (release, shard) for release in "abc" for shard in (0, 1)}
State = tuple[frozenset[str], tuple[tuple[Any, ...], ...]]


def after(store: frozenset[str], step: Step, half: Any, order: int) -> tuple[frozenset[str], Any]:
    """Return the store after a step, and its outcome; a listing of two halves gives the first one first."""
    if step.what == "list":
        if not order:
            return store, tuple(sorted(store))
        seen = frozenset(name for name in store if (name < "8") == ((half is None) == (order > 0)))
        return store, seen if half is None else tuple(sorted(seen | half))
    if step.what == "read":
        return store, step.name if step.name in store else None
    if step.what == "create":
        return store | {step.name}, step.name not in store
    return store - {step.name}, None


def explored(runs: list[Run], *, order: int = 0) -> tuple[int, set[tuple[str, ...]]]:
    """Go through every interleaving; return how many states there are, and how all runs can end.

    Raises AssertionError for a state in which more was drawn than a cap allows or than the ledger says. With an
    ``order`` a listing takes two steps and each sees half of the names, the low ones first (1) or last (-1).
    """
    ends: set[tuple[str, ...]] = set()
    first: State = (frozenset(), tuple(() for _ in runs))
    seen, waiting = {first}, [first]
    while waiting:
        store, histories = waiting.pop()
        following = []
        for number, (run, history) in enumerate(zip(runs, histories, strict=True)):
            if history and isinstance(history[-1], str):  # it ended
                continue
            half = history[-1][1] if history and history[-1][0] == "half" else None
            plain = history[:-1] if half is not None else history
            step = run.next(plain)
            if isinstance(step, str):
                changed, then = store, ("drawn" if step == "admitted" else step,)
                assert step != "refused" or not any(run.name in name for name in store), "a refused run left an entry"
            else:
                changed, outcome = after(store, step, half, order)
                is_half = step.what == "list" and order and half is None
                then = (*plain, ("half" if is_half else step.what, outcome))
            for place, ending in ((changed, then), (store, ("crashed",))):
                following.append((place, (*histories[:number], ending, *histories[number + 1 :])))
        if not following:
            ends.add(tuple(history[-1] for history in histories))
        for state in following:
            if state not in seen:
                _check(runs, state)
                seen.add(state)
                waiting.append(state)
    return len(seen), ends


def _check(runs: list[Run], state: State) -> None:
    store, histories = state
    drawn = [run for run, history in zip(runs, histories, strict=True) if history[-1:] == ("drawn",)]
    spent = {(run.release, shard) for run in drawn for shard in run.shards}
    there = {name[:32] for name in store}
    assert {digest_of(*one) for one in spent} <= there, "drawn, and not in the ledger"
    for shard in (0, 1):
        capped = [run for run in drawn if run.cap is not None and shard in run.shards]
        total = len({run.release for run in capped})
        assert total <= max((run.cap or 0 for run in capped), default=0), "more was drawn than a cap allows"


def runs(*releases: str, cap: float | None = 1.0, **more: Any) -> list[Run]:
    return [Run(release, number, cap, **more) for number, release in enumerate(releases)]


@pytest.mark.parametrize("order", [0, 1, -1])
@pytest.mark.parametrize("releases", ["ab", "aa"])
@pytest.mark.parametrize("shards", [(0,), (0, 1)])
def test_two_runs(releases: str, shards: tuple[int, ...], order: int) -> None:
    """With room for one of two releases, or for two runs of one; listings that are no picture of one moment, too."""
    states, ends = explored(runs(*releases, shards=shards), order=order)
    assert states > 100
    assert (("drawn", "drawn") in ends) == (releases == "aa")
    assert {("drawn", "refused"), ("refused", "drawn")} <= ends or releases == "aa"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("releases", "cap", "together"),
    [
        ("aab", 1.0, False),
        pytest.param("abc", 1.0, False, marks=pytest.mark.nightly),
        pytest.param("abc", 2.0, False, marks=pytest.mark.nightly),
        pytest.param("abb", 2.0, True, marks=pytest.mark.nightly),
    ],
)
def test_three_runs(releases: str, cap: float, *, together: bool) -> None:
    """The run that relied on an entry which another withdrew: a second run of a release beside one of another."""
    states, ends = explored(runs(*releases, cap=cap))
    assert states > 1000
    assert (("drawn",) * 3 in ends) == together
    assert any(end.count("drawn") == cap for end in ends)


def test_runs_without_caps_are_counted_by_those_with() -> None:
    """Who set no cap draws, and never takes back what others rely on."""
    one, other = runs(*"ab")
    one.cap = None
    for order in (0, 1, -1):
        _, ends = explored([one, other], order=order)
        assert ("drawn", "refused") in ends
        assert not {end for end in ends if end[0] == "refused"}


@pytest.mark.slow
@pytest.mark.nightly
def test_runs_over_parts_of_a_corpus() -> None:
    """What one run enters for both shards, others enter for one of them each."""
    both, first, second = runs(*"abc")
    both.shards, second.shards = (0, 1), (1,)
    _, ends = explored([both, first, second])
    assert ("refused", "drawn", "drawn") in ends
    assert ("drawn", "refused", "refused") in ends


def test_one_look_only_would_be_noticed() -> None:
    """Control for the explored protocol."""
    with pytest.raises(AssertionError, match="more was drawn than a cap allows"):
        explored(runs(*"ab", protocol=without_a_second_look))


def test_who_lost_to_a_run_that_entered_meanwhile_may_run_again() -> None:
    """A cap that was full before is a wrong call; one that another run filled just now is work that failed."""
    mine, other = {digest_of("a", 0): ("a", 0)}, f"{digest_of('b', 0)}.{1:016x}.parquet"

    def ended(*listings: list[str]) -> str:
        class Store(Replay):
            def _step(self, what: str, name: str = "") -> Any:
                return self.outcomes.pop(0) if what == "list" else ("b", 0) if what == "read" else None

        try:
            enter(Store([*listings]), mine, f"{0:016x}", refusing(1.0, mine.values()))
        except CorpusveilError as error:
            return error.code
        return ""

    assert ended([other]) == CapError.code
    assert ended([], [], [other]) == WorkError.code

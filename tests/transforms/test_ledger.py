"""The ledger: what documents have spent is never counted too low, and a cap holds before anything is drawn."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import math
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import corpusveil as cv
from corpusveil.budget.accounting import added, readings, upward
from corpusveil.cli.main import run
from corpusveil.errors import BadShardsError, CapError, UnsetError, UserError, VersionError
from corpusveil.jobs.local import Local
from corpusveil.spaces import Space, Vectors
from corpusveil.storage.ledger import ENTRIES, ROWS, VERSION, Entry, Ledger
from corpusveil.storage.records import Records
from corpusveil.storage.rows import Columns
from corpusveil.transforms.corpus import privatize_corpus
from corpusveil.transforms.ledger_check import differences
from corpusveil.transforms.ledger_summary import summary
from corpusveil.transforms.planning import forecast
from corpusveil.transforms.spending import Caps, Spending, reserve_table, worst
from corpusveil.transforms.statement import statement
from tests.engines.corpora import TEST_KEY, UNKNOWN, WORDS, make_space, write_shard
from tests.transforms.histories import STEPS, beyond_what_is_owed, release_of


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Space:
    return make_space(tmp_path_factory.mktemp("space"))


def privatize(release: cv.Release, source: Path, output: Path, ledger: Path, **caps: float) -> None:
    spending = Spending(str(ledger), Caps(**caps))
    privatize_corpus(release, [str(source)], str(output), Local(), corpus="news", spending=spending)


def most(ledger: Path, reading: str = "total") -> float:
    return max(spent.value for spent in worst(Ledger.existing(str(ledger)).entries(), [reading]))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    for number in range(2):
        texts = [{"text": f"{WORDS[number]}, {WORDS[row]} {WORDS[2 * row]} 17 {UNKNOWN}."} for row in range(30)]
        write_shard(tmp_path / "in" / f"s{number}.jsonl", texts)
    return tmp_path / "in"


class TestCaps:
    def test_three_releases_fit_and_the_fourth_is_refused(self, space: Space, source: Path, tmp_path: Path) -> None:
        """A cap of 3 with releases of 1 each: the fourth says what is spent and by which, and writes nothing."""
        write_shard(tmp_path / "one" / "s.jsonl", [{"text": WORDS[3]}, {"text": f"{WORDS[1]} {WORDS[2]}"}])
        source = tmp_path / "one"
        done = [release_of(space, 1.0, number) for number in range(3)]
        for number, release in enumerate(done):
            privatize(release, source, tmp_path / f"out{number}", tmp_path / "ledger", total=3.0)
        before = sorted((tmp_path / "ledger" / "entries").iterdir())
        with pytest.raises(UserError, match="cap 3: a document would have spent 4") as caught:
            privatize(release_of(space, 1.0, 3), source, tmp_path / "out3", tmp_path / "ledger", total=3.0)
        for release in done:
            assert f"1 by release {release.digest[:16]}-{release.key.fingerprint()[:16]}" in str(caught.value)
        assert not (tmp_path / "out3").exists()
        assert not (tmp_path / "out3.records").exists()
        assert sorted((tmp_path / "ledger" / "entries").iterdir()) == before
        privatize(release_of(space, 1.0, 3), source, tmp_path / "out3", tmp_path / "ledger", total=4.0)
        assert most(tmp_path / "ledger") == 4.0

    @pytest.mark.parametrize(("caps", "fits"), [
        ({"total": 2.0}, True), ({"total": 1.9}, False), ({"largest": 1.0}, True), ({"largest": 0.9}, False),
        ({"ldp": 1000.0}, True), ({"ldp": 10.0}, False),
    ])  # fmt: skip
    def test_each_reading_has_its_own(
        self, space: Space, tmp_path: Path, caps: dict[str, float], *, fits: bool
    ) -> None:
        """Two tokens of epsilon 1: 2 in all, 1 for a token, and plain LDP by the mechanism and the public law."""
        write_shard(tmp_path / "in" / "s.jsonl", [{"text": f"{WORDS[1]} {WORDS[2]}"}])
        call = functools.partial(
            privatize, release_of(space, 1.0, 0, "token"), tmp_path / "in", tmp_path / "out", tmp_path / "ledger"
        )
        if fits:
            call(**caps)
        else:
            with pytest.raises(UserError, match="cap"):
                call(**caps)

    def test_of_another_metric_do_not_add_up(self, space: Space, tmp_path: Path, source: Path) -> None:
        """A sum over two mechanisms means nothing; plain LDP adds up over both."""
        first = release_of(space)
        other = cv.Release(
            cv.mechanism("diffractor-exponential", space), cv.Budget(1.0, "document"), cv.TextPolicy(), first.key
        )
        privatize(first, source, tmp_path / "a", tmp_path / "ledger")
        ldp = most(tmp_path / "ledger", "ldp")
        privatize(other, source, tmp_path / "b", tmp_path / "ledger", total=1.0)
        assert most(tmp_path / "ledger") <= 1.0
        assert most(tmp_path / "ledger", "ldp") > 1.5 * ldp

    def test_are_exceeded_by_what_has_no_guarantee(self, space: Space, source: Path, tmp_path: Path) -> None:
        """A mechanism that promises nothing spends without bound, in every reading."""
        mechanism = cv.mechanism("custext-per-word", space)
        release = cv.Release(mechanism, cv.Budget(1.0), cv.TextPolicy(), cv.Key(TEST_KEY), accept_no_guarantee=True)
        for name in ("total", "largest", "ldp"):
            with pytest.raises(UserError, match="would have spent inf"):
                privatize(release, source, tmp_path / name, tmp_path / "ledger", **{name: 1e9})
        privatize(release, source, tmp_path / "out", tmp_path / "ledger")
        assert most(tmp_path / "ledger") == math.inf
        assert run(["ledger", "show", str(tmp_path / "ledger")]) == 0

    @pytest.mark.parametrize("value", [0.0, -1.0, math.nan])
    def test_are_above_zero(self, value: float) -> None:
        with pytest.raises(UserError, match="cap_token"):
            Caps(largest=value)


class TestColumns:
    """The text column's name makes noise fresh, so it is counted."""

    def test_renaming_it_is_a_further_release_each_time(self, space: Space, tmp_path: Path) -> None:
        """Six names are six times the budget; a cap refuses what goes beyond, and records say what is missing."""
        ledger = tmp_path / "ledger"
        for number in range(6):
            write_shard(tmp_path / f"in{number}" / "s.jsonl", [{f"col{number}": WORDS[3]}])
            call = functools.partial(
                privatize_corpus, release_of(space), [str(tmp_path / f"in{number}")], str(tmp_path / f"out{number}"),
                Local(), columns=Columns(f"col{number}"), corpus="news",
            )  # fmt: skip
            if number == 3:
                with pytest.raises(UserError, match=r"cap 3.5: a document would have spent 4 .* spent so far: 3 by"):
                    call(spending=Spending(str(ledger), Caps(total=3.5)))
            call(spending=Spending(str(ledger), Caps(total=10.0)))
        assert most(ledger) == 6.0
        records = [Records(str(tmp_path / f"out{number}.records")) for number in range(6)]
        assert not list(differences(Ledger.existing(str(ledger)), records))
        assert [line["column"] for line in summary(list(Ledger.existing(str(ledger)).entries()))] == [
            f"col{number}" for number in range(6)
        ]
        for name in Ledger.existing(str(ledger)).names()[1:]:
            (ledger / ENTRIES / name).unlink()
        assert sum(one.too_low for one in differences(Ledger.existing(str(ledger)), records)) == 5

    @pytest.mark.parametrize("duplicates", ["independent", "same-noise"])
    def test_two_of_equal_text_add_up(self, space: Space, tmp_path: Path, duplicates: Any) -> None:
        """A title that is the body, too: what is drawn for both is independent."""
        write_shard(tmp_path / "in" / "s.jsonl", [{"title": WORDS[3], "body": WORDS[3]}])
        release = dataclasses.replace(release_of(space), duplicates=duplicates)

        def go(name: str, cap: float) -> None:
            privatize_corpus(
                release, [str(tmp_path / "in")], str(tmp_path / name), Local(), columns=Columns(name),
                corpus="news", spending=Spending(str(tmp_path / "ledger"), Caps(total=cap)),
            )  # fmt: skip

        go("title", 1.0)
        with pytest.raises(UserError, match="would have spent 2"):
            go("body", 1.0)
        go("body", 2.0)
        assert most(tmp_path / "ledger") == 2.0


class TestNames:
    def test_a_corpus_with_ids_needs_one(
        self, space: Space, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """In dated folders an edited document would be another one: refused, by a plan too; under a name it adds up."""
        release = release_of(space)
        for day in (1, 2):
            write_shard(tmp_path / f"day{day}" / "s.jsonl", [{"id": "a", "text": f"{WORDS[3]} {WORDS[day]}"}])
        columns, caps = Columns(id="id"), Caps(total=1.0)

        def go(day: int, corpus: str | None) -> None:
            privatize_corpus(
                release, [str(tmp_path / f"day{day}")], str(tmp_path / f"out{day}"), Local(), columns=columns,
                corpus=corpus, spending=Spending(str(tmp_path / "ledger"), caps),
            )  # fmt: skip

        with pytest.raises(UnsetError):
            go(1, None)
        with pytest.raises(UnsetError):
            forecast(release, [str(tmp_path / "day1")], columns=columns, spending=Spending(str(tmp_path / "ledger")))
        go(1, "news")
        with pytest.raises(CapError):
            go(2, "news")

    def test_an_empty_one_is_refused(self, space: Space, source: Path, tmp_path: Path) -> None:
        with pytest.raises(UnsetError):
            privatize_corpus(release_of(space), [str(source)], str(tmp_path / "out"), Local(), corpus="")

    def test_equal_noise_is_spent_once_wherever_its_file_lies(self, space: Space, source: Path, tmp_path: Path) -> None:
        """Moved to a subfolder, under the corpus' name and a root there; in another place of the corpus it is fresh."""
        release = release_of(space)

        def go(output: str, root: Path, cap: float) -> list[str]:
            privatize_corpus(
                release, [str(source)], str(tmp_path / output), Local(), root=str(root), corpus="news",
                spending=Spending(str(tmp_path / "ledger"), Caps(total=cap)),
            )  # fmt: skip
            return [path.read_text() for path in sorted((tmp_path / output / "data").iterdir())]

        first = go("a", source, 1.0)
        (source / "sub").mkdir()
        for path in source.glob("*.jsonl"):
            path.rename(source / "sub" / path.name)
        assert go("b", source / "sub", 1.0) == first
        with pytest.raises(CapError):
            go("c", source, 1.0)
        assert not set(first) & set(go("d", source, 2.0))


class TestTables:
    """Texts that lie in no file: the same protocol, and the same counting."""

    def reserve(self, release: cv.Release, ledger: Path, cap: float | None, *texts: str | None) -> None:
        ids = [f"i{number}" for number in range(len(texts))]
        column = pa.array(texts, pa.large_string())
        reserve_table(Spending(str(ledger), Caps(total=cap)), release, "text", [column], ids, "reviews")

    def test_are_counted_and_refused(self, space: Space, tmp_path: Path) -> None:
        """One release twice is one; another key is a further one; missing texts spend nothing; an edit adds up."""
        ledger, release, other = tmp_path / "ledger", release_of(space), release_of(space, number=1)
        for _ in range(2):
            self.reserve(release, ledger, 1.0, WORDS[1], None, WORDS[2])
        assert len(Ledger.existing(str(ledger)).names()) == 1
        with pytest.raises(UserError, match=r"cap 1: .* spent 2 .* so far: 1 by release .* this run: 1\."):
            self.reserve(other, ledger, 1.0, WORDS[2])
        with pytest.raises(UserError, match="cap 1"):
            self.reserve(release, ledger, 1.0, WORDS[9])
        assert len(Ledger.existing(str(ledger)).names()) == 1
        self.reserve(other, ledger, None, WORDS[2])
        assert most(ledger) == 2.0

    def test_are_known_to_runs_over_files(self, space: Space, tmp_path: Path) -> None:
        """The same id, column and text under one release is the same noise, whichever way it is made."""
        write_shard(tmp_path / "in" / "s.jsonl", [{"id": "i0", "text": WORDS[1]}])
        release = release_of(space)
        privatize_corpus(
            release, [str(tmp_path / "in")], str(tmp_path / "out"), Local(), columns=Columns(id="id"),
            corpus="reviews", spending=Spending(str(tmp_path / "ledger")),
        )  # fmt: skip
        self.reserve(release, tmp_path / "ledger", 1.0, WORDS[1])
        assert (tmp_path / "out" / "data").exists()
        (line,) = [json.loads(one) for path in (tmp_path / "out" / "data").iterdir() for one in path.open()]
        assert cv.privatize([WORDS[1]], release, ids=["i0"]) == [line["text"]]


class TestOtherVersions:
    def test_of_entries_are_refused(self, tmp_path: Path) -> None:
        """What an earlier version wrote says nothing of columns: by one sentence, in all that reads a ledger."""
        ledger = Ledger.open(str(tmp_path))
        entry = entry_of(2)
        old = pa.table({name: entry.table[name] for name in ROWS.names[1:]})
        about = {name: value for name, value in entry.about.items() if name not in ("version", "column")}
        old = old.replace_schema_metadata({"corpusveil.ledger": json.dumps(about)})
        name = f"{'0' * 32}.parquet"
        (tmp_path / ENTRIES).mkdir(exist_ok=True)
        pq.write_table(old, tmp_path / ENTRIES / name)
        for call in (lambda: list(ledger.entries()), lambda: ledger.enter([entry], lambda _: None)):
            with pytest.raises(
                UserError, match="version 1 of the ledger, and this corpusveil reads versions 2 and 3; start"
            ):
                call()
        assert ledger.names() == [name]
        assert [one.too_low for one in differences(ledger, [])] == [True]

    def test_of_records_are_refused(self, space: Space, source: Path, tmp_path: Path) -> None:
        """Those without a version know documents by another identity: neither gone on with nor verified."""
        privatize(release_of(space), source, tmp_path / "out", tmp_path / "ledger")
        run = tmp_path / "out.records" / "run.json"
        told = json.loads(run.read_text())
        assert (told["version"], told["corpus"]) == (2, "news")
        run.write_text(json.dumps({name: value for name, value in told.items() if name not in ("version", "corpus")}))
        with pytest.raises(VersionError):
            privatize(release_of(space), source, tmp_path / "out", tmp_path / "ledger")
        with pytest.raises(VersionError):
            list(differences(Ledger.existing(str(tmp_path / "ledger")), [Records(str(tmp_path / "out.records"))]))

    def test_of_names_are_another_run(self, space: Space, source: Path, tmp_path: Path) -> None:
        privatize_corpus(release_of(space), [str(source)], str(tmp_path / "out"), Local(), corpus="news")
        with pytest.raises(UserError, match="another name of the corpus"):
            privatize_corpus(release_of(space), [str(source)], str(tmp_path / "out"), Local())


class TestAtOnce:
    @pytest.mark.parametrize("round_", range(5))
    def test_two_releases_never_exceed_a_cap_together(
        self, space: Space, source: Path, tmp_path: Path, round_: int
    ) -> None:
        """Started at the same time with room for one: at most one is done, and the ledger is within the cap."""
        start = threading.Barrier(2)

        def go(number: int) -> bool:
            start.wait()
            try:
                privatize(release_of(space, 1.0, number), source, tmp_path / f"o{number}", tmp_path / "l", total=1.0)
            except UserError as error:
                assert "cap 1" in str(error)  # noqa: PT017 - in a thread
                return False
            return True

        with ThreadPoolExecutor(2) as pool:
            done = list(pool.map(go, (2 * round_, 2 * round_ + 1)))
        assert sum(done) <= 1
        assert sum((tmp_path / f"o{n}" / "manifest.json").exists() for n in (2 * round_, 2 * round_ + 1)) == sum(done)
        assert (
            max((spent.value for spent in worst(Ledger.existing(str(tmp_path / "l")).entries(), ["total"])), default=0)
            <= 1
        )


class TestOnce:
    def test_the_same_release_again_spends_nothing(self, space: Space, source: Path, tmp_path: Path) -> None:
        """Elsewhere, split otherwise, or again: the entries are the same ones, or count once."""
        release = release_of(space)
        for name in ("a", "b"):
            privatize(release, source, tmp_path / name, tmp_path / "ledger", total=1.0)
        assert len(Ledger.existing(str(tmp_path / "ledger")).names()) == 2
        assert most(tmp_path / "ledger") <= 1.0

    def test_copies_under_other_identities_count_each(self, space: Space, tmp_path: Path) -> None:
        """k copies of a document get independent noise: k times the budget."""
        write_shard(tmp_path / "in" / "s.jsonl", [{"text": WORDS[5]}] * 3)
        with pytest.raises(UserError, match="would have spent 3 "):
            privatize(release_of(space), tmp_path / "in", tmp_path / "out", tmp_path / "ledger", total=2.0)

    def test_copies_under_the_same_noise_count_once(self, space: Space, tmp_path: Path) -> None:
        """They come out alike, in any shard, which is disclosed; other texts do not."""
        long = " ".join(WORDS[:40])
        for number in range(2):
            write_shard(tmp_path / "in" / f"s{number}.jsonl", [{"text": long}, {"text": f"{long} {WORDS[number]}"}] * 2)
        plain = release_of(space)
        release = dataclasses.replace(plain, duplicates="same-noise")
        assert release.digest != plain.digest
        assert "which documents are equal" in statement(release)["guarantee"]["disclosed"]
        for name, one, different in (("same", release, 3), ("own", plain, 8)):
            limit = {"total": 1.0} if one is release else {}
            privatize(one, tmp_path / "in", tmp_path / name, tmp_path / f"ledger-{name}", **limit)
            texts = [json.loads(line)["text"] for path in (tmp_path / name / "data").iterdir() for line in path.open()]
            assert len(set(texts)) == different
        assert most(tmp_path / "ledger-own") > 3.5

    def test_a_renamed_or_moved_document_is_known_again(self, space: Space, source: Path, tmp_path: Path) -> None:
        """Under another key, name and place, by its content."""
        privatize(release_of(space), source, tmp_path / "a", tmp_path / "ledger")
        moved = tmp_path / "elsewhere"
        moved.mkdir()
        (source / "s1.jsonl").rename(moved / "t.jsonl")
        spending = Spending(str(tmp_path / "ledger"), Caps(total=1.0))
        with pytest.raises(UserError, match="cap"):
            privatize_corpus(
                release_of(space, 1.0, 1), [str(moved)], str(tmp_path / "b"), Local(), corpus="other",
                spending=spending,
            )  # fmt: skip

    def test_an_edited_document_counts_on(self, space: Space, source: Path, tmp_path: Path) -> None:
        """The same identity with other content is a further release of that document."""
        privatize(release_of(space), source, tmp_path / "a", tmp_path / "ledger")
        write_shard(source / "s1.jsonl", [{"text": f"{WORDS[7]} {WORDS[8]} {WORDS[9]}"}] * 30)
        with pytest.raises(UserError, match="cap"):
            privatize(release_of(space), source, tmp_path / "b", tmp_path / "ledger", total=1.5)

    def test_a_release_goes_on_with_its_ledger_only(self, space: Space, source: Path, tmp_path: Path) -> None:
        privatize(release_of(space), source, tmp_path / "a", tmp_path / "ledger")
        with pytest.raises(UserError, match="another ledger, or none"):
            privatize_corpus(release_of(space), [str(source)], str(tmp_path / "a"), Local(), corpus="news")

    def test_an_input_that_changes_after_it_was_entered_is_refused(
        self, space: Space, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The draws are those that were entered, or none."""
        enter = Ledger.enter

        def change(ledger: Ledger, *planned: Any) -> list[str]:
            write_shard(source / "s1.jsonl", [{"text": WORDS[4]}])
            return enter(ledger, *planned)

        monkeypatch.setattr(Ledger, "enter", change)
        with pytest.raises(BadShardsError, match="changed during the run"):
            privatize(release_of(space), source, tmp_path / "a", tmp_path / "ledger")
        assert not (tmp_path / "a" / "manifest.json").exists()
        assert not (tmp_path / "a" / "data" / "part-00001-of-00002.jsonl").exists()


@given(st.floats(1e-3, 50), st.sampled_from(["token", "document"]), st.lists(st.integers(0, 9), min_size=1, max_size=6))
def test_readings_are_never_too_low(epsilon: float, per: Any, tokens: list[int]) -> None:
    """Total and largest against exact sums of what tokens get; within a rounding of it, and within the budget."""
    budget = cv.Budget(epsilon, per)
    documents = np.repeat(np.arange(len(tokens)), tokens)
    counts = np.array(tokens)
    epsilons = budget.shares(counts)[documents]
    got = readings(budget, documents, epsilons, epsilons, np.zeros(len(tokens)), len(tokens))
    for number, count in enumerate(tokens):
        exact = sum((Fraction(one) for one in epsilons[documents == number].tolist()), Fraction(0))
        assert exact <= Fraction(got.total[number]) <= exact * (1 + Fraction(1, 10**12))
        assert got.largest[number] == (epsilons[documents == number].max() if count else 0)
        assert Fraction(got.ldp[number]) >= exact
        if per == "document":
            assert got.total[number] <= epsilon


@given(st.lists(st.floats(1e-9, 1e9), max_size=9))
def test_sums_are_exact_and_rounded_up(values: list[float]) -> None:
    exact = sum(map(Fraction, values), Fraction(0))
    total = added(values)
    assert Fraction(total) >= exact
    assert total == 0 or Fraction(math.nextafter(total, -math.inf)) < exact
    assert upward(Fraction(1)) == 1.0


_NUMBERS = itertools.count()


def base() -> str:
    """Return an address in this process's memory where nothing is yet."""
    return f"memory://ledger-{os.getpid()}-{next(_NUMBERS)}"


@pytest.fixture(scope="module")
def small() -> Space:
    vectors = np.random.default_rng(1).standard_normal((len(WORDS), 2)).astype(np.float32)
    return cv.build_space(Vectors(list(WORDS), vectors))


@settings(max_examples=300, deadline=None)
@given(history=st.lists(STEPS, min_size=3, max_size=9))
def test_histories_of_runs_crashes_and_edits_never_count_too_low(small: Space, history: list[Any]) -> None:
    """Each run is stopped at some write, or not; whatever became visible is in the ledger, document by document."""
    assert beyond_what_is_owed(small, base(), history) >= -1e-12


def test_a_ledger_that_forgets_would_be_noticed(small: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    """Control for the histories above: without entries the same comparison fails."""
    assert beyond_what_is_owed(small, base(), [("run", 0, 0), ("run", 1, 0)]) >= -1e-12
    monkeypatch.setattr(Ledger, "enter", lambda _ledger, planned, _refuse: ["0" * 32] * len(planned))
    assert beyond_what_is_owed(small, base(), [("run", 0, 0), ("run", 1, 0)]) < -1


def entry_of(size: int, release: str = "r", shard: str = "s") -> Entry:
    about = {"version": VERSION} | dict.fromkeys(("corpus", "column", "mechanism", "space"), "x") | {"budget": {}}
    rows = {name: [bytes([n]) * 16 for n in range(size)] for name in ("noise", "content", "identity")}
    values = {"tokens": [1] * size} | {name: [1.0] * size for name in ("total", "largest", "ldp")}
    about = {**about, "shard": shard, "rows": [0, None], "release": release, "metric": "m"}
    return Entry(about, pa.table({**rows, **values}, schema=ROWS))


class TestEntries:
    def test_are_the_same_again(self, tmp_path: Path) -> None:
        ledger = Ledger.open(str(tmp_path))
        digests = ledger.enter([entry_of(3)], None)
        assert ledger.enter([entry_of(3)], None) == digests
        (name,) = ledger.names()
        assert ledger.read(name).table.equals(entry_of(3).table)
        assert ledger.is_named_rightly(name)
        assert (tmp_path / ENTRIES / name).stat().st_mode & 0o777 == 0o600

    @pytest.mark.parametrize("damage", ["cut", "exchanged", "emptied"])
    def test_that_are_damaged_are_told(self, tmp_path: Path, damage: str) -> None:
        """Verification fails; nothing can be counted on a ledger that is not whole."""
        ledger = Ledger.open(str(tmp_path))
        for release in ("r", "s"):
            ledger.enter([entry_of(3, release)], None)
        names = ledger.names()
        first, second = (tmp_path / ENTRIES / name for name in names)
        data = {"cut": first.read_bytes()[:50], "exchanged": second.read_bytes(), "emptied": b""}
        first.write_bytes(data[damage])
        assert any(one.too_low for one in differences(ledger, []))
        assert run(["ledger", "verify", str(tmp_path)]) == 1
        if damage != "exchanged":
            with pytest.raises(UserError, match="counted too low"):
                list(ledger.entries())

    def test_of_a_run_that_finds_damage_are_taken_back(self, tmp_path: Path) -> None:
        """Whatever ends the second look with a sentence leaves the ledger without what was not drawn."""
        ledger = Ledger.open(str(tmp_path))

        def damage(_: Any) -> None:
            (tmp_path / ENTRIES).mkdir(exist_ok=True)
            (tmp_path / ENTRIES / f"{'0' * 32}.parquet").write_bytes(b"PAR1")

        with pytest.raises(UserError, match="this entry of the ledger is damaged"):
            ledger.enter([entry_of(1)], damage)
        assert ledger.names() == [f"{'0' * 32}.parquet"]

    def test_of_a_run_that_is_refused_are_its_own(self, tmp_path: Path) -> None:
        """Another run of the same release has entries of its own, and keeps them; kept ones are relied on."""
        ledger = Ledger.open(str(tmp_path))

        def refuse(_: Any) -> None:
            """Let another run of the same release come and go after the first look, and refuse after the second."""
            if ledger.names():
                raise UserError("full")
            waiting.append(ledger.enter([entry_of(1)], None))

        waiting: list[list[str]] = []
        with pytest.raises(UserError, match="full"):
            ledger.enter([entry_of(1)], refuse)
        (digests,) = waiting
        (name,) = ledger.names()
        assert name.startswith(f"{digests[0]}.")
        assert ledger.enter([entry_of(1)], lambda _: None) == digests
        assert ledger.names() == [name]

    def test_that_are_withdrawn_meanwhile_are_none(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Another release may take its entries back between the listing and the reading."""
        ledger = Ledger.open(str(tmp_path))
        for release in ("r", "s"):
            ledger.enter([entry_of(2, release)], None)
        listed = Ledger.names
        monkeypatch.setattr(Ledger, "names", lambda one: [*listed(one), "0" * 32 + ".parquet"])
        assert sorted(one.about["release"] for one in ledger.entries()) == ["r", "s"]

    def test_without_their_secret_are_refused(self, tmp_path: Path) -> None:
        Ledger.open(str(tmp_path)).enter([entry_of(1)], None)
        (tmp_path / "secret.key").unlink()
        with pytest.raises(UserError, match=r"secret\.key of the ledger is missing"):
            Ledger.open(str(tmp_path))


class TestTheCommand:
    @pytest.fixture
    def done(self, space: Space, source: Path, tmp_path: Path) -> Path:
        privatize(release_of(space), source, tmp_path / "out", tmp_path / "ledger")
        return tmp_path / "ledger"

    def test_caps_name_the_one_over_all_metrics(self, capsys: pytest.CaptureFixture[str]) -> None:
        """A message about a cap within one metric also names the cap that holds over all metrics."""
        assert run(["privatize", "--help"]) == 0
        assert capsys.readouterr().out.count("--cap-ldp") == 3

    def test_shows_what_was_spent(self, done: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["ledger", "show", str(done)]) == 0
        said = capsys.readouterr().out
        assert "ring-geometric" in said
        assert "sum of epsilons in ring-geometric on space " in said
        assert UNKNOWN not in said

    def test_verifies_records(self, done: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """Totals of every shard are those of the records; an entry that is gone is a difference."""
        arguments = ["ledger", "verify", str(done), "--records", str(tmp_path / "out.records")]
        assert run(arguments) == 0
        assert "the records agree" in capsys.readouterr().out
        assert not list(differences(Ledger.existing(str(done)), [Records(str(tmp_path / "out.records"))]))
        next((done / ENTRIES).glob("*.parquet")).unlink()
        assert run(arguments) == 1
        assert "which covers this shard, is missing" in capsys.readouterr().out

    def test_misses_no_entry_for_one_of_another_corpus(self, space: Space, tmp_path: Path) -> None:
        """Of equal shard names, counts and release: the records name what covers them."""
        for number in range(2):
            write_shard(tmp_path / f"in{number}" / "s.jsonl", [{"text": WORDS[number]}])
            spending = Spending(str(tmp_path / "ledger"))
            privatize_corpus(
                release_of(space), [str(tmp_path / f"in{number}")], str(tmp_path / f"out{number}"), Local(),
                corpus=f"corpus {number}", spending=spending,
            )  # fmt: skip
        ledger = Ledger.existing(str(tmp_path / "ledger"))
        records = [Records(str(tmp_path / f"out{number}.records")) for number in range(2)]
        assert not list(differences(ledger, records))
        (first,) = (name for name in ledger.names() if ledger.read(name).about["corpus"] == "corpus 0")
        (tmp_path / "ledger" / ENTRIES / first).unlink()
        (found,) = differences(ledger, records)
        assert found.too_low
        assert "out0.records, shard s.jsonl: the entry" in found.sentence

    def test_tells_what_was_done_without_a_ledger(self, space: Space, source: Path, done: Path, tmp_path: Path) -> None:
        privatize_corpus(release_of(space), [str(source)], str(tmp_path / "other"), Local(), corpus="news")
        found = list(differences(Ledger.existing(str(done)), [Records(str(tmp_path / "other.records"))]))
        assert [one.too_low for one in found] == [True, True]
        assert "without a ledger" in found[0].sentence

    def test_a_ledger_that_is_none(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["ledger", "show", str(tmp_path)]) == 2
        assert "there is no ledger here" in capsys.readouterr().err

    def test_fingerprints_do_not_give_documents_away(self, done: Path) -> None:
        """Nothing in an entry can be computed without the ledger's secret: another ledger's are all different."""
        entries = list(Ledger.existing(str(done)).entries())
        found = [{row for entry in entries for row in entry.table[name].to_pylist()} for name in ROWS.names[:3]]
        assert [len(one) for one in found] == [60, 60, 60]
        assert not found[0] & found[1]
        assert not (found[0] | found[1]) & found[2]

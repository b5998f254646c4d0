"""A cap is a promise about units: no value of the named column spends more, by whatever steps."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import math
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

import corpusveil as cv
from corpusveil.display import figure
from corpusveil.errors import CapError, CorpusveilError, WorkError
from corpusveil.jobs.local import Local
from corpusveil.ledger.caps import Spending
from corpusveil.ledger.entries import EntryStore
from corpusveil.ledger.units import units_of
from corpusveil.spaces import Space
from corpusveil.storage.rows import Columns
from corpusveil.transforms.release import corpus
from tests.calls import privatize_corpus, refused, succeeds
from tests.engines.corpora import WORDS, make_space, write_shard
from tests.ledger.books import nats_of, release_of

TEXT = f"{WORDS[1]} {WORDS[2]}"
NATS = 0.0
"""What TEXT spends under ``release_of``."""


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Space:
    global NATS  # noqa: PLW0603 - of the one space of this file
    space = make_space(tmp_path_factory.mktemp("space"))
    NATS = nats_of(release_of(space), TEXT)
    return space


@pytest.fixture
def ledger(tmp_path: Path) -> str:
    return str(tmp_path / "ledger")


def most(ledger: str) -> float:
    """Return the most that a unit has spent, in times what TEXT spends."""
    return cv.Ledger(ledger).spent().most / NATS


def capped(ledger: str, cap: float | None, **more: Any) -> cv.Ledger:
    """Return a ledger with a cap of so many times what TEXT spends."""
    return cv.Ledger(ledger, cap=None if cap is None else cap * NATS, **more)


def release_files(
    release: cv.Release, place: Path, rows: Any, ledger: str, *, unit: Any = "customer", name: str = "s.jsonl",
    columns: Columns | None = None, namespace: str = "", cap: float | None = None,
) -> None:  # fmt: skip
    """Write rows into a new folder, and release them, under a cap of so many times what TEXT spends."""
    source = place / f"in{len(list(place.glob('in[0-9]')))}"
    write_shard(source / name, rows)
    spending = capped(ledger, cap).spending(unit, namespace)
    privatize_corpus(release, [str(source)], f"{source}-out", Local(), columns=columns, corpus="x", spending=spending)


class TestOneSum:
    @pytest.mark.parametrize("change", ["column", "file", "id", "key", "epsilon", "root and corpus"])
    def test_whatever_makes_noise_fresh_is_spent_again(
        self, space: Space, tmp_path: Path, ledger: str, change: str
    ) -> None:
        """A renamed text column or file, an id of another type, another key or budget: the unit is the same."""
        row = {"id": 1, "customer": 7, "text": TEXT}
        columns = Columns(id="id")
        release_files(release_of(space), tmp_path, [row], ledger, columns=columns, cap=2.0)
        release, name = release_of(space), "s.jsonl"
        if change == "column":
            row, columns = {"id": 1, "customer": 7, "body": TEXT}, Columns("body", "id")
        elif change == "file":
            name, columns = "t.jsonl", Columns()
        elif change == "id":
            row |= {"id": 2}
        elif change == "root and corpus":
            columns = Columns()
        else:
            release = release_of(space, 1.0, int(change == "key"))
            release = (
                dataclasses.replace(release, budget=cv.Budget(0.5, "document")) if change == "epsilon" else release
            )
        again = {"columns": columns, "name": name}
        with refused("cap-exceeded", "cap "):
            release_files(release, tmp_path, [row], ledger, **again, cap=1.25)
        release_files(release, tmp_path, [row], ledger, **again, cap=2.0)
        assert most(ledger) == pytest.approx(2.0)

    def test_equal_noise_is_spent_once_wherever_it_is_drawn(self, space: Space, tmp_path: Path, ledger: str) -> None:
        """In another file and form, in a frame, again, with other documents beside it, and under same-noise."""
        rows = [{"id": "a", "customer": 7, "text": TEXT}, {"id": "b", "customer": 8, "text": WORDS[4]}]
        release, columns = release_of(space), Columns(id="id")
        release_files(release, tmp_path, rows, ledger, columns=columns, cap=1.0)
        release_files(release, tmp_path, rows[:1], ledger, columns=columns, name="t.jsonl", cap=1.0)
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / "t.parquet")
        spending = capped(ledger, 1.0).spending("customer", None)
        for _ in range(2):
            privatize_corpus(
                release, [str(tmp_path / "t.parquet")], str(tmp_path / "o"), Local(), columns=columns, spending=spending
            )
        frame = pd.DataFrame(rows)
        cv.privatize(frame, release, "id", ledger=capped(ledger, 1.0), unit="customer")
        assert most(ledger) == pytest.approx(1.0)
        copies = [{"customer": 9, "text": TEXT}] * 3
        release_files(release_of(space, duplicates="same-noise"), tmp_path, copies, ledger, cap=1.0)
        assert most(ledger) == pytest.approx(1.0)

    def test_words_and_passages_of_any_mechanism_add_up(self, space: Space, tmp_path: Path, ledger: str) -> None:
        """One cap, in nats, over mechanisms and budgets."""
        rows = [{"customer": 1, "text": TEXT}]
        release_files(release_of(space), tmp_path, rows, ledger)
        other = dataclasses.replace(release_of(space, 40.0), mechanism=cv.mechanism("diffractor-exponential", space))
        owed = NATS + nats_of(other, TEXT)
        with refused("cap-exceeded", "nats"):
            release_files(other, tmp_path, rows, ledger, cap=owed / NATS - 1e-6)
        release_files(other, tmp_path, rows, ledger, cap=owed / NATS + 1e-6)
        assert most(ledger) == pytest.approx(owed / NATS)

    @pytest.mark.parametrize("epsilon", [0.1, 40.0])
    @pytest.mark.parametrize("per", ["token", "document"])
    def test_whether_a_row_is_over_a_cap_depends_on_its_tokens_alone(
        self, space: Space, epsilon: float, per: str
    ) -> None:
        """Not on whether words are known, numbers or equal: a row that is left out tells its length, not its words."""
        texts = [TEXT, "qzxvk zzunknown", f"{WORDS[1]} qzxvk", f"{WORDS[7]} 17", f"{WORDS[2]} {WORDS[2]}"]
        spent = {nats_of(release_of(space, epsilon, per=per), text) for text in texts}
        assert len(spent) == 1
        assert nats_of(release_of(space, epsilon, per=per), f"{TEXT} {WORDS[3]}") > spent.pop()

    def test_what_has_no_guarantee_exceeds_every_cap(self, space: Space, tmp_path: Path, ledger: str) -> None:
        release = dataclasses.replace(
            release_of(space), mechanism=cv.mechanism("custext-per-word", space), accept_no_guarantee=True
        )
        for cap in (1e9, 1e10, 1e300):
            with refused("cap-exceeded", "inf"):
                release_files(release, tmp_path, [{"customer": 1, "text": TEXT}], ledger, cap=cap)
        release_files(release, tmp_path, [{"customer": 1, "text": TEXT}], ledger)
        assert most(ledger) == math.inf
        succeeds("ledger", "show", ledger)


class TestUnits:
    def test_every_cap_needs_one(self, space: Space, ledger: str) -> None:
        """In Python as on the command line; without a cap a ledger counts by text."""
        with refused("wrong-setting", "unit"):
            Spending(ledger, 1.0)
        with refused("wrong-setting", "unit"):
            cv.privatize([TEXT], release_of(space), ids=["a"], ledger=capped(ledger, 1.0))
        assert Spending(ledger).units == units_of("content")

    def test_caps_hold_for_each_of_several(self, space: Space, tmp_path: Path, ledger: str) -> None:
        """Two visits of a customer, and three customers at one visit."""
        rows = [{"customer": n, "visit": n // 3, "text": f"{WORDS[n]} {WORDS[n + 1]}"} for n in range(3)]
        for unit in (["visit", "customer"], ["customer", "visit"]):
            with refused("cap-exceeded", "visit"):
                release_files(release_of(space), tmp_path, rows, ledger, unit=unit, cap=2.0)
        release_files(release_of(space), tmp_path, rows, ledger, unit=["visit", "customer"], cap=3.0)
        assert cv.Ledger(ledger).spent().units == ("customer", "visit")
        (line,) = cv.Ledger(ledger).spent().releases
        assert line["documents"] == 3
        value = {unit: cv.Ledger(ledger).spent_on(0, unit).most / NATS for unit in ("customer", "visit")}
        assert value == pytest.approx({"customer": 1.0, "visit": 3.0})
        assert cv.Ledger(ledger).spent_on("visit=0").most == pytest.approx(3.0 * NATS)
        for unknown in ("0", "client=0", "visit=7"):
            with refused("wrong-setting", "visit"):
                cv.Ledger(ledger).spent_on(unknown)

    def test_those_of_a_ledger_are_set_by_its_first_release(self, space: Space, tmp_path: Path, ledger: str) -> None:
        """A renamed column is named as what it was; another unit, or one of two, would miss what was spent before."""
        release_files(release_of(space), tmp_path, [{"customer": 1, "text": TEXT}], ledger, cap=1.0)
        rows = [{"client": 1, "customer": 1, "text": TEXT}]
        for unit in ("client", "content", ["customer", "client"], None):
            with refused("wrong-setting", "customer"):
                release_files(release_of(space, number=1), tmp_path, rows, ledger, unit=unit)
        with pytest.raises(CapError):
            release_files(release_of(space, number=1), tmp_path, rows, ledger, unit="customer=client", cap=1.0)

    def test_a_mistyped_unit_pins_nothing(self, space: Space, tmp_path: Path, ledger: str) -> None:
        """Before a release is entered, a ledger has no units."""
        with refused("unsuitable-data", "custmer"):
            release_files(release_of(space), tmp_path, [{"customer": 1, "text": TEXT}], ledger, unit="custmer")
        release_files(release_of(space), tmp_path, [{"customer": 1, "text": TEXT}], ledger, cap=1.0)

    def test_ids_unique_in_one_data_set_have_a_name_space(self, space: Space, tmp_path: Path, ledger: str) -> None:
        rows = [{"customer": 1, "text": TEXT}]
        for number, namespace in enumerate(("a", "b")):
            release_files(release_of(space, number=number), tmp_path, rows, ledger, namespace=namespace, cap=1.0)
        with pytest.raises(CapError):
            release_files(release_of(space, number=3), tmp_path, rows, ledger, namespace="b", cap=1.0)
        spent = cv.Ledger(ledger).spent_on(1)
        assert sorted(line["namespace"] for line in spent.releases) == ["a", "b"]
        assert spent.most == pytest.approx(NATS), "of one of them"

    def test_a_row_without_a_unit_is_named_and_stops_all(self, space: Space, tmp_path: Path, ledger: str) -> None:
        """In files and frames; a document without a text needs none."""
        rows = [{"customer": 1, "text": TEXT}, {"customer": None, "text": TEXT}]
        with refused("unsuitable-data", "s.jsonl", "row 2"):
            release_files(release_of(space), tmp_path, rows, ledger)
        frame = pd.DataFrame({"customer": ["a", None, None], "text": [TEXT, None, TEXT]})
        with refused("unsuitable-data", "row 3"):
            cv.privatize(frame, release_of(space), ids=list("abc"), ledger=cv.Ledger(ledger), unit="customer")
        day = dt.date(2026, 5, 17)
        for values, why in (
            ([[1], None, [2]], "list"), ([7.0, None, 1.0], "float"), (["", None, "b"], "missing"),
            ([day, None, day], "date"), ([True, None, False], "bool"), ([b"a", None, b"b"], "b"),
        ):  # fmt: skip
            table = frame.assign(customer=values)
            for given in (table, pl.from_pandas(table), pa.table(table)):
                with refused("unsuitable-data", "row 1", why):
                    cv.privatize(given, release_of(space), ids=list("abc"), ledger=cv.Ledger(ledger), unit="customer")
        cv.privatize(frame[:2], release_of(space), ids=list("ab"), ledger=cv.Ledger(ledger), unit="customer")
        assert len(cv.Ledger(ledger).spent().releases) == 1


class TestRefusals:
    def test_say_what_the_unit_that_spends_most_has_spent_and_what_would_help(
        self, space: Space, tmp_path: Path, ledger: str
    ) -> None:
        """Before and with this run, how many units are over, and advice; and nothing is entered."""
        release_files(release_of(space), tmp_path, [{"customer": 1, "text": TEXT}], ledger)
        before = sorted(Path(ledger, "entries").iterdir())
        rows = [{"customer": 1, "text": TEXT}] * 17 + [{"customer": 2, "text": TEXT}] * 2
        with pytest.raises(CapError) as caught:
            release_files(release_of(space, number=1), tmp_path, rows, ledger, cap=1.5)
        sentence = str(caught.value)
        for words in (figure(18 * NATS), f"{figure(NATS)} of them before", "2 values of customer exceed"):
            assert words in sentence
        assert sorted(Path(ledger, "entries").iterdir()) == before
        assert [path.name for path in tmp_path.glob("in1-out*/*")] == ["over-cap.jsonl"]
        plan = cv.plan(tmp_path / "in1", release_of(space, number=1), ledger=capped(ledger, 1.5), unit="customer")
        sentence = sentence.partition(" The units above it")[0]
        assert plan.refused == sentence
        assert sentence in " ".join(str(plan).split())


class TestUnitsAboveACap:
    ROWS: ClassVar[list[dict[str, Any]]] = [
        {"customer": "Ann" if n % 2 else n, "visit": n % 3, "text": f"{TEXT} {WORDS[n]}"} for n in range(8)
    ]

    def run(self, space: Space, place: Path, ledger: str, over: Any, form: str, **more: Any) -> list[str]:
        table = pa.Table.from_pylist([{**row, "customer": str(row["customer"])} for row in self.ROWS])
        source = place / f"in.{form}"
        if not source.exists():
            {"csv": csv.write_csv, "parquet": pq.write_table}[form](table, source)
        release = dataclasses.replace(release_of(space), budget=cv.Budget(0.1))
        own = capped(ledger, **({"cap": 5.5} | more), over_cap=over)
        cv.privatize_corpus(source, place / "out", release, ledger=own, unit=["customer"], keep="visit")
        (shard,) = (place / "out" / "data").iterdir()
        read = {"csv": csv.read_csv, "parquet": pq.read_table}[form]
        return [row["visit"] for row in read(shard).to_pylist()]

    @pytest.mark.parametrize("form", ["csv", "parquet"])
    def test_are_named_in_a_private_file_or_their_documents_left_out(
        self, space: Space, tmp_path: Path, ledger: str, form: str
    ) -> None:
        told = tmp_path / "out.records" / "over-cap.jsonl"
        with refused("cap-exceeded", told) as caught:
            self.run(space, tmp_path, ledger, "refuse", form)
        assert "Ann" not in str(caught.value)
        assert told.stat().st_mode & 0o777 == 0o600
        (line,) = map(json.loads, told.read_text().splitlines())
        assert (line["unit"], line["value"], line["documents"]) == ("customer", "Ann", 4)
        assert line["rows"] == [f"in.{form}, row {n}" for n in (2, 4, 6, 8)]
        for _ in range(2):  # the second finds the release finished
            assert self.run(space, tmp_path, ledger, "drop", form) == [0, 2, 1, 0]
        totals = json.loads((tmp_path / "out.records" / "totals.json").read_text())
        assert totals["dropped"] == 4
        with refused("wrong-setting"):
            cv.Ledger(ledger).spent_on("Ann")

    def test_stay_left_out_if_the_run_is_stopped_and_the_cap_moves(
        self, space: Space, tmp_path: Path, ledger: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What was decided before anything was entered holds for the whole run."""
        with monkeypatch.context() as patch:
            patch.setattr(corpus, "draft", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                self.run(space, tmp_path, ledger, "drop", "csv")
        with refused("unusable-address", "another treatment of units above the cap"):
            self.run(space, tmp_path, ledger, "refuse", "csv", cap=100.0)
        assert self.run(space, tmp_path, ledger, "drop", "csv", cap=100.0) == [0, 2, 1, 0]

    def test_of_a_frame_are_not_left_out(self, space: Space, ledger: str) -> None:
        own = cv.Ledger(ledger, cap=1, over_cap="drop")
        frame = pd.DataFrame({"customer": ["a"], "text": [TEXT]})
        for unit in ("content", "customer"):  # and the unit content is refused with drop, in files too
            with refused("wrong-setting", "over_cap"):
                cv.privatize(frame, release_of(space), ids=[1], ledger=own, unit=unit)


class TestAtOnce:
    def test_five_releases_never_exceed_a_cap_together(self, space: Space, tmp_path: Path, ledger: str) -> None:
        """Started at the same time with room for two: at most two are done; those that lost may run again."""
        source = tmp_path / "in"
        for number in range(2):
            write_shard(source / f"s{number}.jsonl", [{"customer": 1, "text": WORDS[number]}])
        start = threading.Barrier(5)

        def go(number: int) -> type[CorpusveilError] | None:
            start.wait()
            spending = capped(ledger, 2.0).spending("customer", None)
            release, output = release_of(space, 1.0, number), str(tmp_path / f"o{number}")
            try:
                privatize_corpus(release, [str(source)], output, Local(), spending=spending)
            except CorpusveilError as error:
                return type(error)
            return None

        with ThreadPoolExecutor(5) as pool:
            ended = list(pool.map(go, range(5)))
        assert set(ended) <= {None, CapError, WorkError}
        done = [number for number in range(5) if (tmp_path / f"o{number}" / "manifest.json").exists()]
        assert len(done) == ended.count(None) <= 2
        assert most(ledger) == pytest.approx(len(done))

    def test_a_run_goes_on_with_its_ledger_only_and_with_its_input(
        self, space: Space, tmp_path: Path, ledger: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The draws are those that were entered, or none."""
        write_shard(tmp_path / "in" / "s.jsonl", [{"text": TEXT}])
        enter = EntryStore.enter

        def change(store: EntryStore, *given: Any) -> None:
            write_shard(tmp_path / "in" / "s.jsonl", [{"text": WORDS[4]}])
            enter(store, *given)

        call = (release_of(space), [str(tmp_path / "in")], str(tmp_path / "out"), Local())
        with monkeypatch.context() as patched:
            patched.setattr(EntryStore, "enter", change)
            with refused("input-changed"):
                privatize_corpus(*call, spending=Spending(ledger))
        assert not (tmp_path / "out" / "manifest.json").exists()
        privatize_corpus(*call, spending=Spending(ledger))
        with refused("unusable-address"):
            privatize_corpus(*call)

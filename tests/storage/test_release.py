"""A release folder: what is in it, whom it belongs to, and what running again does to it."""

from __future__ import annotations

import dataclasses
import datetime as dt
import hashlib
import json
import stat
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corpusveil.jobs.local import Local
from corpusveil.ledger.caps import Spending
from corpusveil.ledger.units import units_of
from corpusveil.pipelines.resolve import keep
from corpusveil.sampling.keys import Key
from corpusveil.storage import home
from corpusveil.storage.corpus import words_of
from corpusveil.storage.rows import Columns
from corpusveil.transforms.release import corpus
from corpusveil.transforms.release.corpus import WORDS
from corpusveil.transforms.release.manifest import spends_of
from tests.calls import Halting, fails, privatize_corpus, refused, succeeds
from tests.engines.corpora import (
    NAME_CANARY,
    TEST_KEY,
    Ground,
    data_files,
    make_release,
    make_space,
    manifest,
    read_shard,
    release_files,
    rows,
    write_corpus,
    write_shard,
)


class Noting:
    """A local engine that notes which shards are worked on."""

    def __init__(self) -> None:
        self.done: list[int] = []

    def run(self, function: Any, tasks: Any) -> None:
        self.done = [task.shard for task in tasks if not function.is_done(task)]
        Local().run(function, tasks)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_corpus(tmp_path / f"in-{NAME_CANARY}", [rows(20, number) for number in range(4)])


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "out"


@pytest.fixture
def unfinished(ground: Ground, source: Path, output: Path) -> Path:
    """An output of which two of four shards are done."""
    with refused("work-failed", "halted"):
        privatize_corpus(make_release(ground.space), [str(source)], str(output), Halting(2))
    assert len(data_files(output)) == 2
    return output


@pytest.fixture
def finished(ground: Ground, source: Path, output: Path) -> Path:
    """An output that is done."""
    privatize_corpus(make_release(ground.space), [str(source)], str(output), Local())
    return output


def shards_of(source: Path) -> list[Path]:
    return sorted(source.iterdir())


class TestTheReleaseFolder:
    def test_holds_data_and_a_manifest_that_says_what_may_be_known(self, source: Path, finished: Path) -> None:
        names = [f"data/part-{number:05d}-of-00004.json.gz" for number in range(4)]
        assert sorted(release_files(finished)) == [*names, "manifest.json"]
        assert sorted(path.name for path in finished.iterdir()) == ["data", "manifest.json"]
        written = manifest(finished)
        assert set(written) == {
            "kind", "version", "corpusveil", "release", "key_fingerprint", "configuration", "guarantee",
            "guarantee_in_words", "kept_columns", "spends", "documents", "tokens", "content_sha256", "checksums",
            "shards",
        }  # fmt: skip
        (columns,) = {frozenset(shard) for shard in written["shards"]}
        assert columns == {"name", "documents", "tokens", "sha256", "file_sha256"}
        text = (finished / "manifest.json").read_text()
        for word in (NAME_CANARY, "c4-train", str(source.parent), "local", "spark", "beam", "seconds", "2026-"):
            assert word not in text, word
        assert TEST_KEY.hex() not in text

    def test_has_numbers_that_the_output_itself_gives(self, source: Path, finished: Path) -> None:
        written = manifest(finished)
        overall = hashlib.sha256()
        for shard, path in zip(written["shards"], data_files(finished), strict=True):
            lines = [json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in read_shard(path)]
            content = "".join(f"{line}\n" for line in lines).encode()
            assert shard["sha256"] == hashlib.sha256(content).hexdigest()
            assert shard["file_sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
            assert shard["documents"] == len(read_shard(path)) == 20
            overall.update(shard["sha256"].encode() + b"\n")
        assert written["content_sha256"] == overall.hexdigest()
        assert written["tokens"] == sum(shard["tokens"] for shard in written["shards"])
        totals = json.loads((finished.with_name("out.records") / "totals.json").read_text())
        assert written["documents"] == totals["documents"] == 80
        assert totals["changed"] + totals["unchanged"] == totals["privatized"] == totals["tokens"]["words"]
        texts = [row["text"] for path in shards_of(source) for row in read_shard(path)]
        assert totals["input_bytes"] == sum(len(text.encode()) for text in texts)

    def test_is_verified_by_its_bytes(self, ground: Ground, tmp_path: Path) -> None:
        """Of Parquet, too: a value of another type that JSON writes in the same way, and bytes that are in no row."""
        kept = {
            "float": (pa.array([float("inf"), 1.0]), pa.array([None, 1.0])),
            "date": (pa.array([dt.date(2026, 1, 1)] * 2), pa.array(["2026-01-01"] * 2)),
        }
        columns = {name: column for name, (column, _) in kept.items()}
        pq.write_table(pa.table({"text": ["bababa", "kikiki"], **columns}), tmp_path / "x.parquet")
        succeeds(
            *ground.arguments(
                tmp_path / "x.parquet", tmp_path / "out", *(word for name in kept for word in ("--keep", name))
            )
        )
        succeeds("verify", tmp_path / "out")
        (shard,) = data_files(tmp_path / "out")
        table, sound = pq.read_table(shard), shard.read_bytes()
        other = [table.set_column(table.column_names.index(name), name, column) for name, (_, column) in kept.items()]
        for changed in (*other, table.replace_schema_metadata({"note": "x"})):
            pq.write_table(changed, shard, compression="zstd")
            fails(["verify", tmp_path / "out"], "differs", shard.name)
        shard.write_bytes(sound[:4] + b"hidden" + sound[4:])
        fails(["verify", tmp_path / "out"], "differs", shard.name)

    def test_has_a_manifest_that_is_read_strictly(self, finished: Path) -> None:
        """Whatever is wrong in it is one sentence, of every command that reads it; no name leads out of its folder."""
        sound = manifest(finished)
        wrong: list[dict[str, Any]] = [
            {key: value for key, value in sound.items() if key != name} for name in ("checksums", "shards", "guarantee")
        ]
        changes: list[tuple[str, Any]] = [
            ("checksums", 5), ("shards", {}), ("shards", [5]), ("documents", "80"),
            ("content_sha256", None), ("configuration", []), ("note", 10**5000), ("spends", {}),
            ("shards", [{**sound["shards"][0], "file_sha256": 5}]),
            ("configuration", {**sound["configuration"], "columns": {"keep": 5}}),
            ("guarantee", {**sound["guarantee"], "epsilon": "much"}),
        ]  # fmt: skip
        names = ("../x", "/etc/passwd", "a/b", "..", "", "x\0y", "data/../../x", "data/part-00000-of-00001",
                 "part-00000-of-00001.jsonl", "data/part-0-of-1.jsonl", "data/part-00000-of-00001.jsonl\n")  # fmt: skip
        changes += [("shards", [{**sound["shards"][0], "name": name}]) for name in names]
        measured = (5, [["news"]], [["much", 0.1, "reader", "text"]], [[0.4, 0.1, "reader", "a\nb"]])
        changes += [("risk", {"risk": 0.5, "recovered": value}) for value in measured]
        changes.append(("risk", {"risk": None, "recovered": []}))
        wrong += [{**sound, name: value} for name, value in changes]
        sys.set_int_max_str_digits(0)
        texts = [json.dumps(value) for value in wrong] + ["", "[]", "5", "{", '"\\ud800"', "[" * 9999, "\xff"]
        sys.set_int_max_str_digits(4300)
        # in-toto/specification#74, Cyphrme/Coz#26: of equal keys, some parsers read the first and some the last
        texts += [json.dumps(sound).replace("{", '{"documents": 0, ', 1), json.dumps(sound)[:-1] + ', "shards": []}']
        for text in texts:
            (finished / "manifest.json").write_text(text, encoding="latin-1")
            fails(["verify", finished], "damaged-artifact", "manifest.json")
            with refused("damaged-artifact", "manifest.json"):
                spends_of(str(finished))
        (finished / "manifest.json").unlink()
        (finished / "manifest.json").mkdir()
        fails(["verify", finished], "missing-file", finished)

    def test_says_nothing_of_what_was_dropped(self, ground: Ground, tmp_path: Path) -> None:
        """A manifest counts what a reader of the release can count."""
        for number, text in enumerate(("bababa bababe", "bababa \U0001f9ff bababe")):
            folder = tmp_path / str(number)
            write_shard(folder / "in" / "a.json", [{"text": text}])
            release = make_release(ground.space, epsilon=1e6)
            privatize_corpus(release, [str(folder / "in")], str(folder / "out"), Local())
            assert manifest(folder / "out")["tokens"] == 2

    def test_stands_beside_records_that_are_private(self, finished: Path) -> None:
        """Their modes are in tests/hostile."""
        records = finished.with_name("out.records")
        paths = [path for path in records.rglob("*") if path.is_file()]
        shards = [f"shards/part-{number:05d}-of-00004.json" for number in range(4)]
        names = sorted(["run.json", "totals.json", *shards])
        assert sorted(path.relative_to(records).as_posix() for path in paths) == names
        for path in paths:
            assert "DO NOT PUBLISH" in path.read_text().splitlines()[1]
            assert TEST_KEY.hex() not in path.read_text()


class TestRunningAgain:
    @pytest.mark.parametrize("changed", [False, True])
    def test_does_what_is_left_and_what_changed_before_the_end(
        self, ground: Ground, source: Path, unfinished: Path, tmp_path: Path, changed: bool
    ) -> None:
        if changed:
            write_shard(shards_of(source)[1], rows(25, 99))
        engine = Noting()
        privatize_corpus(make_release(ground.space), [str(source)], str(unfinished), engine)
        assert engine.done == ([1, 2, 3] if changed else [2, 3])
        privatize_corpus(make_release(ground.space), [str(source)], str(tmp_path / "other"), Local())
        assert release_files(unfinished) == release_files(tmp_path / "other")

    @pytest.mark.parametrize("is_small", [True, False])
    @pytest.mark.parametrize("change", ["input", "output", "removed"])
    def test_when_finished_refuses_what_changed_since(
        self, ground: Ground, source: Path, finished: Path, change: str, is_small: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The driver looks itself where there is little, and otherwise its engine."""
        monkeypatch.setattr(corpus, "_CHECKED_HERE", 1 << 30 if is_small else 0)
        engine = Noting()
        if change == "input":
            write_shard(shards_of(source)[1], rows(25, 99))
        elif change == "output":
            data_files(finished)[1].write_bytes(data_files(finished)[0].read_bytes())
        else:
            data_files(finished)[1].unlink()
        before = release_files(finished)
        with refused("input-changed", "00001-of-00004.json.gz", "may spend again"):
            privatize_corpus(make_release(ground.space), [str(source)], str(finished), engine)
        assert release_files(finished) == before
        assert engine.done == ([] if is_small else [1])


@pytest.mark.parametrize("state", ["unfinished", "finished"])
def test_another_run_into_the_same_output_is_refused(
    ground: Ground, source: Path, tmp_path: Path, request: pytest.FixtureRequest, state: str
) -> None:
    """Whatever is another one is named, and nothing is touched."""
    there: Path = request.getfixturevalue(state)
    inputs, release, before = [source], make_release(ground.space), release_files(there)
    another = make_release(make_space(tmp_path / "space", seed=1))
    cases: list[tuple[str, Any, list[Path], Columns | None]] = [
        ("(budget.epsilon was 1.0 and is 2.0)", make_release(ground.space, epsilon=2.0), inputs, None),
        ('(text.numbers was "resample" and is "mask")', make_release(ground.space, numbers="mask"), inputs, None),
        ("another configuration", another, inputs, None),
        ("another key", make_release(ground.space, key=TEST_KEY[::-1]), inputs, None),
        ("other columns", release, inputs, Columns(keep=("id",))),
        ("other columns", release, inputs, Columns(id="id")),
        ("other columns", release, inputs, Columns(text="id")),
        ("other input shards", release, shards_of(source)[:3], None),
    ]
    for said, other, shards, columns in cases:
        with refused("unusable-address", said):
            privatize_corpus(other, [str(shard) for shard in shards], str(there), Local(), columns=columns)
        assert release_files(there) == before, said
    with pytest.MonkeyPatch.context() as patch:  # the version was unnamed where another Python had another table
        patch.setattr("corpusveil.transforms.release.release.TOKENIZER_VERSION", "1/unicode-15.1.0")
        with refused("unusable-address", 'was "1/unicode-14.0.0" and is "1/unicode-15.1.0"'):
            privatize_corpus(make_release(ground.space), [str(source)], str(there), Local())
    record = Path(f"{there}.records/run.json")
    run = json.loads(record.read_text(encoding="utf-8"))
    for name, words in WORDS.items():
        record.write_text(json.dumps(run | {"claimed": run["claimed"] | {name: "x"}}), encoding="utf-8")
        with refused("unusable-address", f"a run with {words}" if name != "release" else "another conf"):
            privatize_corpus(make_release(ground.space), [str(source)], str(there), Local())
    record.write_text(json.dumps(run), encoding="utf-8")
    assert release_files(there) == before


def test_a_further_setting_is_claimed_or_may_differ() -> None:
    """A run that was resumed at another gzip level was accepted: one more list had to be known of."""
    with pytest.raises(KeyError, match="another"):
        words_of(dataclasses.make_dataclass("Further", ["level"]))


class Meeting:
    """An engine that lets something happen before it does the tasks."""

    def __init__(self, meanwhile: Callable[[], None]) -> None:
        self.meanwhile = meanwhile

    def run(self, function: Any, tasks: Any) -> None:
        self.meanwhile()
        Local().run(function, tasks)


class TestStartedTwice:
    """Of several runs on one output one works, the others say so and touch nothing."""

    def test_the_other_one_touches_nothing(self, ground: Ground, source: Path, output: Path) -> None:
        """Whatever it is asked for, equal or not."""
        records = output.with_name("out.records")
        starts = 0

        def again() -> None:
            nonlocal starts
            before = release_files(output), release_files(records)
            for key in (TEST_KEY, TEST_KEY[::-1]):
                with refused("work-failed"):
                    privatize_corpus(make_release(ground.space, key=key), [str(source)], str(output), Local())
                starts += 1
            assert (release_files(output), release_files(records)) == before

        outcome = privatize_corpus(make_release(ground.space), [str(source)], str(output), Meeting(again))
        assert starts == 2
        assert manifest(output)["content_sha256"] == outcome.content_sha256
        assert not list(records.glob("lease*"))

    def test_many_starts_without_a_key_have_one_key(
        self, ground: Ground, source: Path, output: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
        own = home.own_key(str(output), [str(source)], None)
        with ThreadPoolExecutor(8) as pool:
            kept = pool.map(lambda _: keep(Key.generate(), own), range(8))
            keys = {key.secret for key in kept}
        assert len(keys) == 1
        (path,) = (tmp_path / "config").rglob("*.key")
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_refused_run_leaves_nothing_but_what_others_put_beside_its_records(
    ground: Ground, source: Path, output: Path
) -> None:
    """Records in a folder of the user's: the whole folder went."""
    folder = output.with_name("mine")
    (folder / "letters").mkdir(parents=True)
    (folder / "letters" / "a").write_text("a")
    spending = Spending(f"{output}.ledger", 0.5, units_of("content"))
    for records in (None, str(folder)):
        with refused("cap-exceeded", "cap 0.5"):
            privatize_corpus(
                make_release(ground.space), [str(source)], str(output), Local(), spending=spending, records=records
            )
        place = Path(records or f"{output}.records")
        left = {path.name for path in place.rglob("*")} - {"a", "letters"}
        assert left == {"over-cap.jsonl"}, "the units above the cap"
    assert (folder / "letters" / "a").read_text() == "a"


def test_a_link_is_not_followed(ground: Ground, source: Path, tmp_path: Path) -> None:
    """It leads what is written, private text among it, to where somebody else wants it."""
    for name in ("out/data", "out.records", "out.records/shards"):
        folder = tmp_path / name.replace("/", "-")
        elsewhere = folder / "elsewhere"
        elsewhere.mkdir(parents=True)
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).symlink_to(elsewhere)
        with refused("unusable-address", name):
            privatize_corpus(make_release(ground.space), [str(source)], str(folder / "out"), Local())
        assert list(elsewhere.iterdir()) == []


def test_what_is_not_ours_is_refused_and_left_as_it_is(ground: Ground, source: Path, tmp_path: Path) -> None:
    shard = "out/data/part-00000-of-00001.json.gz"
    for name in (shard, "out/data/notes.txt", "out/manifest.json", "out.report.html", "out"):
        folder = tmp_path / name.replace("/", "-")
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_bytes(b"something")
        with refused("unusable-address", "out"):
            privatize_corpus(make_release(ground.space), [str(source)], str(folder / "out"), Local())
        assert list(release_files(folder)) == [name]

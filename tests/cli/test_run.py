"""``corpusveil run``: one file does what the commands do, goes on where it stopped, and is read strictly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import corpusveil as cv
from corpusveil.pipelines.settings.toml import read
from tests.calls import QUIET, command, fails, save, succeeds
from tests.collocations.corpora import make, write
from tests.engines.corpora import UNKNOWN, WORDS, make_space, release_files, write_shard
from tests.test_documentation import blocks

EXAMPLE = blocks("docs/schedules.md", "toml")[1]


def whole(folder: Path) -> dict[str, dict[str, Any]]:
    """Return a configuration of every section and, but for what excludes each other, every key."""
    return {
        "collocations": {
            "input": [f"{folder}/public"], "text": "text", "counts": f"{folder}/counts", "table": f"{folder}/table",
            "tokens": f"{folder}/tokens", "max_n": 3, "min_count": 3, "measure": "pmi", "threshold": 0.5,
            "score_min_count": 2, "connectors_rule": "edges", "tokenizer": "mst",
        },
        "embeddings": {
            "vectors": f"{folder}/vectors", "dimensions": 8, "window": 4,
            "epochs": 1, "min_count": 3, "threads": 1,
        },
        "space": {"path": f"{folder}/space", "lists": 2, "order": "improved", "counts": f"{folder}/counts"},
        "corpus": {"input": [f"{folder}/private"], "text": "text", "keep": [], "root": f"{folder}/private",
                   "name": "news"},
        "mechanism": {"name": "ring-geometric", "beta": 0.01},
        "budget": {"epsilon": 6.0, "per": "document"},
        "text": {
            "tokenizer": "mst", "collocations": f"{folder}/table", "unknown_words": "resample",
            "stop_words": "privatize", "numbers": "mask", "contacts": "mask", "punctuation": "keep", "other": "drop",
            "layout": "normalize", "case": "lower", "markup": "words",
        },
        "key": {"path": f"{folder}/release.key"},
        "ledger": {"path": f"{folder}/ledger", "unit": ["content"], "cap": 1e6},
        "engine": {"name": "local", "workers": 1},
        "output": {
            "path": f"{folder}/out", "format": "same", "records": f"{folder}/records",
            "on_bad_rows": "refuse", "duplicates": "independent", "accept_no_guarantee": False, "rows_per_task": 8192,
        },
        "schedule": {
        },
    }  # fmt: skip


def basic(**more: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the settings of a small release, in folders beside their file, with other sections or ``more``."""
    values: dict[str, dict[str, Any]] = {
        "corpus": {"input": ["in"]}, "space": {"path": "space"}, "mechanism": {"name": "ring-geometric"},
        "budget": {"epsilon": 1.0}, "key": {"path": "release.key"}, "output": {"path": "out"},
    }  # fmt: skip
    return {**values, **more}


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    write(folder / "public", make(500, 3), 2)
    write(folder / "private", make(60, 4), 2)
    (folder / "spill").mkdir()
    cv.Key.generate().save(folder / "release.key")
    return folder


@pytest.fixture(scope="module")
def done(ground: Path) -> Path:
    """Run the whole configuration once."""
    succeeds("run", save(ground / "run.toml", whole(ground)), *QUIET)
    return ground


class TestTheFlow:
    def test_is_that_of_the_single_commands(self, done: Path, tmp_path: Path) -> None:
        """The same artifacts and the same release, byte for byte."""
        t = tmp_path
        for words in (
            ["count", f"{done}/public", "--min-count", "3", "--output", f"{t}/counts"],
            ["score", "--counts", f"{t}/counts", "--threshold", "0.5", "--min-count", "2", "--connectors-rule", "edges",
             "--output", f"{t}/table"],
            ["tokenize", f"{done}/public", "--tokenizer", "mst", "--collocations", f"{t}/table", "--output",
             f"{t}/tokens"],
            ["train", "--tokens", f"{t}/tokens", "--dimensions", "8", "--window", "4", "--epochs",
             "1", "--min-count", "3", "--output", f"{t}/vectors"],
            ["space", "--vectors", f"{t}/vectors", "--lists", "2", "--order", "improved",
             "--counts", f"{t}/counts", "--output", f"{t}/space"],
            ["privatize", f"{done}/private", "--space", f"{t}/space", "--mechanism", "ring-geometric", "--parameter",
             "beta=0.01", "--epsilon", "6", "--per", "document",
             "--tokenizer", "mst", "--collocations", f"{t}/table", "--numbers", "mask", "--key",
             f"{done}/release.key", "--corpus", "news", "--output", f"{t}/out"],
        ):  # fmt: skip
            succeeds(*words, *QUIET)
        for name in ("counts", "table", "tokens", "space", "out"):
            found, expected = release_files(done / name), release_files(t / name)
            found.pop("_call.json", None)
            for one in (found, expected):
                one.pop("_artifact.json", None)  # which names paths
                one.pop("manifest.json", None)
            assert found == expected, name

    def test_again_does_nothing_and_refuses_what_was_made_otherwise(self, done: Path) -> None:
        """Every artifact knows its own call, and of a space a note does."""
        said = succeeds("run", done / "run.toml", *QUIET).err
        for name in ("counts", "table", "tokens", "vectors", "space"):
            assert f"{done / name}: already complete; nothing was done." in said
        for section, key, value in (("collocations", "max_n", 2), ("space", "lists", 3)):
            values = whole(done)
            values[section][key] = value
            fails(["run", save(done / "other.toml", values), *QUIET], "unusable-address", "choose another")


def test_a_printed_configuration_prints_itself_and_makes_nothing(tmp_path: Path) -> None:
    printed = succeeds("run", save(tmp_path / "a.toml", whole(tmp_path)), "--print-config").out
    (tmp_path / "b.toml").write_text(printed)
    assert succeeds("run", tmp_path / "b.toml", "--print-config").out == printed
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.toml", "b.toml"]


class TestWrongFiles:
    def test_keys_that_do_not_go_together(self, tmp_path: Path) -> None:
        """Each is named, and nothing is made."""
        for section, changes, code, named in (
            ("key", {"environment": "K"}, "wrong-setting", "key.environment"),
            ("budget", {"per": "token", "allocation": "word-share"}, "wrong-setting", "budget.allocation"),
            ("budget", {"strategy": "s4", "allocation": "word-share"}, "wrong-setting", "budget.allocation"),
            ("text", {"tokenizer": "word"}, "wrong-setting", "text.collocations"),
            ("engine", {"master": "local"}, "wrong-setting", "engine.master"),
            ("engine", {"name": "flink"}, "wrong-setting", "engine.name"),
            ("engine", {"workers": "two"}, "wrong-setting", 'engine.workers = "two": give a whole number.'),
            ("collocations", {"max_n": 9}, "wrong-setting", "max_n = 9: give a number of at most 5."),
            ("collocations", {"input": "c4"}, "wrong-setting", 'input = "c4": give a list of texts in brackets.'),
            ("schedule", {"settle": "10"}, "wrong-setting", "write it as 10s, 10m, 10h or 10d."),
            ("mechanism", {"name": "ring-geometri"}, "wrong-setting", "ring-geometric?"),
            ("budget", {"epsilon": float("inf")}, "wrong-setting", "budget.epsilon"),
            ("output", None, "wrong-setting", "[output]"), ("budget", None, "wrong-setting", "[budget]"),
            ("collocations", None, "wrong-setting", "[embeddings]"),
        ):  # fmt: skip
            values = whole(tmp_path)
            if changes is None:
                del values[section]
            else:
                values[section] = values.get(section, {}) | changes
            file = Path(save(tmp_path / "run.toml", values))
            file.write_text(file.read_text().replace("Infinity", "inf"))
            fails(["run", file], code, named)
        assert [path.name for path in tmp_path.iterdir()] == ["run.toml"]

    def test_files_that_are_none(self, tmp_path: Path) -> None:
        """One sentence that names the file and quotes none of it."""
        file = tmp_path / "run.toml"
        for content in (b"[corpus", b"\xff", b"", b"corpus = 1", UNKNOWN.encode()):
            file.write_bytes(content)
            ended = command("run", file)
            assert (ended.status, ended.err.count("\n")) == (2, 1), content
            assert "run.toml" in ended.err
        fails(["run", tmp_path / "none.toml"], "unusable-address", "none.toml")


@pytest.fixture
def placed(tmp_path: Path) -> Path:
    """A release in a folder below the working folder, every path relative to its file."""
    folder = tmp_path / "releases" / "may"
    write_shard(folder / "in" / "a.jsonl", [{"text": " ".join(WORDS[:9])}])
    make_space(tmp_path / "releases" / "space")
    cv.Key.generate().save(folder / "release.key")
    values = basic(
        corpus={"input": ["./in/*.jsonl"], "root": "in"}, space={"path": "../space"}, ledger={"path": "ledger"},
        output={"path": "out", "records": "records"},
    )  # fmt: skip
    save(folder / "s.toml", values)
    return tmp_path


class TestPaths:
    def test_begin_where_the_file_lies(self, placed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Whatever the working folder: nothing is read or written beside it."""
        (placed / "elsewhere").mkdir()
        monkeypatch.chdir(placed / "elsewhere")
        of_release = {"out", "records", "ledger"}
        for words, expected in (
            (["plan"], set()), (["run", *QUIET], of_release),
            (["schedule", *QUIET], {*of_release, "nights"}),
        ):  # fmt: skip
            if "schedule" in words:  # which shares no output with a run
                file = placed / "releases" / "may" / "s.toml"
                file.write_text(file.read_text().replace('path = "out"', 'path = "nights"'))
            succeeds(*words, "../releases/may/s.toml")
            assert not list((placed / "elsewhere").iterdir())
            made = {path.name for path in (placed / "releases" / "may").iterdir()} - {"in", "s.toml", "release.key"}
            assert {name.partition(".report")[0] for name in made} == expected, words

    def test_a_link_to_a_file_is_where_it_lies(self, placed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """In the call and in what starts it alike."""
        (placed / "other").mkdir()
        (placed / "other" / "s.toml").symlink_to(placed / "releases" / "may" / "s.toml")
        monkeypatch.chdir(placed)
        assert read("other/s.toml").settings.value("output.path") == str(placed / "other" / "out")

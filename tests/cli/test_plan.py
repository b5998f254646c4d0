"""``corpusveil plan`` and ``preview``: what a release would take and make, from a sample, without making anything."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import pytest

import corpusveil as cv
from corpusveil.jobs.local import Local
from corpusveil.ledger.caps import Spending
from corpusveil.ledger.units import units_of
from corpusveil.spaces import Space
from corpusveil.storage.corpus import CorpusIn, CorpusOut
from corpusveil.transforms.release import planning
from corpusveil.transforms.release.corpus import Run
from corpusveil.transforms.release.planning import forecast
from tests.calls import QUIET, fails, privatize_corpus, save, succeeds
from tests.cli.test_run import basic
from tests.engines.corpora import TEST_KEY, UNKNOWN, WORDS, Ground, read_shard, release_files, text_of, write_shard


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write twelve shards of very different sizes."""
    folder, rng = tmp_path_factory.mktemp("corpus"), random.Random(4)
    for number in range(12):
        rows = [{"text": text_of(rng, rng.randrange(5, 60))} for _ in range(rng.randrange(200, 900))]
        write_shard(folder / f"s{number:02d}.json.gz", rows)
    return folder


def release_of(space: Space) -> cv.Release:
    return cv.Release(
        cv.mechanism("ring-geometric", space), cv.Budget(4.0, "document"), cv.TextPolicy(), key=cv.Key(TEST_KEY)
    )


@pytest.mark.parametrize("parts", ["whole shards", "rows"])
def test_is_within_a_quarter_of_the_truth(
    space: Space, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parts: str
) -> None:
    """Documents, tokens and bytes written of twelve shards, from three of them, or from some rows of these."""
    if parts == "rows":
        monkeypatch.setattr(planning, "WHOLE_BYTES", 1000)
        monkeypatch.setattr(planning, "ROWS", 150)
    found = forecast(Run(release_of(space), CorpusIn([str(corpus)]), CorpusOut("")))
    outcome = privatize_corpus(release_of(space), [str(corpus)], str(tmp_path / "out"), Local())
    written = sum(path.stat().st_size for path in (tmp_path / "out" / "data").iterdir())
    assert (found.shards, found.sampled) == (12, 3)
    assert found.documents == pytest.approx(outcome.counts.documents, rel=0.25)
    assert found.tokens == pytest.approx(outcome.counts.tokens_written, rel=0.25)
    assert found.bytes_written == pytest.approx(written, rel=0.25)
    assert found.cpu_seconds > 0
    assert 0 < found.nats[0] <= found.nats[1] < 1e4


def test_asks_the_ledger(space: Space, corpus: Path, tmp_path: Path) -> None:
    """What was spent, and that the caps would refuse the sample; the ledger stays as it is, or is not made."""
    ledger = tmp_path / "ledger"

    def capped(total: float | None) -> Spending:
        return Spending(str(ledger), total, units_of("content"))

    assert forecast(Run(release_of(space), CorpusIn([str(corpus)]), CorpusOut(""), spending=capped(None))).spent is None
    assert not ledger.exists()
    privatize_corpus(release_of(space), [str(corpus)], str(tmp_path / "out"), Local(), spending=capped(None))
    before = sorted(path.name for path in ledger.rglob("*"))
    held = capped(cv.Ledger(str(ledger)).spent().most * 1.000001)
    again = forecast(Run(release_of(space), CorpusIn([str(corpus)]), CorpusOut(""), spending=held))
    assert again.refused is None, "equal noise is charged once, as by the run"
    other = cv.Release(
        cv.mechanism("ring-geometric", space), cv.Budget(4.0, "document"), cv.TextPolicy(), key=cv.Key.generate()
    )
    refused = forecast(Run(other, CorpusIn([str(corpus)]), CorpusOut(""), spending=capped(500.0)))
    assert refused.refused is not None
    assert "cap 500" in refused.refused
    assert refused.spent is not None
    most = refused.by_unit[-1]
    assert 500 < refused.spent < most, "with what was spent before"
    assert sorted(refused.by_unit) == list(refused.by_unit)
    assert forecast(Run(other, CorpusIn([str(corpus)]), CorpusOut(""), spending=capped(most))).refused is None
    assert (
        forecast(Run(other, CorpusIn([str(corpus)]), CorpusOut(""), spending=capped(most * 0.999))).refused is not None
    )
    assert sorted(path.name for path in ledger.rglob("*")) == before


def toml(folder: Path, space: Space, cap: float, **corpus: str) -> str:
    """Write a configuration whose paths are relative to the folder that it is run in; return its path."""
    ledger, output = {"path": "ledger", "unit": ["content"], "cap": cap}, {"path": f"out-{cap:g}"}
    values = basic(corpus={"input": ["in"], **corpus}, space={"path": space.url}, ledger=ledger, output=output)
    return save(folder / "run.toml", values)


@pytest.mark.parametrize("corpus", [{}, {"name": "news"}])
def test_all_commands_call_a_corpus_alike(
    space: Space, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, corpus: dict[str, str]
) -> None:
    """By its name, or by its folder, however that is written: one entry for plan, run, privatize and schedule."""
    monkeypatch.chdir(tmp_path)
    cv.Key(TEST_KEY).save("release.key")
    write_shard(tmp_path / "in" / "a.jsonl", [{"text": text_of(random.Random(1), 30)}])
    file = toml(tmp_path, space, 900.0, **corpus)
    options = [word for name, value in corpus.items() for word in (f"--{name.replace('name', 'corpus')}", value)]
    succeeds("schedule", file, *QUIET)
    succeeds(
        "privatize", f"{tmp_path}/in/a.jsonl", "--space", space.url, "--mechanism", "ring-geometric", "--epsilon", "1",
        "--key", "release.key", "--ledger", "ledger", "--unit", "content", "--output", "alone", *options, *QUIET,
    )  # fmt: skip
    shutil.rmtree("out-900"), shutil.rmtree("out-900.records")
    succeeds("run", file, *QUIET)
    succeeds("plan", file)
    assert len(list((tmp_path / "ledger" / "entries").glob("*.parquet"))) == 1
    (line,) = cv.Ledger("ledger").spent().releases
    assert line["namespace"] == corpus.get("name", "")
    assert str(tmp_path) not in "".join(path.read_text() for path in tmp_path.glob("*/manifest.json"))


def test_of_a_call_is_the_call_after_the_word_plan(space: Space, corpus: Path, tmp_path: Path) -> None:
    """Any options of privatize; nothing is made, and what is wrong is refused as in the call."""
    words = ["privatize", corpus, "--space", space.url, "--epsilon", "1", "--output", tmp_path / "out"]
    words += ["--ledger", tmp_path / "ledger", "--unit", "content"]
    said = succeeds("plan", *words).out
    assert "the smallest cap that passes is" in said
    assert UNKNOWN not in said
    fails(["plan", *words, "--epsilon", "-1"], "wrong-setting", "--epsilon -1")
    assert not list(tmp_path.iterdir())
    (tmp_path / "in.jsonl").write_text('{"text": "good wine"}\n')
    fails(["plan", tmp_path / "in.jsonl"], "unsuitable-data", "in.jsonl", "corpusveil plan privatize …")


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a shard of eight documents."""
    documents = [{"text": " ".join(WORDS[row : row + 9])} for row in range(8)]
    return write_shard(tmp_path_factory.mktemp("preview") / "a.jsonl", documents)


def of(name: str, told: str) -> list[str]:
    """Return the texts of a name, in their order."""
    return [line.strip().removeprefix(name).strip() for line in told.splitlines() if line.strip().startswith(name)]


def test_a_preview_writes_nothing(space: Space, texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No key, no record, no file: not here, not in the home, not beside the input."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "configuration"))
    monkeypatch.chdir(tmp_path)
    before = release_files(texts.parent)
    succeeds("preview", texts, "--space", space.url, "--epsilon", "1", *QUIET)
    assert release_files(texts.parent) == before
    assert list(tmp_path.iterdir()) == []


def test_with_the_key_a_preview_shows_what_will_be_written(ground: Ground, texts: Path, tmp_path: Path) -> None:
    """Under the release's key and settings the texts are those of the release."""
    call = ground.arguments(texts, tmp_path / "out")
    succeeds(*call)
    settings = [word for word in call[1:] if word not in ("--output", str(tmp_path / "out"))]
    shown = of("epsilon 1  ", succeeds("preview", *settings).out)
    written = [row["text"] for row in read_shard(tmp_path / "out" / "data" / "part-00000-of-00001.jsonl")]
    assert shown == written[:5]


def test_what_a_terminal_would_obey_is_not_shown(space: Space, tmp_path: Path) -> None:
    """A text may hold codes that clear a screen or write to a clipboard."""
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": f"{WORDS[0]} \x1b]52;c;eA==\x07 \x9b2J {WORDS[1]}"}) + "\n")
    out = succeeds("preview", tmp_path / "a.jsonl", "--space", space.url, *QUIET).out
    assert not {"\x1b", "\x07", "\x9b"} & set(out)
    assert WORDS[1] in out

"""``corpusveil plan``: what a release would take, from a sample, without making anything."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import corpusveil as cv
from corpusveil.cli.main import run
from corpusveil.errors import UserError
from corpusveil.pipelines.local import LocalEngine
from corpusveil.spaces import Space
from corpusveil.storage.inputs import find_shards
from corpusveil.storage.rows import Columns
from corpusveil.transforms import planning
from corpusveil.transforms.copies import Copies
from corpusveil.transforms.corpus import privatize_corpus
from corpusveil.transforms.planning import count_duplicates, forecast
from corpusveil.transforms.spending import Caps, Spending
from tests.engines.corpora import TEST_KEY, UNKNOWN, make_space, text_of, write_shard


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Space:
    return make_space(tmp_path_factory.mktemp("space") / "space")


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
        cv.mechanism("ring-geometric", space), cv.Budget(4.0, "document"), cv.TextPolicy(), cv.Key(TEST_KEY)
    )


@pytest.mark.parametrize("parts", ["whole shards", "rows"])
def test_is_within_a_quarter_of_the_truth(
    space: Space, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parts: str
) -> None:
    """Documents, tokens and bytes written of twelve shards, from three of them, or from some rows of these."""
    if parts == "rows":
        monkeypatch.setattr(planning, "WHOLE_BYTES", 1000)
        monkeypatch.setattr(planning, "ROWS", 150)
    found = forecast(release_of(space), [str(corpus)])
    outcome = privatize_corpus(release_of(space), [str(corpus)], str(tmp_path / "out"), LocalEngine())
    written = sum(path.stat().st_size for path in (tmp_path / "out" / "data").iterdir())
    assert (found.shards, found.sampled) == (12, 3)
    assert found.documents == pytest.approx(outcome.counts.documents, rel=0.25)
    assert found.tokens == pytest.approx(outcome.counts.tokens_written, rel=0.25)
    assert found.bytes_written == pytest.approx(written, rel=0.25)
    assert found.cpu_seconds > 0
    assert found.readings["total"][1] <= 4.0


def test_asks_the_ledger(space: Space, corpus: Path, tmp_path: Path) -> None:
    """What was spent, and that the caps would refuse the sample; the ledger stays as it is, or is not made."""
    ledger = tmp_path / "ledger"
    assert forecast(release_of(space), [str(corpus)], spending=Spending(str(ledger))).spent == {}
    assert not ledger.exists()
    privatize_corpus(
        release_of(space), [str(corpus)], str(tmp_path / "out"), LocalEngine(), corpus="news",
        spending=Spending(str(ledger)),
    )  # fmt: skip
    before = sorted(path.name for path in ledger.rglob("*"))
    other = cv.Release(
        cv.mechanism("ring-geometric", space), cv.Budget(4.0, "document"), cv.TextPolicy(), cv.Key.generate()
    )
    found = forecast(other, [str(corpus)], corpus="news", spending=Spending(str(ledger), Caps(total=5.0)))
    assert found.refused is not None
    assert "--cap 5" in found.refused
    (value,) = found.spent.values()
    assert 3 < value <= 4
    fits = forecast(other, [str(corpus)], corpus="news", spending=Spending(str(ledger), Caps(total=9.0)))
    assert fits.refused is None
    assert sorted(path.name for path in ledger.rglob("*")) == before


def test_counts_copies(tmp_path: Path) -> None:
    """Over all shards; what differs in one character is no copy."""
    write_shard(tmp_path / "a.jsonl", [{"text": "one"}, {"text": "two"}, {"text": "one"}])
    write_shard(tmp_path / "b.jsonl", [{"text": "one"}, {"text": "One"}, {"text": ""}])
    assert count_duplicates(find_shards([str(tmp_path)]), Columns()) == Copies(6, 2, 3)


def test_of_a_file(space: Space, corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It says all of it, makes nothing, and quotes nothing."""
    file = tmp_path / "run.toml"
    file.write_text(
        f'[corpus]\ninput = ["{corpus}"]\n[space]\npath = "{space.url}"\n[mechanism]\nname = "ring-geometric"\n'
        f'[budget]\nepsilon = 2.0\n[output]\npath = "{tmp_path}/out"\n[ledger]\npath = "{tmp_path}/ledger"\n'
    )
    assert run(["plan", str(file), "--duplicates"]) == 0
    said = capsys.readouterr().out
    for words in ("12 shards", "tokens", "MiB written", "CPU seconds", "a document spends", "copies of an earlier one"):
        assert words in said
    assert UNKNOWN not in said
    assert [path.name for path in tmp_path.iterdir()] == ["run.toml"]


def test_a_bad_row_is_said(space: Space, tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text(UNKNOWN)
    with pytest.raises(UserError, match="row 1") as caught:
        forecast(release_of(space), [str(tmp_path / "x.jsonl")])
    assert UNKNOWN not in str(caught.value)

"""``--risk`` in place of ``--epsilon``: from public artifacts alone, said, and written into the manifest."""

from __future__ import annotations

import functools
import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import corpusveil as cv
from corpusveil.pipelines import resolve
from corpusveil.spaces.vectors import Vectors
from tests.calls import QUIET, command, fails, succeeds
from tests.cli.test_run import basic, save
from tests.engines.corpora import TEST_KEY, data_files, manifest
from tests.language.random_texts import WORDS, corpus, sample_file


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a space and a language model of public text."""
    folder = tmp_path_factory.mktemp("public")
    text = corpus(800, 1, 40)
    (folder / "text").mkdir()
    (folder / "text" / "a.txt").write_text("\n".join(one.replace("\n", " ") for one in text))
    counted = [str(folder / "text"), "--output", str(folder / "counts"), "--min-count", "1"]
    succeeds("count", *counted, *QUIET)
    (folder / "like.txt").write_text("\n".join(text.replace("\n", " ") for text in corpus(4000, 2, 40)))
    rows = [{"text": text, "register": "like"} for text in (folder / "like.txt").read_text().splitlines()]
    rows += [{"text": text, "register": "other", "counted": False} for text in corpus(3000, 3, 20)]
    sample = sample_file(folder / "sample.jsonl.zst", rows)
    succeeds("model", "--counts", folder / "counts", "--output", folder / "model", "--sample", sample, *QUIET)
    vectors = Vectors(WORDS[:40], np.random.default_rng(0).normal(size=(40, 4)).astype(np.float32))
    counts = (1000 / np.arange(1, 41)).astype(int)
    cv.build_space(vectors, counts=counts).save(str(folder / "space"))
    return folder


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a private corpus and a key, in which commands are started."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    lines = (json.dumps({"text": " ".join(WORDS[k : k + 9])}) + "\n" for k in range(20))
    (tmp_path / "in" / "a.jsonl").write_text("".join(lines))
    cv.Key(TEST_KEY).save("release.key")
    return tmp_path


def call(public: Path, *more: str, space: str = "space", output: str = "out") -> list[str]:
    """Return a call of privatize without an epsilon."""
    words = ["privatize", "in", "--space", str(public / space), "--mechanism", "ring-geometric", "--output", output]
    return [*words, "--key", "release.key", "--corpus", "news", *QUIET, *more]


def asked(public: Path, risk: str = "0.6") -> list[str]:
    """Return the options of a risk."""
    return ["--risk", risk, "--model", str(public / "model")]


def settings(public: Path, **budget: Any) -> dict[str, dict[str, Any]]:
    return basic(corpus={"input": ["in"], "name": "news"}, space={"path": str(public / "space")}, budget=budget)


@functools.cache
def chosen(public: Path, risk: float) -> cv.EpsilonAtRisk:
    """Return what Python chooses."""
    mechanism = cv.RingGeometric(cv.load_space(str(public / "space")))
    return cv.epsilon_for_risk(mechanism, risk, model=cv.load_model(str(public / "model")))


class TestARelease:
    def test_is_the_one_of_the_epsilon_that_is_chosen(self, public: Path, folder: Path) -> None:
        """The same bytes as with that epsilon; the manifest says what chose it, and no other one does."""
        found = chosen(public, 0.6)
        assert found.sentence() in succeeds(*call(public, *asked(public))).out
        assert "Risk" not in succeeds(*call(public, "--epsilon", repr(found.epsilon), output="again")).out
        first, again = ([path.read_bytes() for path in data_files(folder / name)] for name in ("out", "again"))
        assert first == again
        told, plain = manifest("out"), manifest("again")
        assert told["configuration"]["budget"]["epsilon"] == found.epsilon
        assert told.pop("risk") == found.as_dict()
        assert told == plain
        assert "risk" not in plain
        mechanism = {"mechanism": "ring-geometric", "space": str(public / "space")}
        named = cv.release(risk=0.6, model=str(public / "model"), key=cv.Key(TEST_KEY), **mechanism)
        assert named.digest == told["release"], "cv.release chooses the same"
        assert "a risk of 60.0% of content words" in (folder / "out.report.html").read_text()

    def test_of_a_reader_of_context_needs_a_model(self, public: Path, folder: Path) -> None:
        """By default: of content words, recovered from context in the sample of the model, or in a given text."""
        found, asked = chosen(public, 0.6), call(public, "--risk", "0.6")
        fails(asked, "missing-setting", "--model", "--epsilon")
        assert not (folder / "out").exists()
        model = ["--model", str(public / "model")]
        assert found.sentence() in succeeds(*asked, *model).out
        assert manifest("out")["risk"] == found.as_dict()
        assert found.model == cv.load_model(str(public / "model")).digest
        assert found.unlike is not None
        asked = call(public, "--risk", "0.6", *model, "--risk-text", str(public / "like.txt"), output="own")
        assert "of the content words of the public text that was given" in succeeds(*asked).out
        own = manifest("own")["risk"]
        assert (own["measured"], own["own_text"], "unlike" in own) == (found.measured, True, False)

    @pytest.mark.nightly
    def test_is_chosen_before_the_input_is_looked_at(
        self, public: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """So it can't depend on it: here there is none, and an error comes without announcements."""
        (folder / "in" / "a.jsonl").unlink()
        chosen: list[float] = []

        def choose(*arguments: Any, **options: Any) -> Any:
            found = cv.epsilon_for_risk(*arguments, **options)
            chosen.append(found.epsilon)
            return found

        monkeypatch.setattr(resolve, "epsilon_for_risk", choose)
        ended = command(*call(public, *asked(public)))
        assert (ended.status, ended.out, len(chosen)) == (2, "", 1)
        assert "[missing-file]" in ended.err


class TestAFile:
    @pytest.mark.nightly
    def test_asks_for_it_and_is_printed_with_it(self, public: Path, folder: Path) -> None:
        file = save(folder / "run.toml", settings(public, risk=0.6, model=str(public / "model")))
        for step, more in (("plan", ()), ("run", QUIET)):
            assert not (folder / "out").exists()
            assert chosen(public, 0.6).sentence() in succeeds(step, file, *more).out
        printed = succeeds("run", file, "--print-config").out
        budget = tomllib.loads(printed)["budget"]
        assert (budget["risk"], "epsilon" in budget) == (0.6, False)
        (folder / "again.toml").write_text(printed)
        assert succeeds("run", folder / "again.toml", "--print-config").out == printed

    @pytest.mark.nightly
    def test_has_the_model_of_its_own_section(self, public: Path, folder: Path) -> None:
        """As denoising has; a model that is named beside the risk goes before it."""
        asked = settings(public, risk=0.6)
        file = save(folder / "run.toml", asked)
        fails(["plan", file], "missing-setting", "run.toml", "budget.model", "budget.epsilon")
        asked |= {"model": {"path": str(public / "model")}, "collocations": {"counts": str(public / "counts")}}
        assert chosen(public, 0.6).sentence() in succeeds("plan", save(folder / "run.toml", asked)).out
        asked["budget"]["model"] = "models/elsewhere"
        fails(["plan", save(folder / "run.toml", asked)], "missing-artefact", f"{folder}/models/elsewhere")


def test_what_does_not_go_together_is_one_sentence(public: Path, folder: Path) -> None:
    for options, code, named in (
        (["--risk", "0.5", "--epsilon", "1"], "conflicting-settings", "--epsilon"),
        ([], "missing-setting", "--risk"),
        (["--risk", "0.6"], "missing-setting", "--model"),
        (["--risk", "0.5", "--per", "document"], "conflicting-settings", "--per"),
        (["--risk", "0.5", "--strategy", "s3", "--collocations", "c"], "conflicting-settings", "--per"),
        (["--epsilon", "1", "--model", "m"], "conflicting-settings", "--risk"),
        (["--risk", "1"], "wrong-value", "--risk 1.0"),
        (["--epsilon", "1", "--risk-text", "t"], "conflicting-settings", "--risk"),
        (asked(public, "0.01"), "unsuitable-data", "0.01"),
    ):  # fmt: skip
        fails(call(public, *options), code, named)
        assert not (folder / "out").exists(), options

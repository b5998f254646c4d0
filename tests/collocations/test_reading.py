"""How text is read for counting: abbreviations end nothing, and hyphens join where that is asked for, in every step."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from corpusveil.budget import Budget
from corpusveil.collocations.artifact import ReadingOptions
from corpusveil.collocations.collocation_table import Collocations, load_collocations
from corpusveil.collocations.tokenizers import units
from corpusveil.mechanisms import make_mechanism
from corpusveil.sampling.keys import Key
from corpusveil.spaces import load_space
from corpusveil.spaces.build import build_space
from corpusveil.spaces.vectors import Vectors
from corpusveil.text.policy import TextPolicy
from corpusveil.text.tokens import Tokenizer
from corpusveil.transforms.release.release import Release
from corpusveil.transforms.table import privatize
from tests.calls import fails, refused, save, succeeds, texts_of

TEXT = "Mr. Kennedy met Dr. Who of the U.S. Army. Then he left. A long-term, well-known plan's end - at X.\n"


class TestUnits:
    @pytest.mark.parametrize("method", ["gst", "mst"])
    @pytest.mark.parametrize(
        ("text", "ngrams", "expected"),
        [
            (TEXT, ["mr kennedy", "u s army"], ["Mr. Kennedy", "U.S. Army"]),
            ("An x-ray, an x ray, my mother-in-law", ["x ray", "in law"], ["x-ray", "x ray", "in-law"]),
        ],
    )
    def test_take_stops_and_hyphens_in_as_counting_does(
        self, method: Any, text: str, ngrams: list[str], expected: list[str]
    ) -> None:
        rows = pa.table({"ngram": ngrams, "n": [ngram.count(" ") + 1 for ngram in ngrams], "score": [3.0, 4.0]})
        table = Collocations.from_table(rows)
        tokens = Tokenizer.of_words(table.words).tokenize([text])
        segments, _ = units(tokens, tokens.ids, table, method)
        data = tokens.data.tobytes().decode()
        first = np.flatnonzero(segments.entries >= 0)
        last = first + segments.lengths[first] - 1
        assert [data[tokens.starts[a] : tokens.ends[b]] for a, b in zip(first, last, strict=True)] == expected
        assert segments.lengths.sum() == len(tokens)
        assert table.digest != Collocations.from_table(rows, ReadingOptions("join")).digest


class TestHyphens:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("Mother-in-Law's", ["Mother-in-Law's"]),
            ("a- b -c --d e-", ["a", "-", "b", "-", "c", "-", "-", "d", "e", "-"]),
            ("co-2 2-fold é-è", ["co", "-", "2", "2", "-", "fold", "é-è"]),
            ("a-b@c-d.org x-y", ["a-b@c-d.org", "x-y"]),
        ],
    )
    def test_joins_letters_only(self, text: str, expected: list[str]) -> None:
        """A word may have hyphens inside, and nothing else may."""
        tokens = Tokenizer.of_words(["well-known", "é-è"], "join").tokenize([text])
        assert texts_of(tokens) == expected
        assert ("well-known" in text) == (0 in tokens.ids.tolist())

    def test_every_step_agrees(self, tmp_path: Path) -> None:
        """Counting, GST, training, the space and the release read *long-term* as one word, or say who does not."""
        t = tmp_path
        (t / "in.txt").write_text("a long-term plan and a well-known plan\nthe long-term plan is one\n" * 20)
        quiet = ["--progress", "none"]
        table = ["--collocations", f"{t}/table"]
        flow = {"input": [f"{t}/in.txt"], "counts": "counts", "table": "table", "threshold": 0.1, "hyphens": "join"}
        for command in (
            ["run", save(t / "flow.toml", {"collocations": flow})],
            ["tokenize", f"{t}/in.txt", "--tokenizer", "gst", *table, "--output", f"{t}/tokens"],
            ["train", "--tokens", f"{t}/tokens", "--dimensions", "4", "--min-count", "1", "--output", f"{t}/vectors"],
            ["space", "--vectors", f"{t}/vectors", "--counts", f"{t}/counts", "--output", f"{t}/space"],
        ):
            succeeds(*command, *quiet)
        space, collocations = load_space(f"{t}/space"), load_collocations(f"{t}/table")
        assert "long-term_plan" in space.vocabulary
        assert (space.hyphens, collocations.hyphens) == ("join", "join")
        mechanism, key = make_mechanism("ring-geometric", space), Key.for_tests()
        joined = TextPolicy(tokenizer="gst", hyphens="join", unknown_words="mask")
        release = Release(mechanism, Budget(epsilon=60.0), joined, key=key, collocations=collocations)
        assert privatize(["The long-term plan"], release, ids=["a"]) == ["the long-term plan"]
        said = "was read with hyphens join"
        with refused("wrong-setting", said):
            Release(mechanism, Budget(1.0), TextPolicy(), key=key)
        other = make_mechanism(
            "ring-geometric", build_space(Vectors(["long-term_plan", "b"], np.eye(2, dtype=np.float32)))
        )
        with refused("wrong-setting", said):
            Release(other, Budget(1.0), TextPolicy(tokenizer="gst"), key=key, collocations=collocations)
        private = ["privatize", f"{t}/in.txt", "--space", f"{t}/space", "--mechanism", "ring-geometric"]
        private += ["--epsilon", "1", "--test-key", *quiet]
        fails([*private, "--output", f"{t}/no"], "wrong-setting", "hyphens")
        joined_file = {
            "corpus": {"input": ["in.txt"]}, "space": {"path": "space"}, "mechanism": {"name": "ring-geometric"},
            "budget": {"epsilon": 1.0}, "text": {"hyphens": "join"}, "key": {"test": True}, "output": {"path": "yes"},
        }  # fmt: skip
        succeeds("run", save(t / "yes.toml", joined_file), *quiet)
        assert json.loads((t / "yes" / "manifest.json").read_text())["configuration"]["text"]["hyphens"] == "join"
        other_way = {"input": ["in.txt"], "table": "table", "tokens": "x", "tokenizer": "gst", "hyphens": "split"}
        fails(["run", save(t / "x.toml", {"collocations": other_way})], "wrong-setting", "join")
        succeeds("count", f"{t}/in.txt", "--output", f"{t}/plain", *quiet)
        space_of = ["space", "--vectors", f"{t}/vectors", "--counts", f"{t}/plain", "--output", f"{t}/y"]
        fails(space_of, "wrong-setting", "hyphens")

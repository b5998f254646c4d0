"""``corpusveil evaluate model`` and ``denoise`` read public data and a release, and nothing else: seen from outside."""

from __future__ import annotations

import json
from pathlib import Path

import corpusveil as cv
from corpusveil_evaluate.readers.ngrams.denoise import NO_FACTS
from tests.calls import QUIET, fails, succeeds
from tests.engines.corpora import TEST_KEY, make_space, release_files, rows, write_shard


def test_a_model_is_made_of_counts_and_reads_a_release(tmp_path: Path) -> None:
    """A line for each row of the release, which stays as it is; and what is missing is said."""
    at = {name: tmp_path / name for name in ("space", "key", "public.jsonl", "counts", "model", "released")}
    make_space(at["space"])
    cv.Key(TEST_KEY).save(at["key"])
    write_shard(at["public.jsonl"], rows(800, 90, words=20))
    succeeds("count", at["public.jsonl"], "--min-count", "1", "--output", at["counts"], *QUIET)
    succeeds("evaluate", "model", "--counts", at["counts"], "--output", at["model"])
    for number in range(2):
        write_shard(tmp_path / "in" / f"{number}.jsonl", [*rows(60, number), {"text": None}])
    succeeds("privatize", tmp_path / "in", "--space", at["space"], "--mechanism", "ring-geometric", "--epsilon", "1",
             "--key", at["key"], "--output", at["released"], "--corpus", "news", *QUIET)  # fmt: skip
    before = release_files(at["released"])
    words = ["evaluate", "denoise", at["released"], "--space", at["space"], "--output", tmp_path / "out.jsonl"]
    assert NO_FACTS in succeeds(*words, "--model", at["model"]).out
    read = [json.loads(line)["text"] for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert (len(read), read[60], read[121]) == (122, None, None)
    assert release_files(at["released"]) == before
    fails([*words, "--model", at["counts"]], "wrong-setting", "counts")


def test_commands_that_were_of_the_package_itself_keep_their_names() -> None:
    listed = succeeds("--help").out
    for name in ("audit", "denoise", "model"):
        assert f"\n  {name} " in listed
        usage, _, help = succeeds(name, "--help").out.partition("\n\n")
        assert (usage.split()[:3], help) == (
            ["Usage:", "corpusveil", name],
            succeeds("evaluate", name, "--help").out.partition("\n\n")[2],
        )

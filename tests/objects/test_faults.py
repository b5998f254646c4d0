"""A store that fails for a while changes nothing; one that stays down is one sentence, and nothing is half there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import s3fs

import corpusveil as cv
from tests.calls import command, fails, refused, succeeds
from tests.engines.corpora import run
from tests.engines.processes import free_port
from tests.objects.conftest import Place, Reference, data_of
from tests.objects.proxy import Proxy

SHARD = r"/c4/c4-train.0000[013]"
DATA = r"/private/out/data/part-0000[13]"
DONE = r"out\.records/shards/part-0000[13]"
LIST = r"list-type=2.*prefix=c4"
SPACE = r"/space/(vectors|lists)\.npy"


def finishes(place: Place, reference: Reference) -> None:
    succeeds(*place.arguments())
    assert place.store.objects(place.output) == reference.files
    assert place.store.unfinished(place.bucket) == []


READS = (
    ("refuse", {"times": 2}), ("refuse", {"status": 500, "code": "InternalError", "times": 1}), ("reset", {"times": 2}),
    ("cut", {"times": 2}), ("delay", {"times": 2, "seconds": 0.2}), ("refuse", {"times": 1}), ("cut", {"times": 1}),
    ("reset", {"times": 1}),
)  # fmt: skip
"""What goes wrong when a shard is read, two in one run: with the first shard, and with others."""
BESIDE = (
    [("GET", SPACE, "cut", {"times": 1}), ("PUT", DATA, "lose", {"times": 1})],
    [("HEAD", SHARD, "refuse", {"times": 1}), ("PUT", DONE, "lose", {"times": 1})],
    [("GET", LIST, "refuse", {"times": 1}), ("PUT", DATA, "refuse", {"times": 2})],
    [("GET", LIST, "cut", {"times": 1}), ("PUT", r"run\.json", "lose", {"times": 1})],
    [("PUT", DATA, "refuse", {"status": 500, "code": "InternalError", "times": 1})],
    [("PUT", r"run\.json", "refuse", {"status": 409, "code": "ConditionalRequestConflict", "times": 2})],
    [("PUT", r"manifest\.json", "refuse", {"times": 1})],
    [("DELETE", "progress|failed", "refuse", {"times": 1})],
)
"""What goes wrong in the same run, with other requests."""


@pytest.mark.parametrize("number", [0, *(pytest.param(number, marks=pytest.mark.nightly) for number in (2, 4, 6))])
def test_what_fails_for_a_while_changes_nothing(
    place: Place, reference: Reference, proxy: Proxy, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, number: int
) -> None:
    monkeypatch.setenv("CORPUSVEIL_CACHE", str(tmp_path / "cold"))
    shards = zip(("/c4/c4-train.00000", "/c4/c4-train.0000[13]"), READS[number : number + 2], strict=True)
    faults = [*(("GET", shard, *fault) for shard, fault in shards), *BESIDE[number], *BESIDE[number + 1]]
    rules = [proxy.rule(method, where, how, **options) for method, where, how, options in faults]
    finishes(place, reference)
    for rule, fault in zip(rules, faults, strict=True):
        assert rule.hits == fault[3]["times"], ("nothing went wrong, so this shows nothing", fault)


CREATED = (
    r"lease\.json", r"run\.json", r"ledger\.json", r"secret\.key", r"entries/.*\.parquet", r"entries/.*\.kept"
)  # fmt: skip
"""Every file that a run creates only where none exists."""


@pytest.mark.nightly
def test_a_creation_that_was_answered_twice_is_the_run_s_own(place: Place, reference: Reference, proxy: Proxy) -> None:
    """The store made the file, its answer was lost, and the client, which asked again, was told that it exists."""
    rules = {where: proxy.rule("PUT", where, "lose", times=1) for where in CREATED}
    succeeds(*place.arguments("--ledger", f"{place.root}/ledger", "--unit", "content", "--cap", "1e6"))
    assert {where: rule.hits for where, rule in rules.items()} == dict.fromkeys(CREATED, 1)
    assert data_of(place.store.objects(place.output)) == reference.data
    short = proxy.rule("GET", r"ledger\.json", "shorten", times=1)
    (line,) = cv.Ledger(f"{place.root}/ledger").spent().releases
    assert (line["documents"], short.hits) == (reference.outcome.counts.documents, 1)
    proxy.rule("GET", r"ledger\.json", "shorten")
    with refused("damaged-artifact", "ledger.json", "lacks the entries"):
        cv.Ledger(f"{place.root}/ledger").spent()
    proxy.clear()
    assert not [name for name in place.store.objects(f"{place.output}.records") if "lease" in name]


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize(("method", "where", "how", "options", "named"), [
    ("GET", SHARD, "refuse", {}, "c4-train.0000"),
    pytest.param("PUT", DATA, "refuse", {}, "data/part-0000", marks=pytest.mark.nightly),
    pytest.param("PUT", DATA, "lose", {}, "data/part-0000", marks=pytest.mark.nightly),
    pytest.param("PUT", DONE, "refuse", {}, "shards/part-0000", marks=pytest.mark.nightly),
    pytest.param("PUT", r"out/manifest\.json", "refuse", {}, "manifest.json", marks=pytest.mark.nightly),
    pytest.param("PUT", r"run\.json", "refuse", {}, "run.json", marks=pytest.mark.nightly),
    ("GET", r"run\.json", "cut", {"after": 1}, "run.json"),
])  # fmt: skip
def test_what_stays_broken_is_named_and_nothing_is_half_there(
    place: Place, reference: Reference, proxy: Proxy, method: str, where: str, how: str, options: Any, named: str
) -> None:
    rule = proxy.rule(method, where, how, **options)
    if options.get("after"):
        succeeds(*place.arguments())
        place.store.client.rm_file(f"{place.bucket}/private/out/manifest.json")
        rule.after = 0
    ended = command(*place.arguments())
    assert (ended.status, ended.err.count("\n")) == (1, 1), ended
    assert rule.hits > 0
    assert "s3://" in ended.err
    assert named in ended.err
    left = place.store.objects(place.output)
    assert left.items() <= reference.files.items()
    assert "manifest.json" not in left
    assert place.store.unfinished(place.bucket) == []
    proxy.clear()
    finishes(place, reference)


@pytest.mark.usefixtures("hasty", "s3")
class TestOneSentence:
    def test_no_such_bucket(self, place: Place, tmp_path: Path) -> None:
        """Whatever command it is for; it is the bucket that is missing, not what should be in it."""
        (tmp_path / "a.jsonl").write_text('{"text": "ba"}\n')
        nowhere, out = "s3://nobody-made-this/x", tmp_path / "out"
        for words in (
            place.arguments(source=nowhere),
            place.arguments(output=nowhere),
            ["count", tmp_path / "a.jsonl", "--output", nowhere],
            ["score", "--counts", nowhere, "--output", out],
            ["tokenize", f"{nowhere}/*.json", "--tokenizer", "word", "--output", out],
            ["train", "--tokens", nowhere, "--output", out],
            ["space", "--vectors", nowhere, "--output", out, "--progress", "none"],
            ["ledger", "show", nowhere],
        ):
            fails(words, "missing-file", nowhere, "there is no such bucket; make it, or choose another bucket")

    def test_no_credentials(self, place: Place, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        """It says what to check, without a traceback."""
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.delenv(name)
        for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
            monkeypatch.setenv(name, str(tmp_path / "missing"))
        s3fs.S3FileSystem.clear_instance_cache()
        fails(place.arguments(), "unusable-address", place.root, "check the credentials")
        s3fs.S3FileSystem.clear_instance_cache()


@pytest.mark.stores
@pytest.mark.parametrize("store", ["gs"], indirect=True)
def test_a_raw_token_that_can_not_be_asked_about_is_not_shown(
    place: Place, proxy: Proxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Google's client sends it in an address, which the error of a connection quotes; the emulator looks at none."""
    monkeypatch.setenv("FSSPEC_GS", json.dumps({"token": "ya29.s3cret-s3cret"}))
    monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{free_port()}")
    ended = run(*place.arguments(), home=tmp_path)
    assert ended.returncode == 1, ended.stderr
    (sentence,) = ended.stderr.splitlines()
    assert sentence.startswith("corpusveil: ")
    assert f"{place.root}/" in sentence
    assert "s3cret" not in sentence

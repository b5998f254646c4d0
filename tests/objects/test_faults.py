"""A store that fails for a while changes nothing; one that stays down is told, and nothing is half there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import corpusveil as cv
from corpusveil.cli.main import run
from corpusveil.errors import WorkError
from corpusveil.jobs.beam import Beam
from corpusveil.transforms.release.corpus import privatize_corpus
from tests.cli.test_run import save
from tests.objects.conftest import Place, Reference
from tests.objects.proxy import Proxy

SHARD = r"/c4/c4-train.0000[013]"
DATA = r"/private/out/data/part-0000[13]"
DONE = r"out\.records/shards/part-0000[13]"
LIST = r"list-type=2.*prefix=c4"
SPACE = r"/space/(vectors|lists)\.npy"


def finishes(place: Place, reference: Reference) -> None:
    assert run(place.arguments()) == 0
    assert place.store.objects(place.output) == reference.files
    assert place.store.unfinished(place.bucket) == []


@pytest.mark.parametrize(
    ("method", "where", "how", "options"),
    [
        ("GET", SHARD, "refuse", {"times": 2}),
        ("GET", SHARD, "refuse", {"status": 500, "code": "InternalError", "times": 1}),
        ("GET", SHARD, "reset", {"times": 2}),
        ("GET", SHARD, "cut", {"times": 2}),
        ("GET", SHARD, "shorten", {"times": 2}),
        ("GET", SHARD, "empty", {"times": 2}),
        ("GET", SHARD, "garble", {"times": 2}),
        ("GET", SHARD, "delay", {"times": 2, "seconds": 0.2}),
        ("GET", SPACE, "cut", {"times": 1}),
        ("HEAD", SHARD, "refuse", {"times": 1}),
        ("GET", LIST, "refuse", {"times": 1}),
        ("GET", LIST, "cut", {"times": 1}),
        ("PUT", DATA, "refuse", {"times": 2}),
        ("PUT", DATA, "refuse", {"status": 500, "code": "InternalError", "times": 1}),
        ("PUT", DATA, "lose", {"times": 1}),
        ("PUT", DONE, "lose", {"times": 1}),
        ("PUT", r"run\.json", "lose", {"times": 1}),
        ("PUT", r"run\.json", "refuse", {"status": 409, "code": "ConditionalRequestConflict", "times": 2}),
        ("PUT", r"manifest\.json", "refuse", {"times": 1}),
        ("DELETE", "progress|failed", "refuse", {"times": 1}),
    ],
)
def test_what_fails_for_a_while_changes_nothing(
    place: Place,
    reference: Reference,
    proxy: Proxy,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
    method: str,
    where: str,
    how: str,
    options: dict[str, float],
) -> None:
    monkeypatch.setenv("CORPUSVEIL_CACHE", str(tmp_path_factory.mktemp("cold")))
    rule = proxy.rule(method, where, how, **options)
    finishes(place, reference)
    assert rule.hits == options["times"], "nothing went wrong, so this shows nothing"


CREATED = (
    r"lease-\d+\.json", r"run\.json", r"ledger\.json", r"secret\.key", r"entries/.*\.parquet", r"entries/.*\.kept"
)  # fmt: skip
"""Every file that a run creates only where none exists."""


@pytest.mark.parametrize("where", CREATED)
def test_a_creation_that_was_answered_twice_is_the_run_s_own(
    place: Place, reference: Reference, proxy: Proxy, where: str
) -> None:
    """The store made the file, its answer was lost, and the client, which asked again, was told that it exists."""
    rule = proxy.rule("PUT", where, "lose", times=1)
    assert run(place.arguments("--ledger", f"{place.root}/ledger", "--unit", "content", "--cap", "1e6")) == 0
    assert rule.hits == 1
    assert place.store.objects(place.output) == reference.files
    (line,) = cv.Ledger(f"{place.root}/ledger").spent().releases
    assert line["documents"] == reference.outcome.counts.documents
    assert not [name for name in place.store.objects(f"{place.output}.records") if "lease" in name]


def test_a_schedule_whose_lease_was_answered_twice_does_its_work(place: Place, proxy: Proxy, tmp_path: Path) -> None:
    values = {
        "corpus": {"input": [place.corpus], "name": "c4"},
        "space": {"path": f"{place.root}/space"},
        "mechanism": {"name": "ring-geometric"},
        "budget": {"epsilon": 1.0},
        "key": {"path": str(place.ground.key)},
        "output": {"path": place.output},
    }
    rule = proxy.rule("PUT", r"out\.schedule/lease/lease-\d+\.json", "lose", times=1)
    assert run(["schedule", save(tmp_path / "s.toml", values), "--progress", "none"]) == 0
    assert rule.hits == 1
    assert "run-00001/manifest.json" in place.store.objects(place.output)


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize(
    ("method", "where", "how", "options", "names"),
    [
        ("GET", SHARD, "refuse", {}, "c4-train.0000"),
        ("GET", SHARD, "reset", {}, "c4-train.0000"),
        ("GET", SHARD, "cut", {}, "c4-train.0000"),
        ("GET", SHARD, "shorten", {}, "c4-train.0000"),
        ("GET", SHARD, "empty", {}, "c4-train.0000"),
        ("GET", SHARD, "garble", {}, "c4-train.0000"),
        ("HEAD", SHARD, "refuse", {}, "c4-train.0000"),
        ("GET", LIST, "refuse", {}, "/c4"),
        ("PUT", DATA, "refuse", {}, "data/part-0000"),
        ("PUT", DATA, "refuse", {"status": 500, "code": "InternalError"}, "data/part-0000"),
        ("PUT", DATA, "lose", {}, "data/part-0000"),
        ("PUT", DONE, "refuse", {}, "shards/part-0000"),
        ("PUT", r"out/manifest\.json", "refuse", {}, "manifest.json"),
        ("PUT", r"run\.json", "refuse", {}, "run.json"),
        ("GET", r"run\.json", "cut", {"after": 1}, "run.json"),
    ],
)
def test_what_stays_broken_is_told_and_nothing_is_half_there(
    place: Place,
    reference: Reference,
    proxy: Proxy,
    capsys: pytest.CaptureFixture[str],
    method: str,
    where: str,
    how: str,
    options: dict[str, float],
    names: str,
) -> None:
    rule = proxy.rule(method, where, how, **options)
    if options.get("after"):
        assert run(place.arguments()) == 0
        place.store.client.rm_file(f"{place.bucket}/private/out/manifest.json")
        rule.after = 0
        capsys.readouterr()
    assert run(place.arguments()) == 1
    said = capsys.readouterr().err
    assert rule.hits > 0
    assert said.count("\n") == 1, said
    assert names in said
    assert "s3://" in said
    left = place.store.objects(place.output)
    assert left.items() <= reference.files.items()
    assert "manifest.json" not in left
    assert place.store.unfinished(place.bucket) == []
    proxy.clear()
    finishes(place, reference)


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize(
    ("method", "where", "says"),
    [
        ("GET", SHARD, r"c4-train.0000[013]\S*: there is no permission to read it"),
        ("HEAD", SHARD, r"c4-train.0000[013]\S*: there is no permission to read it"),
        ("GET", LIST, r"/c4: there is no permission to (read|list) it"),
        ("PUT", DATA, r"data/part-0000[13]\S*: there is no permission to write it"),
        ("PUT", DONE, r"shards/part-0000[13]\S*: there is no permission to write it"),
    ],
)
def test_a_refused_right_is_named(
    place: Place,
    reference: Reference,
    proxy: Proxy,
    capsys: pytest.CaptureFixture[str],
    method: str,
    where: str,
    says: str,
) -> None:
    proxy.rule(method, where, "refuse", status=403, code="AccessDenied")
    assert run(place.arguments()) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1, said
    assert re.search(says, said), said
    proxy.clear()
    finishes(place, reference)


@pytest.mark.usefixtures("hasty")
def test_a_shard_that_vanishes_is_named(place: Place, proxy: Proxy, capsys: pytest.CaptureFixture[str]) -> None:
    proxy.rule("HEAD GET", SHARD, "refuse", status=404, code="NoSuchKey")
    assert run(place.arguments()) == 2
    assert "there is no such file" in capsys.readouterr().err


@pytest.mark.usefixtures("hasty")
def test_a_pipeline_says_the_same(place: Place, reference: Reference, proxy: Proxy) -> None:
    rule = proxy.rule("PUT", DATA, "refuse")
    with pytest.raises(WorkError, match=r"data/part-0000[13]\S*: could not be written"):
        privatize_corpus(reference.release, [place.corpus], place.output, Beam(), corpus="c4")
    assert rule.hits > 0
    proxy.clear()
    privatize_corpus(reference.release, [place.corpus], place.output, Beam(), corpus="c4")
    assert place.store.objects(place.output) == reference.files

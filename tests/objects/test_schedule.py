"""A schedule at a store: what fails one night is made up for by a later one, and each night says how it ended."""

from __future__ import annotations

import contextlib
import itertools
import json
import random
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import corpusveil as cv
from corpusveil.pipelines import schedule
from corpusveil.storage import files
from tests.calls import QUIET, Ended, command
from tests.cli.test_run import save
from tests.cli.test_schedule import samples
from tests.engines.corpora import WORDS, make_space
from tests.objects.proxy import Proxy
from tests.objects.store import Store

SETTLE = 60.0


@dataclass
class Nights:
    """A corpus that grows at a store, and the schedule that releases it; key, settings and metrics are on a disk."""

    store: Store
    bucket: str
    proxy: Proxy
    folder: Path
    patch: pytest.MonkeyPatch
    good: dict[str, list[int]] = field(default_factory=dict)
    """The documents of each shard."""
    bad: dict[str, list[int]] = field(default_factory=dict)
    """Likewise of each shard that also has a line that is no JSON."""
    clock: float = SETTLE + 1

    def __post_init__(self) -> None:
        root = f"{self.store.scheme}://{self.bucket}"
        make_space(self.folder / "space")
        cv.Key.generate().save(self.folder / "release.key")
        cv.Key.generate().save(self.folder / "other.key")
        save(
            self.folder / "s.toml",
            {
                "corpus": {"input": [f"{root}/in"], "id": "key", "keep": ["key"]},
                "space": {"path": f"{self.folder}/space"},
                "mechanism": {"name": "ring-geometric"},
                "budget": {"epsilon": 1.0},
                "key": {"path": f"{self.folder}/release.key"},
                "ledger": {"path": f"{root}/ledger", "unit": ["key"]},
                "output": {"path": f"{root}/out"},
                "schedule": {"prometheus": f"{self.folder}/metrics.prom", "settle": f"{SETTLE:.0f}s"},
            },
        )
        self.patch.setattr(schedule, "time", SimpleNamespace(time=lambda: time.time() + self.clock))

    def put(self, name: str, documents: list[int], *, bad: bool = False) -> None:
        """Write a shard, or write it again."""
        self.good.pop(name, None), self.bad.pop(name, None)
        (self.bad if bad else self.good)[name] = documents
        texts = [" ".join(WORDS[(7 * key + k) % len(WORDS)] for k in range(7)) for key in documents]
        lines = [json.dumps({"key": key, "text": text}) for key, text in zip(documents, texts, strict=True)]
        data = "\n".join([*lines, *["no json"] * bad, ""]).encode()
        self.store.client.pipe_file(f"{self.bucket}/in/{name}.jsonl", data)

    def start(self) -> Ended:
        return command("schedule", self.folder / "s.toml", *QUIET)

    def end(self) -> None:
        """End the process of a night: leases that it could not remove have expired."""
        for name in self.store.client.find(self.bucket):
            if "/lease" in name:
                self.store.client.rm_file(name)

    def read(self, name: str) -> bytes:
        try:
            data: bytes = self.store.client.cat_file(f"{self.bucket}/{name}")
        except FileNotFoundError:
            return b""
        return data

    def move(self, source: str, target: str) -> None:
        for name in self.store.client.find(f"{self.bucket}/{source}"):
            self.store.client.mv(name, name.replace(f"/{source}/", f"/{target}/", 1))

    def noted(self) -> list[int]:
        """Return the statuses in the state."""
        return [json.loads(line)["status"] for line in self.read("out.schedule/metrics.jsonl").splitlines()]

    def released(self) -> set[int]:
        """Return the documents of all releases that are finished."""
        found = set[int]()
        for name in self.store.client.find(f"{self.bucket}/out"):
            run = name.partition("/data/")[0]
            if run != name and self.store.client.exists(f"{run}/manifest.json"):
                found |= {json.loads(line)["key"] for line in self.store.client.cat_file(name).splitlines()}
        return found

    def waiting(self) -> set[int]:
        """Return the documents that were put in and are not released."""
        return {key for keys in (*self.good.values(), *self.bad.values()) for key in keys} - self.released()


@pytest.fixture
def nights(store: Store, bucket: str, proxy: Proxy, hasty: None, tmp_path: Path, monkeypatch: Any) -> Nights:
    return Nights(store, bucket, proxy, tmp_path, monkeypatch)


@contextlib.contextmanager
def refusing(nights: Nights, methods: str, where: str, **how: Any) -> Iterator[None]:
    nights.proxy.rule(methods, where, "refuse", **({"status": 403, "code": "AccessDenied"} | how))
    yield
    nights.proxy.clear()


@contextlib.contextmanager
def moved(nights: Nights) -> Iterator[None]:
    nights.move("in", "away")
    yield
    nights.move("away", "in")


@contextlib.contextmanager
def with_key(nights: Nights, key: str | None) -> Iterator[None]:
    """Put another key, or none, in the place of the schedule's."""
    place, kept = nights.folder / "release.key", nights.folder / "kept.key"
    place.rename(kept)
    if key is not None:
        place.symlink_to(nights.folder / key)
    yield
    place.unlink(missing_ok=True)
    kept.rename(place)


@contextlib.contextmanager
def set_back(nights: Nights) -> Iterator[None]:
    nights.clock -= 86400
    yield
    nights.clock += 86400


@contextlib.contextmanager
def killed(nights: Nights, step: int) -> Iterator[None]:
    writes = itertools.count()

    def stopping(real: Any) -> Any:
        def write(*arguments: Any, **more: Any) -> Any:
            if next(writes) == step:
                raise KeyboardInterrupt
            return real(*arguments, **more)

        return write

    with nights.patch.context() as patch:
        for name in ("write_bytes", "create_bytes", "copy_file"):
            patch.setattr(files, name, stopping(getattr(files, name)))
        yield


@contextlib.contextmanager
def page_left(nights: Nights) -> Iterator[None]:
    """Leave pages where those of the next runs would be, which the sentence says to remove."""
    last = len(nights.store.client.glob(f"{nights.bucket}/out.schedule/runs/*.plan.json"))
    pages = [f"{nights.bucket}/out/run-{number:05d}.report.html" for number in (last + 1, last + 2)]
    for page in pages:
        nights.store.client.pipe_file(page, b"a page")
    yield
    for page in pages:
        if nights.store.client.cat_file(page) == b"a page":
            nights.store.client.rm_file(page)


SKEWED = {"code": "RequestTimeTooSkewed"}
DOWN = {"status": 503, "code": "SlowDown"}
FAULTS: dict[str, tuple[set[int], Any]] = {
    "nothing": ({0}, lambda _, __: contextlib.nullcontext()),
    "input moved": ({2}, lambda nights, _: moved(nights)),
    "input refused": ({2}, lambda nights, _: refusing(nights, "GET", "/in/")),
    "input down": ({1}, lambda nights, _: refusing(nights, "GET", "/in/", **DOWN)),
    "output refused": ({2}, lambda nights, _: refusing(nights, "PUT", "out/run-[0-9]+/data")),
    "manifest down": ({1}, lambda nights, _: refusing(nights, "PUT", "out/run-.*manifest.json", **DOWN)),
    "page left": ({0, 2}, lambda nights, _: page_left(nights)),  # 0: beside a run that has begun
    "no key": ({2}, lambda nights, _: with_key(nights, None)),
    "other key": ({2}, lambda nights, _: with_key(nights, "other.key")),
    "clock back": ({0}, lambda nights, _: set_back(nights)),
    "clock skewed": ({2}, lambda nights, _: refusing(nights, "GET PUT HEAD", ".", **SKEWED)),
    "store down": ({1}, lambda nights, _: refusing(nights, "GET PUT HEAD", ".", **DOWN)),
    "store down later": (
        {0, 1}, lambda nights, draw: refusing(nights, "GET PUT HEAD", ".", after=draw.randrange(60), **DOWN),
    ),
    "state refused": ({2}, lambda nights, _: refusing(nights, "PUT", "out.schedule/")),
    "metrics refused": ({2}, lambda nights, _: refusing(nights, "PUT", "out.schedule/metrics")),
    "ledger refused": ({2}, lambda nights, _: refusing(nights, "PUT", "/ledger/")),
    "killed": ({0, 130}, lambda nights, draw: killed(nights, draw.randrange(10))),
}  # fmt: skip
"""By name: the statuses with which a night may end, and what goes wrong in it until the morning."""


@pytest.mark.parametrize(
    ("seed", "length"),
    [(0, 4), *(pytest.param(seed, 20, marks=[pytest.mark.nightly, pytest.mark.slow]) for seed in range(1, 6))],
)
def test_nights_of_faults_lose_nothing_and_hide_nothing(nights: Nights, seed: int, length: int) -> None:
    """Input, output, key, clock or store fails, and at times the data of a shard; all is mended in the end."""
    draw, keys = random.Random(seed), itertools.count()
    nights.put("first", [next(keys)])
    assert nights.start().status == 0
    faults = draw.sample(sorted(FAULTS), len(FAULTS)) + draw.choices(sorted(FAULTS), k=length)
    if seed == 0:  # by day: a store that refuses the output, and input that is gone
        faults = ["output refused", "input moved", *faults]
    success = samples(nights.folder)["last_success_timestamp_seconds"]
    left_out = set[str]()
    for night, name in enumerate(faults[:length]):
        nights.put(f"night-{night}", [next(keys) for _ in range(3)])
        if draw.random() < 0.3:
            changed = draw.choice(sorted(nights.good))
            nights.put(changed, [*nights.good[changed], next(keys)])
        if draw.random() < 0.3:
            nights.put(f"bad-{night}", [next(keys)], bad=True)
        expected, fault = FAULTS[name]
        before = len(nights.noted())
        with fault(nights, draw):
            ended = nights.start()
            noted, figures = nights.noted(), samples(nights.folder)
        case = (seed, night, name, ended)
        assert ended.status in expected | ({2} if set(nights.bad) - left_out else set()), case
        assert figures["last_status"] == ended.status, case
        if len(noted) > before:
            assert noted[before:] == [ended.status], case
        else:
            assert name in {"clock skewed", "state refused", "metrics refused", *(f for f in FAULTS if "store" in f)}, (
                case
            )
        out = set(re.findall(r"(bad-\d+)\.jsonl, row", ended.err))
        left_out |= out
        if ended.status == 0:
            unusable = {key for documents in nights.bad.values() for key in documents}
            assert nights.waiting() <= unusable or "too recently" in ended.err, case
            assert figures["left_out_shards"] == len(out), case
            success = figures["last_success_timestamp_seconds"]
        else:
            assert figures.get("last_success_timestamp_seconds", success) == success, case
        nights.end()
        if nights.bad and draw.random() < 0.2:
            mended = draw.choice(sorted(nights.bad))
            nights.put(mended, nights.bad[mended])
            left_out.discard(mended)
    for mended in sorted(nights.bad):
        nights.put(mended, nights.bad[mended])
    ended = nights.start()
    assert (ended.status, nights.waiting()) == (0, set()), ended
    assert (samples(nights.folder)["last_status"], samples(nights.folder)["left_out_shards"]) == (0, 0)
    assert "nothing new" in nights.start().out
    root = f"s3://{nights.bucket}"
    runs = {name.partition("/")[0] for name in nights.store.objects(f"{root}/out") if name.endswith("manifest.json")}
    assert cv.Ledger(f"{root}/ledger").verify([f"{root}/out.records/{run}" for run in sorted(runs)]).differences == ()

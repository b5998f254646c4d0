"""An audit from outside: half the noise is refuted by held-out texts and by the fit, and the stated noise is not."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import corpusveil as cv
from corpusveil_evaluate.attacks.held_out import LEVEL, audit_fit, audit_held_out, hold_out
from tests.calls import command, refused, succeeds
from tests.engines.corpora import TEST_KEY, WORDS
from tests.passages.stores import small_store

PAIRS = 1000
KEY = cv.Key(hashlib.sha256(b"audits").digest())
"""Under fresh keys one true release of a thousand is refuted, and a run of these tests audits dozens."""


def texts(number: int) -> list[str]:
    rng = np.random.default_rng(number)
    drawn = rng.choice(WORDS[:80], (number, 2, 4))
    return [" ".join(f"{' '.join(words)}.".capitalize() for words in sentences) for sentences in drawn]


@functools.cache
def store() -> cv.Store:
    """Return six thousand pieces, as many as the store en has, so that at ten nats some are not among the nearest."""
    rng = np.random.default_rng(7)
    return cv.Store.from_texts(
        pa.array([f"{' '.join(rng.choice(WORDS[:80], 5))}." for _ in range(6000)], pa.large_string()),
        small_store().space,
    )


def of_passages(epsilon: float, per: Any) -> cv.PassageRelease:
    exchange = cv.PassageExchange(store() if epsilon > 6 else small_store(), 3)
    return cv.PassageRelease(exchange, epsilon, per, key=KEY, accept_overlap=True)


def of_words(space: cv.Space, epsilon: float) -> cv.Release:
    return cv.Release(cv.RingGeometric(space), cv.Budget(epsilon), key=KEY)


def with_half_the_noise(release: Any) -> Any:
    if isinstance(release, cv.PassageRelease):
        return dataclasses.replace(release, epsilon=2 * release.epsilon)
    return dataclasses.replace(release, budget=cv.Budget(2 * release.budget.epsilon))


def releases(space: cv.Space, epsilons: Sequence[float]) -> list[Any]:
    per = ("document", "sentence")
    return [of_words(space, epsilons[0]), *(of_passages(epsilons[1], unit) for unit in per)]


def audited(release: Any, made: Any, number: int, seed: int) -> cv.HeldOutAudit:
    released, held_out = hold_out(texts(number), release, seed)
    return audit_held_out(release, released, held_out, cv.privatize(released, made, range(len(released))))


def test_held_out_texts_refute_half_the_noise_and_not_the_stated_one(space: cv.Space) -> None:
    for epsilon in (1.0, 3.0):
        for release in releases(space, (epsilon, epsilon)):
            assert not audited(release, release, PAIRS, 1).refuted, release
            worse = audited(release, with_half_the_noise(release), PAIRS, 1)
            assert worse.refuted, (release, worse)
            assert "REFUTED" in str(worse)
            assert worse.most == pytest.approx(np.log(worse.pairs / np.log(1 / LEVEL)), abs=0.1)


def test_the_fit_refutes_half_the_noise_at_any_epsilon(space: cv.Space) -> None:
    """Where hardly any number of held-out texts could: at ten nats for a piece, and more for a word."""
    assert float(of_words(space, 0.3).guarantee().plain_ldp or 0) > 10
    for release in releases(space, (0.3, 10.0)):
        given = texts(PAIRS)
        for made, holds in ((release, True), (with_half_the_noise(release), False)):
            fit = audit_fit(release, given, cv.privatize(given, made, range(len(given))))
            assert fit.refuted != holds, (release, fit)


@pytest.mark.nightly
def test_of_six_hundred_runs_few_true_releases_are_refuted_and_every_other_is(space: cv.Space) -> None:
    """At the confidence 0.999, one of a thousand true ones is; five of six hundred would be no chance."""
    refuted = 0
    for release in releases(space, (3.0, 3.0)):
        for seed in range(200):
            fixed = dataclasses.replace(release, key=cv.Key(hashlib.sha256(f"run {seed}".encode()).digest()))
            refuted += audited(fixed, fixed, PAIRS, seed).refuted
            assert audited(fixed, with_half_the_noise(fixed), PAIRS, seed).refuted, seed
    assert refuted <= 4


def test_a_frame_is_audited_and_what_cannot_be_is_refused(space: cv.Space) -> None:
    release = of_passages(3.0, "document")
    released, held_out = hold_out(pd.DataFrame({"text": texts(50)}), release)
    frame = pd.DataFrame(
        {"text": released, "other": held_out, "private": cv.privatize(released, release, range(len(released)))}
    )
    assert audit_held_out(release, frame["text"], frame["other"], frame["private"]).pairs == len(released)
    with refused("wrong-setting", f"{len(released)} and {len(released) - 1}"):
        audit_fit(release, released, held_out[1:])
    words = of_words(space, 1.0)
    unproved = cv.mechanism("vickrey-cmp-excluding", space)
    for other, code, name in (
        (dataclasses.replace(words, budget=cv.Budget(4.0, per="document")), "wrong-setting", "token"),
        (dataclasses.replace(words, mechanism=unproved, accept_no_guarantee=True), "wrong-setting", "vickrey"),
    ):
        with refused(code, name):
            hold_out(released, other)


def test_the_command_reads_the_release_from_its_manifest(space: cv.Space, tmp_path: Path) -> None:
    release = of_passages(3.0, "sentence")
    released, held_out = hold_out(texts(100), release, 1)
    rows = [{"text": text, "other": other} for text, other in zip(released, held_out, strict=True)]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    cv.Key(TEST_KEY).save(str(tmp_path / "key"))
    made = dataclasses.replace(release, key=cv.Key(TEST_KEY))
    cv.privatize_corpus(tmp_path / "in.jsonl", tmp_path / "out", made)
    call = ["evaluate", "audit", tmp_path / "in.jsonl", tmp_path / "out", "--held-out", "other", "--store"]
    assert succeeds(*call, small_store().url).out.count("not refuted") == 2
    assert command(*call, cv.Store.from_texts(small_store().texts.slice(1), space).save(tmp_path / "s").url).status == 2

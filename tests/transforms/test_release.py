"""A release is a frozen value, and its digest is that of everything that can change the output, and of nothing else."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import corpusveil as cv
from corpusveil.budget import Budget
from corpusveil.cli.options import Terminal
from corpusveil.kernel.prepared import public_weights
from corpusveil.mechanisms import make_mechanism, names
from corpusveil.mechanisms.ring_geometric import RingGeometric
from corpusveil.pipelines.privatize import announce
from corpusveil.sampling.keys import Key
from corpusveil.sampling.weights import TOTAL
from corpusveil.storage.corpus import CorpusIn
from corpusveil.text.policy import ROLE_NAMES, TextPolicy
from corpusveil.transforms.beam import PrivatizeDocuments
from corpusveil.transforms.release.manifest import draft
from corpusveil.transforms.release.release import Release
from corpusveil.transforms.spark import privatize_frame
from tests.calls import refused
from tests.contracts.mechanism import another_key
from tests.contracts.spaces import small_space, words_of

SPACE = small_space(20, counts=range(20))
BASE: dict[str, Any] = {
    "mechanism": RingGeometric(SPACE),
    "budget": Budget(1.0),
    "policy": TextPolicy(),
    "key": Key.for_tests(),
}

CHANGES: list[dict[str, Any]] = [
    {"mechanism": RingGeometric(SPACE, gamma=4)},
    {"mechanism": RingGeometric(SPACE, gamma=5)},
    {"mechanism": RingGeometric(SPACE, beta=0.002)},
    {"mechanism": RingGeometric(small_space(20, counts=range(1, 21)))},
    {"mechanism": RingGeometric(small_space(20, counts=range(20), seed=6))},
    {"mechanism": RingGeometric(small_space(words=[*words_of(19), "zz"], counts=range(20)))},
    {"mechanism": RingGeometric(small_space(20, counts=range(20), lists=2))},
    {"budget": Budget(1.0000000000000002)},
    {"budget": Budget(1.0, "document")},
    *({"policy": TextPolicy(**{name: "keep"})} for name in ROLE_NAMES[1:] if name != "punctuation"),
    *({"policy": TextPolicy(**{name: "mask"})} for name in ROLE_NAMES[1:] if name != "contacts"),
    *({"policy": TextPolicy(**{name: "drop"})} for name in ROLE_NAMES[1:] if name != "other"),
    {"policy": TextPolicy(layout="keep")},
    {"policy": TextPolicy(case="restore")},
    {"policy": TextPolicy(hyphens="join")},
]


def release(**changes: Any) -> Release:
    return Release(**{**BASE, **changes})


def test_every_field_goes_into_the_digest() -> None:
    """Mechanism, each parameter, epsilon, per, each policy, the space: any change is another release."""
    digests = [release().digest, *(release(**change).digest for change in CHANGES)]
    assert len(set(digests)) == len(digests)
    assert all(len(digest) == 64 for digest in digests)


def test_key_and_place_do_not_go_into_the_digest(tmp_path: Path) -> None:
    """The digest is public and names a configuration: neither the key nor where a space lies changes it."""
    assert release(key=another_key()).digest == release().digest
    saved = SPACE.save(str(tmp_path / "space"))
    assert release(mechanism=RingGeometric(saved)).digest == release().digest
    assert release(budget=Budget(1)).digest == release().digest
    sent = pickle.loads(pickle.dumps(release()))
    assert (sent.digest, sent.key) == (release().digest, release().key)


PLACE: Any = "spaces/glove"


@pytest.mark.parametrize(
    ("call", "refusal"),
    [
        (lambda: Release(BASE["mechanism"], Budget(1.0), key=None), ("wrong-setting", "key", "cv.Key.load")),
        (lambda: release(key="release.key"), ("wrong-setting", "key", "cv.Key.load", "str")),
        (lambda: release(budget=1.0), ("wrong-setting", "budget", "cv.Budget", "float")),
        (lambda: release(mechanism="tem"), ("wrong-setting", "mechanism", "cv.mechanism", "str")),
        (lambda: release(collocations="s3://bucket/table"), ("wrong-setting", "collocations")),
        (lambda: release(duplicates="never"), ("wrong-setting", "duplicates = 'never'")),
        (lambda: release(policy=TextPolicy(tokenizer="gst")), ("wrong-setting", "tokenizer = 'gst'")),
        (lambda: make_mechanism("tem", PLACE), ("wrong-setting", "space", "cv.load_space", "str")),
        (lambda: cv.mechanism("tem", SPACE, x=1), ("wrong-setting", "x: tem has no such parameter")),
        (lambda: make_mechanism(SPACE, PLACE), ("wrong-setting", "mechanism")),  # type: ignore[arg-type]
        (lambda: cv.build_space(PLACE), ("wrong-setting", "cv.read_vectors")),
        (lambda: cv.read_vectors(None), ("wrong-setting", "NoneType")),  # type: ignore[arg-type]
        (lambda: cv.Key(PLACE), ("wrong-setting", "Key", "str", "Key.load")),
        (lambda: cv.privatize(["a"], BASE["mechanism"], ["a"]), ("wrong-setting", "release", "cv.Release")),
        (lambda: privatize_frame(pd.DataFrame({"text": ["a"]}), release(), id="id"), ("wrong-setting", "cv.privatize")),
        (lambda: PrivatizeDocuments(BASE["mechanism"], id="id"), ("wrong-setting", "RingGeometric")),
        (lambda: cv.privatize_corpus("in", "out", release(), "spark"), ("wrong-setting", "engine", "cv.Local")),
        (lambda: cv.privatize_corpus(release(), "in", "out"), ("wrong-setting", "release", "cv.Release")),
    ],
)
def test_a_part_of_another_type_is_a_sentence(call: Any, refusal: Any) -> None:
    """A path for a key or a space, a frame for Spark's: each says what to write instead of an AttributeError later."""
    with refused(*refusal):
        call()


@pytest.mark.parametrize("name", names())
def test_what_promises_nothing_is_released_by_who_accepts_that(name: str) -> None:
    """In Python as on the command line, and no mechanism that has a guarantee asks for it."""
    mechanism = make_mechanism(name, SPACE)
    if mechanism.private:
        assert not release(mechanism=mechanism).accept_no_guarantee
        return
    with refused("wrong-setting", name, "accept_no_guarantee"):
        release(mechanism=mechanism)
    accepted = release(mechanism=mechanism, accept_no_guarantee=True)
    assert accepted.mechanism is mechanism
    assert "accept_no_guarantee" not in str(accepted.configuration())


RELEASES: list[dict[str, Any]] = [
    {"budget": Budget(5.0, "document")},
    {"policy": TextPolicy(contacts="keep", case="restore", layout="keep", stop_words="keep")},
    {"mechanism": make_mechanism("custext", SPACE)},
    {"mechanism": make_mechanism("custext-per-word", SPACE), "accept_no_guarantee": True},
    {"duplicates": "same-noise", "key": another_key()},
]


@pytest.mark.parametrize("changes", RELEASES, ids=str)
def test_a_guarantee_leaves_nothing_out_and_is_one_everywhere(
    changes: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """All that policy and mechanism disclose, what epsilon is for, unknown words, stop words apart, and the key."""
    made = release(**changes)
    guarantee = made.guarantee()
    alone = made.mechanism.guarantee(made.budget.epsilon)
    assert set(made.policy.disclosed()) | set(alone.disclosed) <= set(guarantee.disclosed)
    assert len(set(guarantee.disclosed)) == len(guarantee.disclosed)
    assert (guarantee.per, guarantee.epsilon) == (made.budget.per, alone.epsilon)
    assert set(alone.assumptions) < set(guarantee.assumptions)
    said = " ".join(guarantee.assumptions)
    assert ("NOT PRIVATE" in said) == made.key.test
    assert ("The key is secret" in said) != made.key.test
    words = " ".join(guarantee.notes)
    assert ("Tokens under 'resample'" in words) == ("m replaced words each" in words) == guarantee.holds
    assert ("No guarantee holds" in words) != guarantee.holds
    assert ("same stop words" in words) == (made.policy.stop_words != "privatize")
    drafted = draft(made, CorpusIn([]))
    assert drafted["guarantee"] == guarantee.as_dict()
    assert tuple(drafted["guarantee_in_words"]) == guarantee.notes
    announce(made, Terminal(), explain=True)
    lines = capsys.readouterr().out.splitlines()
    assert [line[2:] for line in lines if line.startswith("- ")] == list(guarantee.notes)
    assert f"Disclosed: {'; '.join(guarantee.disclosed)}." in lines


def test_a_law_that_leaves_texts_readable_warns() -> None:
    """As an epsilon that is usual for passages does, or for long documents."""
    for budget, warns in ((Budget(50.0), True), (Budget(0.01), False), (Budget(50.0, "document"), True)):
        law = Release(RingGeometric(SPACE), budget, key=Key.for_tests()).law()
        assert ("Warning: people can read" in law) == warns, budget


@pytest.mark.parametrize(
    "budget", [Budget(0.1), Budget(1.0), Budget(10.0), Budget(1.0, "document")], ids=lambda budget: f"{budget.epsilon}"
)
def test_unknown_words_are_told_from_known_ones_by_no_more_than_is_printed(budget: Budget) -> None:
    """The nats in the statement hold for the laws that are sampled, in documents of any length."""
    larger = RingGeometric(small_space(60, counts=range(1, 61)))
    (line,) = (
        line for line in release(mechanism=larger, budget=budget).guarantee().notes if "Tokens under 'resample'" in line
    )
    stated = re.search(r"at most ([0-9.]+) nats", line)
    assert stated
    shares = budget.shares(np.arange(1, 60)).tolist()
    public = np.log(public_weights(larger.space).astype(np.float64) / TOTAL)
    for epsilon in set(shares):  # the largest log-ratio of the law of resampling and of any word's, both as sampled
        laws = np.log([larger.distribution(word, epsilon) for word in range(60)])
        assert np.abs(public - laws).max() <= float(stated[1]) * (1 + 1e-3)


PROMISES: dict[str, Callable[[Any], bool]] = {
    "Each replaced word: ": lambda r: r.budget.per == "token",
    "Each replaced word of a document": lambda r: r.budget.per == "document",
    "sum of the words' distances": lambda r: True,
    "A word here is a unit": lambda r: r.policy.tokenizer != "word",
    "n counts the words inside": lambda r: r.policy.tokenizer != "word" and r.budget.allocation == "word-share",
    "the same stop words": lambda r: r.policy.stop_words in ("keep", "mask", "drop"),
    "the same unknown words in": lambda r: r.policy.unknown_words == "keep",
    "documents with unknown words": lambda r: r.policy.unknown_words in ("mask", "drop"),
    "the same spans are recognized": lambda r: r.spans is not None,
    "What many documents share": lambda r: True,
    "Equal texts get the same": lambda r: r.duplicates == "same-noise",
}
"""A part of each sentence about documents, and the releases by words that promise it, if their mechanism has one."""
OF_TOKENS: dict[str, Callable[[Any], bool]] = {
    "Tokens under 'resample'": lambda r: (
        r.mechanism.private and any(getattr(r.policy, name) == "resample" for name in ROLE_NAMES[1:])
    ),
    "Each recognized span": lambda r: r.spans is not None,
    "'names' looks a second": lambda r: r.spans is not None and "names" in r.spans.find,
    "What no recognizer finds": lambda r: r.spans is not None,
}


class Stated(SimpleNamespace):
    """The parts of a release that decide its promises, whether or not they fit together."""

    key_assumption = "none"
    guarantee = cv.Release.guarantee


def test_each_promise_is_made_under_its_settings_and_under_no_other() -> None:
    spans = [cv.SpanPolicy(find=["names"], treat=[("name", how)]) for how in ("mask", "resample")]
    one = {"mechanism": RingGeometric(SPACE), "spans": None, "duplicates": "independent"} | BASE
    variants: list[dict[str, Any]] = [
        {},
        {"budget": Budget(8.0, "document")},
        {"budget": Budget(8.0, "document", "word-share"), "policy": TextPolicy(tokenizer="mst")},
        *({"policy": TextPolicy(**{name: value})} for name in ROLE_NAMES[1:] for value in ("keep", "mask", "drop")),
        {"policy": TextPolicy(numbers="keep", unknown_words="mask")},
        {"policy": TextPolicy(tokenizer="gst")},
        *({"spans": policy} for policy in spans),
        *({"duplicates": value} for value in ("same-noise",)),
        {"mechanism": make_mechanism("vickrey-cmp-excluding", SPACE)},
    ]
    made = set()
    for changes in variants:
        stated: Any = Stated(**{**one, **changes})
        notes = "\n".join(stated.guarantee().notes)
        for part, is_made in (PROMISES | OF_TOKENS).items():
            due = is_made(stated) and (stated.mechanism.private or part in OF_TOKENS)
            assert (part in notes) == due, (changes, part)
            made |= {part} if due else set()
    assert made == {*PROMISES, *OF_TOKENS}

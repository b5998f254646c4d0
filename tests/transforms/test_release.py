"""A release is a frozen value, and its digest is that of everything that can change the output, and of nothing else."""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import corpusveil as cv
from corpusveil.budget import Budget
from corpusveil.cli.progress import Terminal
from corpusveil.errors import BadValueError
from corpusveil.language.prepared import public_weights
from corpusveil.mechanisms import make, names
from corpusveil.mechanisms.ring_geometric import RingGeometric
from corpusveil.pipelines.privatize import announce
from corpusveil.sampling.keys import Key
from corpusveil.sampling.weights import TOTAL
from corpusveil.storage.rows import Columns
from corpusveil.text.policy import DOCUMENT_LENGTH, ROLE_NAMES, TextPolicy
from corpusveil.transforms.beam import PrivatizeDocuments
from corpusveil.transforms.release import release as release_module
from corpusveil.transforms.release.manifest import draft
from corpusveil.transforms.release.release import Release
from corpusveil.transforms.release.statement import statement
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


@pytest.mark.parametrize("name", ["KERNEL_VERSION", "TOKENIZER_VERSION"])
def test_versions_go_into_the_digest(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = release().digest
    monkeypatch.setattr(release_module, name, 10**6)
    assert release().digest != before


def test_key_and_place_do_not_go_into_the_digest(tmp_path: Path) -> None:
    """The digest is public and names a configuration: neither the key nor where a space lies changes it."""
    assert release(key=another_key()).digest == release().digest
    saved = SPACE.save(str(tmp_path / "space"))
    assert release(mechanism=RingGeometric(saved)).digest == release().digest
    assert release(budget=Budget(1)).digest == release().digest


def test_the_digest_is_the_same_in_another_process(tmp_path: Path) -> None:
    """With another hash seed and from a loaded space."""
    one = release(policy=TextPolicy(case="restore", numbers="mask"))
    SPACE.save(str(tmp_path / "space"))
    code = (
        "import sys; import corpusveil as cv\n"
        "space = cv.load_space(sys.argv[1])\n"
        "policy = cv.TextPolicy(case='restore', numbers='mask')\n"
        "key = cv.Key.for_tests()\n"
        "release = cv.Release(cv.mechanism('ring-geometric', space), cv.Budget(epsilon=1), policy, key)\n"
        "print(release.digest); print(cv.privatize(['aaab aaac'], release, ['a'])[0])"
    )
    out = set()
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / "space")],
            env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True,
            cwd=Path(__file__).parents[2],
        )  # fmt: skip
        assert done.stdout.splitlines()[0] == one.digest
        out.add(done.stdout)
    assert len(out) == 1


def test_frozen() -> None:
    one = release()
    for field in dataclasses.fields(one):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(one, field.name, None)


def test_without_a_key_there_is_no_release() -> None:
    """A key that nobody chose is another one each time: sixty silent retries gave a document's words away."""
    with refused("mismatch", "key", "cv.Key.load"):
        Release(BASE["mechanism"], Budget(1.0))
    assert Release(BASE["mechanism"], Budget(1.0), key=Key.for_tests()) == release()
    assert Release(BASE["mechanism"], Budget(1.0), TextPolicy(), Key.for_tests()) == release()


@pytest.mark.parametrize(
    ("changes", "refusal"),
    [
        ({"key": "release.key"}, ("mismatch", "key", "cv.Key.load", "str")),
        ({"key": Path("release.key")}, ("mismatch", "key", "cv.Key.load", "PosixPath")),
        ({"budget": 1.0}, ("mismatch", "budget", "cv.Budget", "float")),
        ({"mechanism": "tem"}, ("mismatch", "mechanism", "cv.mechanism", "str")),
        ({"mechanism": SPACE}, ("mismatch", "mechanism", "Space")),
        ({"policy": {"numbers": "drop"}}, ("mismatch", "policy", "cv.TextPolicy", "dict")),
        ({"collocations": "s3://bucket/table"}, ("wrong-type", "collocations")),
        ({"duplicates": "never"}, ("wrong-value", "duplicates = 'never'")),
        ({"policy": TextPolicy(tokenizer="gst")}, ("conflicting-settings", "tokenizer = 'gst'")),
    ],
)
def test_a_part_of_another_type_is_a_sentence(changes: dict[str, Any], refusal: Any) -> None:
    """A path for a key, a number for a budget: each says what to write instead of an AttributeError later."""
    with refused(*refusal):
        release(**changes)


@pytest.mark.parametrize("name", names())
def test_what_promises_nothing_is_released_by_who_accepts_that(name: str) -> None:
    """In Python as on the command line, and no mechanism that has a guarantee asks for it."""
    mechanism = make(name, SPACE)
    if mechanism.private:
        assert not release(mechanism=mechanism).accept_no_guarantee
        return
    with refused("no-guarantee", name, "accept_no_guarantee"):
        release(mechanism=mechanism)
    assert release(mechanism=mechanism, accept_no_guarantee=True).mechanism is mechanism


def test_accepting_that_is_no_part_of_the_configuration() -> None:
    """It says what somebody knows, and changes no text: neither digest, nor name, nor equality."""
    accepted = release(accept_no_guarantee=True)
    assert accepted.configuration() == release().configuration()
    assert (accepted.digest, accepted.name, accepted) == (release().digest, release().name, release())
    assert accepted.kernel() == release().kernel()


@pytest.mark.parametrize("call", [cv.privatize, cv.privatize_table])
def test_a_release_is_asked_for(call: Any) -> None:
    with refused("wrong-type", "release", "cv.Release"):
        call(pa.table({"text": ["a"]}), BASE["mechanism"], ids=["a"])


def test_frames_of_spark_and_beam_ask_for_theirs() -> None:
    """A pandas frame for Spark's, and a mechanism for a release, were AttributeErrors."""
    with refused("wrong-type", "cv.privatize"):
        privatize_frame(pd.DataFrame({"text": ["a"], "id": [1]}), release(), id="id")
    with refused("wrong-type", "RingGeometric"):
        PrivatizeDocuments(BASE["mechanism"], id="id")


@pytest.mark.parametrize(
    ("call", "refusal"),
    [
        (
            lambda: make("tem", "spaces/glove"),
            ("wrong-type", "space", "cv.load_space", "str"),
        ),  # type: ignore[arg-type]
        (
            lambda: RingGeometric("spaces/glove"),
            ("wrong-type", "space", "cv.load_space", "str"),
        ),  # type: ignore[arg-type]
        (lambda: make(SPACE, "tem"), ("wrong-type", "mechanism")),  # type: ignore[arg-type]
        (lambda: cv.build_space("vectors.txt"), ("wrong-type", "cv.read_vectors")),  # type: ignore[arg-type]
        (lambda: cv.load_space(5), ("wrong-type", "int")),  # type: ignore[arg-type]
        (lambda: cv.read_vectors(None), ("wrong-type", "NoneType")),  # type: ignore[arg-type]
        (lambda: cv.Key("release.key"), ("unusable-key", "Key", "str", "Key.load")),  # type: ignore[arg-type]
    ],
)
def test_an_address_for_a_thing_is_a_sentence(call: Any, refusal: Any) -> None:
    with refused(*refusal):
        call()


def test_a_space_opens_by_a_path_of_pathlib(tmp_path: Path) -> None:
    SPACE.save(tmp_path / "space")
    assert cv.load_space(tmp_path / "space") == SPACE


def test_the_draw_key_depends_on_key_and_digest() -> None:
    keys = [one.kernel().draw_key for one in (release(), release(key=another_key()), *(release(**c) for c in CHANGES))]
    assert len({key.aes for key in keys}) == len(keys)
    assert len({key.tag for key in keys}) == len(keys)
    assert release().kernel().draw_key == release().kernel().draw_key


def test_the_statement_names_the_bound_and_what_is_disclosed() -> None:
    """What is printed: epsilon, metric, plain LDP, document readings, and everything left in the clear."""
    said = statement(release())
    words = " ".join(said["guarantee_in_words"])
    assert "at most their distance" in words
    assert "ring of 20 words" in words
    assert "resample" in words
    assert any("punctuation" in line for line in said["guarantee"]["disclosed"])
    assert said["guarantee"]["epsilon"] == 1.0
    per = statement(release(budget=Budget(5.0, "document"), policy=TextPolicy(contacts="keep")))
    assert "5 / m" in " ".join(per["guarantee_in_words"])
    assert any("e-mail" in line for line in per["guarantee"]["disclosed"])


RELEASES: list[dict[str, Any]] = [
    {},
    {"budget": Budget(5.0, "document")},
    {"policy": TextPolicy(contacts="keep", case="restore", layout="keep", stop_words="keep")},
    {"mechanism": make("custext", SPACE)},
    {"mechanism": make("custext-per-word", SPACE), "accept_no_guarantee": True},
    {"duplicates": "same-noise"},
    {"duplicates": "drop"},
    {"key": another_key()},
]


@pytest.mark.parametrize("changes", RELEASES, ids=str)
def test_python_says_what_the_manifest_and_the_command_line_say(
    changes: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """One guarantee of a release: in the manifest, in what is printed before a run, and in Python, word for word."""
    one = release(**changes)
    guarantee = one.guarantee()
    drafted = draft(one, Columns())
    assert drafted["guarantee"] == guarantee.as_dict()
    assert tuple(drafted["guarantee_in_words"]) == guarantee.notes
    announce(one, Terminal("none"), explain=True)
    lines = capsys.readouterr().out.splitlines()
    assert [line[2:] for line in lines if line.startswith("- ")] == list(guarantee.notes)
    assert f"Disclosed: {'; '.join(guarantee.disclosed)}." in lines


@pytest.mark.parametrize("changes", RELEASES, ids=str)
def test_the_guarantee_of_a_release_leaves_nothing_out(changes: dict[str, Any]) -> None:
    """All that the text policy and the mechanism disclose, what epsilon is for, unknown words, and the key."""
    one = release(**changes)
    guarantee = one.guarantee()
    alone = one.mechanism.guarantee(one.budget.epsilon)
    assert set(one.policy.disclosed()) | set(alone.disclosed) <= set(guarantee.disclosed)
    assert len(set(guarantee.disclosed)) == len(guarantee.disclosed)
    assert (guarantee.per, guarantee.epsilon) == (one.budget.per, alone.epsilon)
    assert set(alone.assumptions) < set(guarantee.assumptions)
    said = " ".join(guarantee.assumptions)
    assert ("NOT PRIVATE" in said) == one.key.test
    assert ("The key is secret" in said) != one.key.test
    words = " ".join(guarantee.notes)
    assert ("Tokens under 'resample'" in words) == ("m replaced words each" in words) == guarantee.holds
    assert ("No guarantee holds" in words) != guarantee.holds


def test_a_mechanism_alone_discloses_what_no_policy_hides() -> None:
    """``disclosed`` was empty: how many tokens a document has stands in the clear whatever the text policy."""
    for name in names():
        mechanism = make(name, SPACE)
        epsilon = 1e6 if name == "truncated-gumbel" else 1.0
        assert DOCUMENT_LENGTH in mechanism.guarantee(epsilon).disclosed
        assert DOCUMENT_LENGTH in TextPolicy(**dict.fromkeys(ROLE_NAMES[1:], "drop")).disclosed()


@pytest.mark.parametrize("stop_words", ["keep", "mask", "drop"])
def test_stop_words_treated_apart_are_a_condition_of_the_bounds(stop_words: str) -> None:
    """A stop word that is not replaced can't differ between the documents that the bounds compare."""
    said = statement(release(policy=TextPolicy(stop_words=stop_words)))["guarantee_in_words"]
    assert any("same stop words" in line for line in said)
    assert not any("same stop words" in line for line in statement(release())["guarantee_in_words"])


def stated_nats(one: Release) -> float:
    """Return the printed bound of an unknown against a known word."""
    (line,) = (line for line in statement(one)["guarantee_in_words"] if "resample" in line)
    found = re.search(r"at most ([0-9.]+) nats", line)
    assert found
    return float(found[1])


def true_nats(mechanism: RingGeometric, epsilon: float) -> float:
    """Return the largest log-ratio of the law of resampling and of any word's law, both as sampled."""
    public = np.log(public_weights(mechanism.space).astype(np.float64) / TOTAL)
    laws = np.log([mechanism.distribution(word, epsilon) for word in range(len(mechanism.space))])
    return float(np.abs(public - laws).max())


LARGER = RingGeometric(small_space(60, counts=range(1, 61)))


def test_unknown_words_are_told_from_known_ones_by_no_more_than_is_printed() -> None:
    """The nats in the statement hold for the laws that are sampled."""
    for epsilon in (0.1, 1.0, 10.0):
        one = release(mechanism=LARGER, budget=Budget(epsilon))
        assert true_nats(LARGER, epsilon) <= stated_nats(one) * (1 + 1e-3)


def test_unknown_words_of_a_document_are_bounded_at_every_share() -> None:
    """Under a document budget the printed nats hold for documents of any length."""
    stated = stated_nats(release(mechanism=LARGER, budget=Budget(1.0, "document")))
    worst = max(true_nats(LARGER, epsilon) for epsilon in Budget(1.0, "document").shares(np.arange(1, 60)).tolist())
    assert worst <= stated * (1 + 1e-3)


def test_bad_policies_and_budgets_cannot_be_part_of_a_release() -> None:
    with pytest.raises(BadValueError):
        release(budget=Budget(0.0))
    with pytest.raises(BadValueError):
        release(policy=TextPolicy(numbers="privatize"))

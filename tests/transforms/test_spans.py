"""Spans: one token each, of a law that depends on their kind alone, or on what their treatment is said to disclose."""

from __future__ import annotations

import pickle
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import corpusveil as cv
from corpusveil.kernel import kernel
from corpusveil.kernel.kernel import Kernel
from corpusveil.spaces.vectors import Vectors
from corpusveil.storage.documents import Documents
from corpusveil.text.classes import SPAN
from corpusveil.text.spans import OfFunction, covered
from corpusveil.text.tokens import Tokenizer
from tests.calls import refused
from tests.contracts.statistics import LEVEL, fit_p_value

WORDS = [f"w{c}" for c in "abcdefghijkl"] + ["bob", "smith"]
KEY = cv.Key(bytes(range(100, 132)))
COUNTS = np.arange(1, len(WORDS) + 1)
NAME = re.compile(r"bob(\s+smith)?|müller|eve", re.IGNORECASE)
PHONE = re.compile(r"\+[\d ()-]+\d")


def find(texts: list[str]) -> list[list[tuple[int, int, str]]]:
    """Recognize the names and telephone numbers of these tests."""
    kinds = ((NAME, "name"), (PHONE, "phone"))
    return [[(*match.span(), kind) for pattern, kind in kinds for match in pattern.finditer(text)] for text in texts]


def one_contact(texts: list[str]) -> list[list[tuple[Any, Any, str]]]:
    """Recognize the place of *bob at*, as NumPy counts it."""
    return [[(np.int64(3), np.int64(9), "contact")] for _ in texts]


def release_of(
    treat: dict[str, str] | None = None, epsilon: float = 1.0, find: Any = find, budget: Any = None, **more: Any
) -> cv.Release:
    vectors = np.random.default_rng(0).normal(size=(len(WORDS), 4)).astype(np.float32)
    space = cv.build_space(Vectors(WORDS, vectors), counts=COUNTS)
    spans = cv.SpanPolicy(find=find, treat=treat or {})
    return cv.Release(
        cv.RingGeometric(space), budget or cv.Budget(epsilon), cv.TextPolicy(**more.pop("policy", {})), key=KEY,
        spans=spans, **more,
    )  # fmt: skip


def written(texts: list[str], release: cv.Release) -> list[str]:
    return list(cv.privatize(texts, release, ids=list(range(len(texts)))))


# What a span is


@given(
    st.lists(st.text(alphabet="ab é😀.-@1ü\n", max_size=12), min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 12), st.integers(0, 12), st.sampled_from(["x", "y"]))),
)
def test_all_that_is_marked_is_in_a_span_and_nothing_else(
    texts: list[str], marks: list[tuple[int, int, int, str]]
) -> None:
    """Beside plain Python, which goes from token to token; no span crosses from one document to the next."""
    spans: list[list[tuple[int, int, str]]] = [[] for _ in texts]
    for document, a, b, kind in marks:
        if document < len(texts) and a <= b <= len(texts[document]):
            spans[document].append((a, b, kind))
    tokenizer = Tokenizer.of_words(["a", "b"])
    plain = tokenizer.tokenize(texts)
    whole, _ = covered(tokenizer.tokenize(texts), OfFunction("f", lambda _: spans)(plain))
    for document, text in enumerate(texts):
        starts = np.cumsum([0, *(len(character.encode()) for character in text)]) + int(plain.documents[document])
        groups: list[tuple[int, int, bool]] = []
        reach = -1
        for t in range(plain.offsets[document], plain.offsets[document + 1]):
            a, b = int(plain.starts[t]), int(plain.ends[t])
            ends = [int(starts[y]) for x, y, _ in spans[document] if x < y and starts[x] < b and starts[y] > a]
            if groups and groups[-1][2] and a < reach:
                groups[-1] = (groups[-1][0], b, True)
            else:
                groups.append((a, b, bool(ends)))
                reach = -1
            reach = max(reach, *ends, -1)
        own = range(whole.offsets[document], whole.offsets[document + 1])
        assert [(int(whole.starts[t]), int(whole.ends[t]), whole.classes[t] == SPAN) for t in own] == groups


# What is written


def test_each_treatment() -> None:
    """A mask names the kind alone; a span that is resampled becomes one word."""
    text = "Bob Smith called +49 170-123 ."
    assert re.fullmatch(r"\[name\] \w+ \[phone\] \.", written([text], release_of())[0])
    assert re.fullmatch(r"\w+ \w+ \[phone\] \.", written([text], release_of({"name": "resample"}))[0])
    private = written([text], release_of({"other": "resample"}))[0]
    assert re.fullmatch(r"\w+ \w+ \w+ \.", private)


def test_masks_and_contacts_under_other_policies() -> None:
    policy = {"case": "restore", "layout": "keep"}
    assert written(["BOB,  +1 23"], release_of(policy=policy)) == ["[name],  [phone]"]
    of_numpy = release_of(find=one_contact)
    assert written(["wa bob at wb"], of_numpy)[0].split()[1] == "[contact]"


NEIGHBORS = [
    ("wa Bob wb +49 170 1 wc", "wa Müller wb +1 (2) 3 wc"),
    ("Bob Smith wd we", "eve wd we"),
    ("wa eve wb wc eve", "wa BOB SMITH wb wc bob"),
]


@pytest.mark.parametrize(("treatment", "per"), [("mask", "token"), ("mask", "document"), ("resample", "document")])
def test_what_a_span_says_changes_no_byte(treatment: str, per: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the noise held still, which would be new for another text, as it has to be."""
    monkeypatch.setattr(Kernel, "noise_tags", lambda *given: np.zeros((given[-1].size - 1, 2), np.uint64))
    release = release_of({"other": treatment}, budget=cv.Budget(9.0, per=per))
    for pair in NEIGHBORS:
        first, second = (written([text], release) for text in pair)
        assert first == second


def test_spans_resampled_have_the_law_of_public_counts() -> None:
    """And the law of the words around them is that of a text without spans."""
    drawn = Counter(written(["eve " * 20_000], release_of({"other": "resample"}))[0].split())
    seen = np.array([word for word, count in drawn.items() for _ in range(count)])
    index = {word: number for number, word in enumerate(WORDS)}
    law = COUNTS / COUNTS.sum()
    assert fit_p_value(np.array([index[word] for word in seen]), law) > LEVEL
    assert fit_p_value(np.array([index[word] for word in seen]), np.full(len(WORDS), 1 / len(WORDS))) < LEVEL


# What a release is


@pytest.mark.parametrize(
    ("code", "names", "made"),
    [
        ("wrong-setting", ("treat: name", "resample"), lambda: release_of({"name": "hide"})),
        ("wrong-setting", ("nmae", "iban, ip"), lambda: release_of({"nmae": "resample"}, find=["names", "rules"])),
        ("wrong-setting", ("contacts",), lambda: release_of({"contact": "mask"})),
        ("wrong-setting", ("recognizer",), lambda: cv.SpanPolicy(find=[])),
        ("wrong-setting", ("language tr",), lambda: release_of(policy={"language": "tr"})),
        ("wrong-setting", ("version",), lambda: release_of(find=lambda texts: [[] for _ in texts])),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_refused(code: str, names: tuple[str, ...], made: Any) -> None:
    with refused(code, *names):
        made()


@pytest.mark.parametrize(
    "answer",
    [
        lambda texts: [[(0, 99, "name")] for _ in texts], lambda texts: [[(2, 1, "name")] for _ in texts],
        lambda texts: [[(0, 1, "Bob")] for _ in texts], lambda texts: [["Bob"] for _ in texts], lambda _: [],
        lambda texts: [texts[0][99]], lambda texts: sys.exit(texts[0]),
        lambda texts: [[(True, 1, "name")] for _ in texts],
    ],
)  # fmt: skip
def test_a_recognizer_that_answers_wrongly_is_named_and_no_text_quoted(answer: Any) -> None:
    answer.version = "1"
    release = release_of(find=answer)
    with refused("wrong-setting", "<lambda>") as error:
        written(["bob wa secretcanary"], release)
    assert "secretcanary" not in str(error.value)
    assert error.value.__cause__ is None


def test_what_finds_spans_is_the_same_in_every_process(tmp_path: Path) -> None:
    """A file of terms that was changed: another release here, and an error of a worker of the old one."""
    terms = tmp_path / "terms"
    terms.write_text("eve\n")
    release = release_of(find=str(terms))
    before = written(["eve wa bob"], release)
    terms.write_text("eve\nbob\n")
    other = release_of(find=str(terms))
    assert release.digest != other.digest
    assert written(["eve wa bob"], release) == before, "what this process has read"
    sent = pickle.dumps(release.kernel())
    kernel._recognizers.cache_clear()
    with refused("input-changed", terms.name):
        pickle.loads(sent).apply(Documents(pa.array(["eve wa bob"]), ["1"]))
    assert written(["eve wa bob"], other)[0].split()[2] == "[name]"


def test_what_terms_are_is_a_keyed_digest(tmp_path: Path) -> None:
    """A list of one name is not to be guessed from the manifest; another list is another release."""

    def digest(key: bytes, terms: str) -> str:
        (tmp_path / "people.txt").write_text(terms)
        spans = cv.SpanPolicy(find=str(tmp_path / "people.txt"))
        release = cv.Release(release_of().mechanism, cv.Budget(1.0), key=cv.Key(key), spans=spans)
        return str(release.configuration()["spans"]["find"])

    keys = bytes(range(100, 132)), bytes(range(150, 182))
    assert digest(keys[0], "bob\n") == digest(keys[0], "bob\n")
    assert len({digest(keys[0], "bob\n"), digest(keys[1], "bob\n"), digest(keys[0], "eve\n")}) == 3


def test_a_ledger_counts_words_and_no_spans() -> None:
    release = release_of(budget=cv.Budget(1.0))
    _, spent = release.kernel().account(Documents(pa.array(["bob wa wb", "wa wb"]), ["1", "2"]), bytes(32))
    assert spent.tokens.tolist() == [2, 2]
    assert spent.nats[0] == spent.nats[1] > 0

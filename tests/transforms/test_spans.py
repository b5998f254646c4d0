"""Spans: one token each, of a law that depends on their kind alone, or on what their treatment is said to disclose."""

from __future__ import annotations

import dataclasses
import json
import pickle
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import csv

import corpusveil as cv
from corpusveil.kernel import kernel
from corpusveil.kernel.kernel import Kernel
from corpusveil.kernel.span_texts import normalized
from corpusveil.language.denoise import _WRITTEN_FOR_SPANS, _within
from corpusveil.spaces.vectors import Vectors
from corpusveil.storage.documents import Documents
from corpusveil.text.classes import SPAN
from corpusveil.text.spans import OfFunction, covered
from corpusveil.text.tokens import Tokenizer
from tests.calls import refused
from tests.contracts.statistics import LEVEL, fit_p_value

WORDS = [f"w{c}" for c in "abcdefghijkl"] + ["bob", "smith"]
KEY, OTHER_KEY = cv.Key(bytes(range(100, 132))), cv.Key(bytes(range(140, 172)))
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
    scope = more.pop("pseudonyms", "corpus")
    spans = cv.SpanPolicy(find=find, treat=treat or {}, pseudonyms=scope)
    if "pseudonym" in spans.treatments and "key_of_pseudonyms" not in more:
        more["key_of_pseudonyms"] = OTHER_KEY
    own = more.pop("key_of_pseudonyms", None)
    key = more.pop("key", KEY)
    return cv.Release(
        cv.RingGeometric(space), budget or cv.Budget(epsilon), cv.TextPolicy(**more.pop("policy", {})), key=key,
        spans=spans, pseudonyms=own, **more,
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
    text = "Bob Smith called +49 170-123 ."
    assert re.fullmatch(r"\[name\] \w+ \[phone\] \.", written([text], release_of())[0])
    private = written([text], release_of({"name": "pseudonym", "phone": "surrogate"}))[0]
    assert re.fullmatch(r"NAME_[0-9A-F]{12} \w+ \+\d\d \d{3}-\d{3} \.", private)
    assert "+49 170-123" not in private
    private = written([text], release_of({"other": "resample"}))[0]
    assert re.fullmatch(r"\w+ \w+ \w+ \.", private)


def test_masks_and_contacts_under_other_policies() -> None:
    policy = {"case": "restore", "layout": "keep"}
    assert written(["BOB,  +1 23"], release_of(policy=policy)) == ["[name],  [phone]"]
    of_numpy = release_of(find=one_contact)
    assert written(["wa bob at wb"], of_numpy)[0].split()[1] == "[contact]"


def tags_of_nothing(self: Kernel, key: bytes, column: str, identities: Any, data: Any, documents: Any) -> Any:
    return np.zeros((documents.size - 1, 2), np.uint64)


NEIGHBORS = [
    ("wa Bob wb +49 170 1 wc", "wa Müller wb +1 (2) 3 wc"),
    ("Bob Smith wd we", "eve wd we"),
    ("wa eve wb wc eve", "wa BOB SMITH wb wc bob"),
]


@pytest.mark.parametrize(("treatment", "per"), [("mask", "token"), ("mask", "document"), ("resample", "document")])
def test_what_a_span_says_changes_no_byte(treatment: str, per: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the noise held still, which would be new for another text, as it has to be."""
    monkeypatch.setattr(Kernel, "noise_tags", tags_of_nothing)
    release = release_of({"other": treatment}, budget=cv.Budget(9.0, per=per))
    for pair in NEIGHBORS:
        first, second = (written([text], release) for text in pair)
        assert first == second


@pytest.mark.parametrize("treatment", ["surrogate", "pseudonym"])
def test_what_other_treatments_disclose_does_change_bytes(treatment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: a shape and an equality are disclosed, as is said, so the test above can fail."""
    monkeypatch.setattr(Kernel, "noise_tags", tags_of_nothing)
    release = release_of({"other": treatment})
    assert written([NEIGHBORS[0][0]], release) != written([NEIGHBORS[0][1]], release)


def test_spans_resampled_have_the_law_of_public_counts() -> None:
    """And the law of the words around them is that of a text without spans."""
    drawn = Counter(written(["eve " * 20_000], release_of({"other": "resample"}))[0].split())
    seen = np.array([word for word, count in drawn.items() for _ in range(count)])
    index = {word: number for number, word in enumerate(WORDS)}
    law = COUNTS / COUNTS.sum()
    assert fit_p_value(np.array([index[word] for word in seen]), law) > LEVEL
    assert fit_p_value(np.array([index[word] for word in seen]), np.full(len(WORDS), 1 / len(WORDS))) < LEVEL


# Pseudonyms


def labels(texts: list[str], release: cv.Release) -> list[str]:
    return [label for text in written(texts, release) for label in re.findall("NAME_[0-9A-F]{12}", text)]


def test_pseudonyms_are_equal_exactly_for_equal_normalized_text() -> None:
    texts = ["Bob Smith wa", "wb  BOB\u00a0smith", "eve", "Eve's", "bob"]
    one, other, eve, eves, bob = labels(texts, release_of({"name": "pseudonym"}))
    assert one == other
    assert eve == eves
    assert len({one, eve, bob}) == 3
    assert normalized(" Bob \n SMITH\u00a0") == "bob smith"
    assert normalized("Mu\u0308ller") == normalized("M\u00dcLLER") == "m\u00fcller"


def test_pseudonyms_are_those_of_their_own_key_in_every_release() -> None:
    treat = {"name": "pseudonym"}
    first, *others = (
        labels(["bob wa"], release_of(treat, epsilon, key=cv.Key.generate(), key_of_pseudonyms=key))
        for epsilon, key in ((1.0, OTHER_KEY), (2.0, OTHER_KEY), (1.0, cv.Key.generate()))
    )
    assert first == others[0] != others[1]


def test_pseudonyms_of_a_document_are_of_no_other() -> None:
    release = release_of({"name": "pseudonym"}, pseudonyms="document")
    first, again, other = labels(["Bob wa bob", "bob"], release)
    assert first == again != other


def test_pseudonyms_of_a_unit_are_of_no_other() -> None:
    """In frames, lists with values, and lists within rows; of a unit in any of the forms that a ledger takes as one."""
    release = release_of({"name": "pseudonym"}, pseudonyms="unit")
    frame = pa.table({"text": ["Bob wa", "bob", None, "wb BOB", "eve"], "of": [1, 2, None, 1, 1]})
    made = cv.privatize(frame, release, cv.RowNumbers("f"), unit="of")["text"].to_pylist()
    ours = [re.findall("NAME_[0-9A-F]{12}", text or "") for text in made]
    assert ours[0] == ours[3]
    assert len({*map(tuple, ours)}) == 4
    values = {"of": ["1.0", " 2", "none", "1", 1]}
    again = cv.privatize(frame["text"].to_pylist(), release, cv.RowNumbers("f"), unit=values)
    assert again == made
    nested = pa.table({"turns": [["bob", "Bob"], ["bob"]], "of": [1, 2], "id": [1, 2]})
    (first, second), (other,) = cv.privatize(nested, release, "id", "turns[]", unit="of")["turns"].to_pylist()
    assert [first, second, other] == [ours[0][0], ours[0][0], ours[1][0]]
    assert "which spans of one unit" in str(release.guarantee().disclosed)
    assert "in the documents of one unit" in str(release.guarantee().notes)


def test_pseudonyms_of_units_need_units() -> None:
    release = release_of({"name": "pseudonym"}, pseudonyms="unit")
    frame = pa.table({"text": ["bob"], "of": pa.array([None], pa.string()), "id": [1]})
    with refused("bad-row", "row 1", "unit of"):
        cv.privatize(frame, release, "id", unit="of")
    with refused("missing-setting", "customer_id"):
        cv.privatize(frame, release, "id", unit=["of", "id"])
    for call in (
        lambda: cv.privatize(frame, release, "id"),
        lambda: cv.privatize_table(frame, release, id="id"),
        lambda: cv.masker(release),
    ):
        with refused("missing-setting", "pseudonyms = 'unit'"):
            call()
    unscoped = release_of({"name": "mask"}, pseudonyms="unit")
    assert cv.privatize(["bob"], unscoped, [1]) == ["[name]"]


def test_pseudonyms_of_a_public_list_follow_its_counts(tmp_path: Path) -> None:
    """The digest is of the list, and not of where it lies."""
    (tmp_path / "names").write_text("Ada\t1\nMary Ann\t3\n\n")

    def all_of(texts: list[str]) -> list[list[tuple[int, int, str]]]:
        return [[(0, len(text), "name")] for text in texts]

    all_of.version = "1"  # type: ignore[attr-defined]

    def with_list(name: str) -> cv.Release:
        return release_of({"name": f"pseudonym:{tmp_path / name}"}, find=all_of)

    release = with_list("names")
    drawn = np.array([text == "Mary Ann" for text in written([f"m{number}" for number in range(4_000)], release)])
    assert fit_p_value(drawn.astype(int), np.array([0.25, 0.75])) > LEVEL
    (tmp_path / "bad").write_text("Ada\tmany\n")
    with refused("bad-row", "row 1"):
        with_list("bad").digest  # noqa: B018
    (tmp_path / "other").write_text("Ada\t1\nEva\t3\n")
    (tmp_path / "moved").write_bytes((tmp_path / "names").read_bytes())
    assert with_list("other").digest != release.digest == with_list("moved").digest
    assert str(tmp_path) not in str(release.configuration())


# What a release is


def test_no_key_is_shown() -> None:
    secret, own = cv.Key.generate(), cv.Key.generate()
    release = release_of({"name": "pseudonym"}, key=secret, key_of_pseudonyms=own)
    kernel = release.kernel()
    shown = f"{release!r} {release} {release.configuration()} {kernel.draw_key!r} {kernel!r} {kernel} {secret!r} {own}"
    tag = kernel.pseudonyms.tag  # type: ignore[union-attr]
    assert repr(tag) not in shown
    for hidden in (secret.secret, own.secret, kernel.draw_key.aes, kernel.draw_key.tag):
        assert repr(hidden)[2:-1] not in shown
        assert hidden.hex() not in shown


@pytest.mark.parametrize(
    ("code", "names", "made"),
    [
        ("missing-setting", ("pseudonyms=", "key new"),
         lambda: release_of({"name": "pseudonym"}, key_of_pseudonyms=None)),
        ("conflicting-settings", ("leave",), lambda: release_of({}, key_of_pseudonyms=cv.Key.generate())),
        ("conflicting-settings", ("make another key",),
         lambda: release_of({"name": "pseudonym"}, key=OTHER_KEY)),
        ("conflicting-settings", ("other=resample",),
         lambda: release_of({}, length=cv.LengthGrid(5), policy={"punctuation": "drop", "contacts": "drop"})),
        ("wrong-value", ("treat: name", "resample"), lambda: release_of({"name": "hide"})),
        ("wrong-value", ("nmae", "iban, ip, name"), lambda: release_of({"nmae": "resample"}, find=["names", "rules"])),
        ("wrong-value", ("contacts",), lambda: release_of({"contact": "mask"})),
        ("wrong-value", ("recognizer",), lambda: cv.SpanPolicy(find=[])),
        ("conflicting-settings", ("language tr",), lambda: release_of(policy={"language": "tr"})),
        ("wrong-value", ("version",), lambda: release_of(find=lambda texts: [[] for _ in texts])),
        ("wrong-value", ("pseudonyms",), lambda: cv.SpanPolicy(pseudonyms="row")),  # type: ignore[arg-type]
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
    with refused("wrong-value", "<lambda>") as error:
        written(["bob wa secretcanary"], release)
    assert "secretcanary" not in str(error.value)
    assert error.value.__cause__ is None


def test_what_finds_spans_is_the_same_in_every_process(tmp_path: Path) -> None:
    """A file of terms that was changed, and a list: another release here, and an error of a worker of the old one."""
    terms, names = tmp_path / "terms", tmp_path / "names"
    for path, first, then in ((terms, "eve\n", "eve\nbob\n"), (names, "Ada\nMary\n", "Ada\nZoe\n")):
        terms.write_text("eve\n")
        names.write_text("Ada\nMary\n")
        find, treat = str(terms), {"name": f"pseudonym:{names}"}
        release = release_of(treat, find=find, key_of_pseudonyms=OTHER_KEY)
        before = written(["eve wa bob"], release)
        assert path.read_text() == first
        path.write_text(then)
        other = release_of(treat, find=find, key_of_pseudonyms=OTHER_KEY)
        assert release.digest != other.digest
        assert written(["eve wa bob"], release) == before, "what this process has read"
        sent = pickle.dumps(release.kernel())
        kernel._recognizers.cache_clear()
        with refused("input-changed", path.name):
            pickle.loads(sent).privatize(Documents(pa.array(["eve wa bob"]), ["1"]))
        if path == terms:
            assert "bob" not in written(["eve wa bob"], other)[0].split()


def test_padded_texts_may_have_resampled_spans() -> None:
    """And the fillers behind a text are as many as without spans; spans at the cut end are gone."""
    policy = {"punctuation": "drop", "contacts": "drop"}
    release = release_of({"other": "resample"}, length=cv.LengthGrid(4), policy=policy)
    assert [len(text.split()) for text in written(["Bob Smith wa eve wb eve wc", "eve"], release)] == [8, 4]
    noisy = release_of({"other": "resample"}, length=cv.LengthNoise(0.2), policy=policy)
    texts = ["eve wa bob smith wb +12 34 wc"] * 200
    assert len({len(text.split()) for text in written(texts, noisy)}) > 3


def test_a_ledger_counts_words_and_no_spans() -> None:
    release = release_of(budget=cv.Budget(1.0))
    _, spent = release.kernel().account(Documents(pa.array(["bob wa wb", "wa wb"]), ["1", "2"]), bytes(32))
    assert spent.tokens.tolist() == [2, 2]
    assert spent.nats[0] == spent.nats[1] > 0


def test_denoising_leaves_masks_and_pseudonyms() -> None:
    tokens = Tokenizer.of_words(WORDS).tokenize(["[name] wa NAME_7F3A1C02D4E6 wb name_x"])
    marked = "".join(tokens.text(t) for t in np.flatnonzero(_within(_WRITTEN_FOR_SPANS, tokens)).tolist())
    assert marked == "[name]NAME_7F3A1C02D4E6"


def test_the_values_of_a_row_s_column_are_masked_alike_in_files_and_frames(tmp_path: Path) -> None:
    """And counted alike: a masked word spends nothing. The column leaves only if it is kept."""
    rows = {"id": ["a", "b"], "name": ["Wa Eve", "12345"], "text": ["wb EVE wb", "wb 12345 eve"]}
    release = dataclasses.replace(release_of(), spans=cv.SpanPolicy(find=(), spans_from=["name"]))
    expected = cv.privatize(pa.table(rows), release, ids="id")
    assert [text.split().count("[name]") for text in expected["text"].to_pylist()] == [1, 1]
    table = pa.table(rows)
    pq.write_table(table, tmp_path / "in.parquet")
    csv.write_csv(table, tmp_path / "in.csv")
    (tmp_path / "in.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in table.to_pylist()))
    for form in ("parquet", "csv", "jsonl"):
        out, ledger = tmp_path / form, cv.Ledger(str(tmp_path / f"ledger of {form}"))
        made = cv.privatize_corpus(tmp_path / f"in.{form}", out, release, id="id", ledger=ledger, unit="id")
        assert made.not_copied == ("id", "name"), form
        (shard,) = (out / "data").iterdir()
        private = shard.read_bytes() if form != "parquet" else str(pq.read_table(shard).to_pylist()).encode()
        assert all(text.encode() in private for text in expected["text"].to_pylist()), form
        assert not any(value in private for value in (b"Wa Eve", b"12345")), form
        assert [ledger.spent_on(id).releases[0]["tokens"] for id in "ab"] == [2, 1], form

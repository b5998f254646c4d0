"""Everything that makes noise fresh makes an entry in the ledger: draws differ exactly where release or noise do."""

from __future__ import annotations

import dataclasses
import inspect
import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import corpusveil as cv
from corpusveil.collocations.collocation_table import Collocations
from corpusveil.kernel import kernel as kernel_module
from corpusveil.kernel.kernel import Kernel
from corpusveil.ledger.account import Account
from corpusveil.ledger.units import Unit
from corpusveil.sampling.draws import Draws
from corpusveil.storage.documents import Documents
from corpusveil.transforms.release import release as release_module
from corpusveil.transforms.release.release import DUPLICATES, Release
from tests.contracts.spaces import small_space, words_of
from tests.engines.corpora import TEST_KEY

FIRST, SECOND, *_ = WORDS_OF = words_of(18)
JOINABLE = [*WORDS_OF, f"{FIRST}_{SECOND}", f"{SECOND}_{FIRST}"]
SPACE, OTHER_SPACE = (small_space(words=JOINABLE, counts=range(first, first + 20)) for first in (0, 1))
TEXT = f"{FIRST} {SECOND} 17 zzunknown {FIRST}"
TABLE = Collocations.from_table(pa.table({"ngram": [f"{FIRST} {SECOND}"], "n": [2], "score": [3.0]}))
OTHER_TABLE = Collocations.from_table(pa.table({"ngram": [f"{SECOND} {FIRST}"], "n": [2], "score": [3.0]}))


def no_spans(texts: list[str]) -> list[list[tuple[int, int, str]]]:
    """Recognize nothing."""
    return [[] for _ in texts]


def other_spans(texts: list[str]) -> list[list[tuple[int, int, str]]]:
    """Recognize the first character."""
    return [[(0, 1, "name")] for _ in texts]


BASE = Release(cv.mechanism("ring-geometric", SPACE), cv.Budget(1.0), cv.TextPolicy(), key=cv.Key(TEST_KEY))
JOINED = dataclasses.replace(BASE, policy=cv.TextPolicy(tokenizer="mst"), collocations=TABLE)
RELEASES: dict[str, list[Release]] = {
    "mechanism": [
        dataclasses.replace(BASE, mechanism=cv.mechanism("ring-geometric", SPACE, gamma=4)),
        dataclasses.replace(BASE, mechanism=cv.mechanism("diffractor-exponential", SPACE)),
        dataclasses.replace(BASE, mechanism=cv.mechanism("ring-geometric", OTHER_SPACE)),
    ],
    "budget": [
        dataclasses.replace(BASE, budget=budget)
        for budget in (cv.Budget(2.0), cv.Budget(1.0, "document"), cv.Budget(1.0, "document", "word-share"))
    ],
    "policy": [dataclasses.replace(BASE, policy=cv.TextPolicy(numbers="mask")), JOINED],
    "collocations": [JOINED, dataclasses.replace(JOINED, collocations=OTHER_TABLE)],
    "spans": [
        dataclasses.replace(BASE, spans=cv.SpanPolicy(find=[find], treat=treat))
        for find, treat in ((no_spans, {}), (no_spans, {"name": "resample"}), (other_spans, {}))
    ],
    "duplicates": [dataclasses.replace(BASE, duplicates=name) for name in DUPLICATES],
    "key": [dataclasses.replace(BASE, key=cv.Key(TEST_KEY[::-1]))],
}
"""For each field of a release, releases that differ in it."""
DATA: dict[str, list[Any]] = {
    "column": ["text", "title", ""],
    "identities": [
        "a", "b", b"a", 1, 2, ("c4", "x", 1), ("c4", "x", 2), ("c4", "y", 1), ("news", "x", 1), ("x", 1), ("c4/x", 1),
    ],
    "data": [TEXT, f"{TEXT} ", TEXT.upper(), f"{TEXT} {FIRST}"],
}  # fmt: skip
"""For each part of a document's tag, values that differ in it."""


def noted(draw: Any, found: set[int]) -> Any:
    """Return what draws, and adds to a set what it drew."""

    def drawn(draws: Draws, *arguments: int) -> Any:
        out = draw(draws, *arguments)
        found.update(np.ravel(out).tolist())
        return out

    return drawn


@dataclasses.dataclass(frozen=True)
class Case:
    release: Release
    column: str = "text"
    identity: Any = ("c4", "x", 1)
    text: str = TEXT
    corpus: str = "c4"

    def documents(self) -> Documents:
        return Documents(pa.array([self.text], pa.large_string()), [self.identity], self.column, rows=[0])

    def drawn(self, patch: pytest.MonkeyPatch) -> frozenset[int]:
        """Return all that the kernel draws for the document."""
        found: set[int] = set()
        with patch.context() as patched:
            for name in ("uint64", "pair", "lanes"):
                patched.setattr(Draws, name, noted(getattr(Draws, name), found))
            kernel = self.release.kernel()
            kernel.apply(self.documents())
        return frozenset(found)

    def counted(self) -> bytes:
        """Return what a ledger counts the document's noise by."""
        account = self.release.account(self.column)
        account = dataclasses.replace(account, namespace=self.corpus, secret=b"s" * 32)
        table = account.spending(self.documents())
        return table["noise"][0].as_py().bytes


def cases(release: Release) -> Iterator[Case]:
    """Yield documents that differ in each part of a tag, alone, under one release."""
    yield Case(release)
    yield Case(release, corpus="another name that is part of no identity")
    names = {"column": "column", "identities": "identity", "data": "text"}
    for name, values in DATA.items():
        for value in values:
            yield dataclasses.replace(Case(release), **{names[name]: value})


def equal_where_counted_once(patch: pytest.MonkeyPatch, some: list[Case]) -> int:
    """Hold the draws of all pairs against the ledger; return how many pairs draw the same."""
    found = [(one.drawn(patch), one.counted()) for one in some]
    equal = 0
    for (drawn, counted), (others, again) in itertools.combinations(found, 2):
        assert (drawn == others) == (counted == again)
        assert drawn == others or not drawn & others
        equal += drawn == others
    return equal


def test_nothing_that_enters_a_tag_or_a_release_is_left_out() -> None:
    """What enters a tag, a release or its configuration has variations here; what is added has to be added here too."""
    assert set(inspect.signature(Kernel.noise_tags).parameters) - {"self", "key", "documents"} == set(DATA)
    # which are in no digest and draw nothing
    consent = {"span_marks", "accept_no_guarantee", "risk"}
    assert {one.name for one in dataclasses.fields(Release)} - consent == set(RELEASES)
    changed: set[str] = set()
    for one in itertools.chain.from_iterable(RELEASES.values()):
        for before in (BASE, JOINED):
            first, second = before.configuration(), one.configuration()
            changed |= {name for name in first.keys() | second.keys() if first.get(name) != second.get(name)}
    versions = {"kernel", "tokenizer"}  # see below
    every = set(BASE.configuration()) | set(JOINED.configuration()) | {"duplicates", "spans"}
    assert changed | versions == every


@pytest.mark.parametrize("duplicates", DUPLICATES)
def test_documents_draw_the_same_where_their_noise_is_counted_once(
    duplicates: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Column, identity with its type, and content; under same-noise column and content alone."""
    some = list(cases(dataclasses.replace(BASE, duplicates=duplicates)))
    equal = equal_where_counted_once(monkeypatch, some)
    alike = 2 + 3 + (len(DATA["identities"]) - 1 if duplicates == "same-noise" else 0)  # with the first
    assert equal == alike * (alike - 1) // 2


def test_releases_draw_the_same_where_they_have_one_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every field of a release and its key, one by one."""
    some = [Case(BASE), Case(dataclasses.replace(BASE)), *(Case(one) for some in RELEASES.values() for one in some)]
    assert equal_where_counted_once(monkeypatch, some) == 3 + 1  # the first two and a duplicates="independent"; JOINED


@pytest.mark.parametrize("name", ["KERNEL_VERSION", "TOKENIZER_VERSION"])
def test_versions_draw_afresh_and_are_counted(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Code that draws otherwise is another release in the ledger, too."""
    before = Case(BASE).drawn(monkeypatch), Case(BASE).counted()
    for module in (release_module, kernel_module):
        monkeypatch.setattr(module, name, 10**6 if name == "KERNEL_VERSION" else "another")
    after = Case(BASE).drawn(monkeypatch), Case(BASE).counted()
    assert not before[0] & after[0]
    assert before[1] != after[1]


def test_fingerprints_that_leave_the_column_out_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Control: a renamed column would draw afresh and not be counted."""
    account = Kernel.account

    def forgetful(kernel: Kernel, documents: Documents, key: bytes) -> Any:
        return account(kernel, dataclasses.replace(documents, column=""), key)

    monkeypatch.setattr(Kernel, "account", forgetful)
    with pytest.raises(AssertionError):
        equal_where_counted_once(monkeypatch, list(cases(BASE)))


def test_a_batch_in_which_no_document_has_a_text_spends_nothing() -> None:
    """Engines cut batches where they like; such a one has the unit's column all the same."""
    none = pa.array([None, None], pa.large_string())
    values = {"customer": pa.array([1, 2], pa.int32())}
    account = Account(BASE.kernel(), {}, "", "text", (Unit.parse("customer"),), secret=bytes(32))
    assert account.spending(Documents(none, ["a", "b"], values=values, rows=range(2))).num_rows == 0
    some = Documents(pa.array([None, TEXT], pa.large_string()), ["a", "b"], values=values, rows=range(2))
    assert account.spending(some).num_rows == 1

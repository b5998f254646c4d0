"""A store that was made of the texts that it is to replace is refused, in whatever form these are written."""

from __future__ import annotations

import dataclasses
import unicodedata
from collections.abc import Callable, Sequence

import pyarrow as pa
import pytest

import corpusveil as cv
from corpusveil.passages.overlap import refuse_overlap
from corpusveil.passages.passage_exchange import PassageExchange
from corpusveil.storage.documents import Documents
from tests.calls import refused
from tests.engines.corpora import TEST_KEY
from tests.passages.stores import small_store

LONG = [
    "The boiler in the cellar has been leaking since the first frost of the year.",
    "My café table was given away although I had booked it a whole week before.",
    "Nobody told the tenants that the lift would be out of order until autumn.",
    "She walks the old dog along the river before the shops open in the morning.",
    "The invoice names a delivery that we sent back unopened on the same afternoon.",
    "Our daughter refuses to go to school since the naïve new teacher shouted at her.",
    "The parcel was left in the rain and the books inside cannot be read any more.",
    "Please move my appointment to any morning on which the doctor is in the practice.",
    "The office closed early, so I could not hand in the form that they asked for.",
    "After the update the printer answers every single job with an empty sheet of paper.",
]
SHORT = [
    "The soup was cold again.", "He never calls me back.", "Our train left without us.", "The key does not fit.",
    "I lost my winter coat.", "The garden needs more rain.", "She hates the new lamp.", "Nobody fed the grey cat.",
    "Somebody parked at the gate.", "The bread was stale today.", "The roof leaks over there.", "The ferry was full.",
]  # fmt: skip
OTHER = [
    "The heating in our basement drips whenever it freezes outside.", "A neighbour plays the drums until midnight.",
    "I had reserved a table for four and had to wait for an hour.", "The lift is broken, and nobody says until when.",
    "Every morning we take the dog to the river.", "You charged me for goods that I returned.", "Ist hier noch frei?",
    "The books got wet because the courier did not ring.", "When is the surgery open on Fridays?", "Thank you.", "",
    "My printer wastes paper since the last update.", "The counter was shut when I came with the form.", "Yes, please!",
]  # fmt: skip


def pairs(texts: Sequence[str]) -> list[str]:
    return [" ".join(texts[at : at + 2]) for at in range(0, len(texts), 2)]


def form(name: str) -> Callable[[Sequence[str]], list[str]]:
    return lambda texts: [unicodedata.normalize(name, text) for text in texts]


def each(written: str) -> Callable[[Sequence[str]], list[str]]:
    return lambda texts: [written.format(text) for text in texts]


WIDE = str.maketrans({chr(code): chr(code + 0xFEE0) for code in range(0x21, 0x7F)})
FORMS: dict[str, Callable[[Sequence[str]], list[str]]] = {
    "as they are": list,
    "capitals": lambda texts: [text.upper() for text in texts],
    "a speaker": each("Ann: {}"),
    "a paragraph": each("<p>{}</p>"),
    "lines of HTML": each("{}<br/>"),
    "bold": each("**{}**"),
    "a quotation": each("> {}"),
    "an item": each("  * {}"),
    "a cell": each("| {} |"),
    "quoted": each("“{}”"),
    "a date before": each("2026-11-28 09:14 {}"),
    "NFD": form("NFD"),
    "wide letters": lambda texts: [text.translate(WIDE) for text in texts],
    "no accents": lambda texts: [text.replace("é", "e").replace("ï", "i") for text in texts],
    "soft hyphens": lambda texts: [text.replace("e", "e\u00ad") for text in texts],
    "line breaks": lambda texts: [text.replace(" ", "\r\n", 3) for text in texts],
    "no full stop": lambda texts: [text.rstrip(".") for text in texts],
    "two joined": pairs,
    "all joined": lambda texts: [" ".join(texts)],
    "with nulls and blanks": lambda texts: [*texts, "", " "],
}
HALF = [*LONG[:5], *OTHER[:5]]
FEWER: dict[str, Sequence[str]] = {
    "half of the texts": HALF,
    "a sentence of each text": [f"{other} {text}" for other, text in zip(OTHER, LONG, strict=False)],
    "three texts of forty": [*LONG[:3], *(f"{text} {place}" for place in range(3) for text in OTHER)],
    "their beginnings": [" ".join(text.split()[:10]) for text in LONG],
    "seven words of each": [" ".join(text.split()[:7]) for text in LONG],
    "their ends": [" ".join(text.split()[-9:]) for text in LONG],
    "short ones with long ones": [*SHORT, *OTHER[:6]],
}
WITHOUT: dict[str, Sequence[str]] = {
    "other texts about the same": OTHER,
    "one text of it": [*OTHER, LONG[0]],
    "two texts, one of it": ["She walks the old dog too.", SHORT[3], "The key does not turn."],
    "two texts of it": [*OTHER, LONG[0], LONG[1]],
    "one that quotes all of it": [*OTHER, " ".join(LONG)],
    "one that quotes, among others with a formula of it": [
        " ".join(LONG),
        *(f"She walks the old cat, the {n} of ours, and nobody else" for n in "abcdefgh"),
    ],
    "two that quote half of it each": [" ".join(LONG[:5]), *OTHER, " ".join(LONG[5:])],
    "three words of each": [" ".join(text.split()[:3]) for text in LONG],
    "their words in another order": [" ".join(reversed(text.split())) for text in LONG],
    "every second word": [" ".join(text.split()[::2]) for text in LONG],
    "one footer under each": [f"{text} {LONG[4]}" for text in OTHER],
    "formulas": ["Thank you.", "Good morning!", "Yes, please.", "No.", "Bye"] * 5,
    "three words of short ones": [" ".join(text.split()[:3]) for text in SHORT],
    "a short one in three": [text for three in zip(OTHER, OTHER[4:], SHORT[:4], strict=False) for text in three],
    "nothing": ["", " ", "?!"],
    "one word each": [text.split()[1] for text in LONG],
}


def store_of(texts: Sequence[str]) -> cv.Store:
    return cv.Store.from_texts(pa.array(texts, pa.large_string()), small_store().space)


def strings(texts: Sequence[str | None]) -> pa.Array:
    return pa.array(texts, pa.large_string())


@pytest.mark.parametrize("published", [LONG, SHORT], ids=["long", "short"])
def test_texts_that_stand_in_the_store_are_found_in_each_form(published: list[str]) -> None:
    """As the store has them or the input: a store may have been cut and written otherwise than the input is."""
    store = store_of([*published, *OTHER[:2]])
    for name, written in FORMS.items():
        with refused("wrong-setting", "accept_overlap"):
            refuse_overlap(store, strings(written(published)))
            pytest.fail(f"not found: {name}")
        if len(made := written(published)) > 1:
            with refused("wrong-setting"):
                refuse_overlap(store_of(made), strings([*published, None]))
                pytest.fail(f"not found in a store: {name}")


@pytest.mark.parametrize("name", FEWER)
def test_some_of_the_texts_are_enough(name: str) -> None:
    """A store that was made of a part of the input is refused, too."""
    with refused("wrong-setting"):
        refuse_overlap(store_of([*LONG, *SHORT]), strings(FEWER[name]))


@pytest.mark.parametrize("name", WITHOUT)
def test_texts_that_are_merely_alike_are_not_refused(name: str) -> None:
    refuse_overlap(store_of([*LONG, *SHORT]), strings(WITHOUT[name]))


def test_each_call_looks_and_says_what_was_accepted() -> None:
    """Whatever was asked before: a preview of other rows, another release. Errors quote no text."""
    store = store_of(LONG)
    release = cv.PassageRelease(PassageExchange(store), 6.0, key=cv.Key(TEST_KEY))
    kernel = release.kernel()
    assert kernel.apply(Documents(strings(OTHER), list(range(len(OTHER)))))[1].documents == len(OTHER)
    own = Documents(strings(LONG).cast(pa.string_view()), list(range(len(LONG))))
    for call in (lambda: kernel.apply(own), lambda: cv.privatize(LONG, release, cv.RowNumbers("own"))):
        with refused("wrong-setting", "accept_overlap") as caught:
            call()
        assert "boiler" not in str(caught.value)
    accepting = dataclasses.replace(release, accept_overlap=True)
    assert len(accepting.kernel().apply(own)[0]) == len(cv.privatize(LONG, accepting, cv.RowNumbers("own")))
    assert accepting.digest == release.digest
    denials = ("made without the private text", "was public before", "No line of this was written")
    for made, holds in ((release, True), (accepting, False)):
        said = f"{made.statement()} {made.in_brief()} {made}"
        assert [denial in said for denial in denials] == [holds] * len(denials)
        assert ("they may be released word for word" in said) is not holds

"""Releases of HTML: only text is drawn for, and nothing of attributes or scripts comes through."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import corpusveil as cv
from corpusveil.choices import Markup
from corpusveil.transforms.release.fit import doubts
from tests.calls import refused
from tests.kernel.test_kernel import WORDS, release, run

SURE = cv.Budget(400.0)
"""An epsilon at which words do not change, so that texts can be read."""
A, B, C = WORDS[:3]
CANARY = "qzvxkwj"
IN_THE_CLEAR = dict.fromkeys(("unknown_words", "numbers", "contacts", "other"), "keep")
HTML = (
    f'<P class="{CANARY}">{A},<br/>{B} &amp; {C}</p>\n<!-- {CANARY} --><a href="https://{CANARY}.example">{A}</a> '
    f"<script>{CANARY}</script><style>{CANARY}</style><{CANARY} {CANARY}>{B} &lt;i&gt; {C}<br><b>{A}</b>."
)


def made(text: str, markup: Markup, budget: cv.Budget = SURE, **policy: Any) -> str:
    (out,) = run(release(policy=cv.TextPolicy(markup=markup, **policy), budget=budget).kernel(), [text])
    assert out is not None
    return out


def test_words_reads_tags_as_text_as_it_always_did() -> None:
    """The default; its digest has no word of markup, so earlier releases keep theirs."""
    assert cv.TextPolicy() == cv.TextPolicy(markup="words")
    assert "markup" not in cv.TextPolicy().as_dict()
    assert made(f"<b>{A}", "words", unknown_words="keep") == f"<b>{A}"
    digests = {release(policy=cv.TextPolicy(markup=one)).digest for one in ("words", "strip")}
    assert len(digests) == 2
    with refused("wrong-value", "markup = 'keep'", "this is gone; strip"):
        cv.TextPolicy(markup="keep")  # type: ignore[arg-type]
    with refused("wrong-value", "markup"):
        cv.TextPolicy(markup="html")  # type: ignore[arg-type]


def test_strip_releases_the_text() -> None:
    """Nothing of attributes, comments, scripts, styles and unknown tags; the control shows what would be seen."""
    assert made(HTML, "strip", **IN_THE_CLEAR) == f"{A}, {B} & {C} {A} {B} <i> {C} {A}."
    assert made(f"<p>{A}<br>{B}</p> {C}", "strip", layout="keep") == f"\n{A}\n{B}\n {C}"
    assert CANARY in made(HTML, "words", **IN_THE_CLEAR)
    assert CANARY not in made(HTML, "strip", **IN_THE_CLEAR, layout="keep")


@pytest.mark.parametrize("allocation", ["uniform", "word-share"])
def test_a_budget_is_for_the_words_of_the_text(allocation: Any) -> None:
    """Names of tags are not counted: a document spends what its plain text spends, and each word has its share."""
    budget = cv.Budget(6.0, "document", allocation)
    spent, html = [], f"<p>{A} <i>{B}</i><br>zz {C}</p>"
    cases: list[tuple[Markup, str]] = [("words", f"{A} {B} zz {C}"), ("strip", html), ("words", html)]
    for markup, text in cases:
        kernel = release(budget=budget, policy=cv.TextPolicy(markup=markup)).kernel()
        _, found = kernel.account(pa.array([text]), [0], "text", bytes(32))
        spent.append(np.concatenate([np.atleast_1d(np.asarray(one, float)) for one in (found.total, found.ldp)]))
    np.testing.assert_array_equal(spent[0], spent[1])
    assert not np.array_equal(spent[0], spent[2])


def test_what_a_release_hardly_suits_is_said() -> None:
    """HTML, and what tells persons, in one text in ten; not in a few, nor what a setting reads."""
    space, spans = cv.demo_space(), cv.SpanPolicy(find=["names"])
    for texts, policy, found, words in (
        (["<p>a"] + ["b"] * 9, cv.TextPolicy(), None, ["HTML"]), ([], cv.TextPolicy(), None, []),
        (["<p>a"] + ["b < c > d"] * 11, cv.TextPolicy(), None, []),
        (["<p>Best,\nKevin"], cv.TextPolicy(markup="strip"), spans, []),
        (["<p>Best,\nKevin"], cv.TextPolicy(), None, ["HTML", "spans"]),
        (["call +49 170 1234567"], cv.TextPolicy(), None, ["spans"]),
        (["Hi, it broke. This is good."], cv.TextPolicy(), None, []),
    ):  # fmt: skip
        release = cv.Release(cv.RingGeometric(space), cv.Budget(1.0), policy, cv.Key.for_tests(), spans=found)
        said = doubts(release, pa.array(texts, pa.string()))
        assert len(said) == len(words), texts
        assert all(word in sentence for word, sentence in zip(words, said, strict=True)), texts
        with warnings.catch_warnings(record=True, action="always") as warned:
            cv.privatize(texts, release, ids=range(len(texts)))
        assert [str(warning.message) for warning in warned] == said

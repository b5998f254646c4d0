"""Releases of HTML and in other languages than English: what is read as text, what comes through, and what is said."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import corpusveil as cv
from corpusveil.choices import Markup
from corpusveil.storage.documents import Documents
from corpusveil.text import languages
from tests import spoken
from tests.calls import refused
from tests.kernel.test_kernel import WORDS, release, run
from tests.spoken import KEY, PAGE, TEXTS, figures, public, release_of, space_of

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


def test_words_reads_tags_as_text() -> None:
    """The default, of which a digest says nothing."""
    assert cv.TextPolicy() == cv.TextPolicy(markup="words")
    assert "markup" not in cv.TextPolicy().as_dict()
    assert made(f"<b>{A}", "words", unknown_words="keep") == f"<b>{A}"
    digests = {release(policy=cv.TextPolicy(markup=one)).digest for one in ("words", "strip")}
    assert len(digests) == 2
    with refused("wrong-setting", "markup = 'keep'", "strip"):
        cv.TextPolicy(markup="keep")  # type: ignore[arg-type]
    with refused("wrong-setting", "markup"):
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
        _, found = kernel.account(Documents(pa.array([text]), [0]), bytes(32))
        spent.append(np.concatenate([np.atleast_1d(np.asarray(one, float)) for one in (found.tokens, found.nats)]))
    np.testing.assert_array_equal(spent[0], spent[1])
    assert not np.array_equal(spent[0], spent[2])


UNSPACED = ("zh", "ja", "th", "km")
NAMES = {
    "de": "schneider", "fr": "dubois", "tr": "yılmaz", "ru": "иванова", "ar": "خالد", "zh": "王小明", "ja": "田中",
    "th": "สมชาย", "km": "សុខា",
}  # fmt: skip


def drawn(text: str, release: cv.Release) -> str:
    return cv.privatize([text], release, ["row"])[0]


class TestEachLanguage:
    def test_an_unknown_name_is_gone_and_known_words_are_known(self) -> None:
        for language, name in NAMES.items():
            of = figures(language)
            assert name in of.before.lower(), language
            assert name not in of.after.lower(), language
            assert of.unknown <= 0.25, language
            assert of.unread == 1 if language in UNSPACED else of.unread >= of.unknown, f"{language}: the control"

    def test_the_page_has_these_figures(self) -> None:
        """``python -m tests.spoken`` writes them."""
        assert spoken.page(PAGE.read_text()) == PAGE.read_text()

    def test_nothing_is_lost_where_nothing_changes(self) -> None:
        """At an epsilon at which every known word stays, a text of known words is its own release."""
        for language in TEXTS:
            policy = cv.TextPolicy(case="lower" if language == "tr" else "restore", layout="keep", other="keep")
            release = release_of(language, policy, epsilon=1e4)
            for text in public(language):
                expected = text.replace("I", "ı").replace("İ", "i").lower() if language == "tr" else text
                assert drawn(text, release) == expected, language


def test_text_from_right_to_left_stays_whole_but_for_marks_of_direction() -> None:
    """Points, tatweel, joiners, and the order of everything, if nothing is replaced; marks unless they are kept."""
    text = "הַמַּדְפֶּסֶת \u200fבמשרד\u200e לא־עובדת, צה״ל (אתמול)! الطّابعة الـجـديـدة؟ می\u200cخواهم ۱۲"
    mechanism = cv.RingGeometric(space_of(None, [text, "a b"]))
    for other, expected in (("keep", text), ("drop", re.sub("[\u200f\u200e]", "", text))):
        policy = cv.TextPolicy(layout="keep", numbers="keep", other=other)  # type: ignore[arg-type]
        assert drawn(text, cv.Release(mechanism, cv.Budget(1e4), policy, key=KEY)) == expected


class TestReading:
    def test_a_space_without_one_takes_any(self) -> None:
        mechanism = cv.RingGeometric(space_of(None, public("de")))
        for asked, language in ((None, None), ("German", "de")):
            release = cv.Release(mechanism, cv.Budget(1.0), cv.TextPolicy(language=asked), key=KEY)
            assert release.policy.language == language, asked
            assert ("language" in release.configuration()["text"]) == (language is not None)

    def test_a_worker_with_other_dictionaries_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        kernel = release_of("zh").kernel()
        monkeypatch.setattr(languages, "version_of", lambda *_, **__: "/icu-1.0")
        with refused("other-version", "icu-1.0"):
            kernel.apply(Documents(pa.array(["我"]), [1]))

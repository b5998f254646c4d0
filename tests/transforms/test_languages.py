"""Releases in other languages than English: what changes, what does not, and what is said of texts in another one."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import corpusveil as cv
from corpusveil.text import languages
from corpusveil.transforms.release.fit import misfit
from tests import spoken
from tests.calls import refused
from tests.spoken import KEY, PAGE, TEXTS, figures, public, release_of, space_of

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


class TestRightToLeft:
    TEXT = "הַמַּדְפֶּסֶת \u200fבמשרד\u200e לא־עובדת, צה״ל (אתמול)! الطّابعة الـجـديـدة؟ می\u200cخواهم ۱۲"

    def test_text_stays_whole_but_for_marks_of_direction(self) -> None:
        """Points, tatweel, joiners, and the order of everything, if nothing is replaced; marks unless they are kept."""
        mechanism = cv.RingGeometric(space_of(None, [self.TEXT, "a b"]))
        for other, expected in (("keep", self.TEXT), ("drop", re.sub("[\u200f\u200e]", "", self.TEXT))):
            policy = cv.TextPolicy(layout="keep", numbers="keep", other=other)  # type: ignore[arg-type]
            assert drawn(self.TEXT, cv.Release(mechanism, cv.Budget(1e4), policy, KEY)) == expected


class TestReading:
    def test_a_space_without_one_takes_any_or_is_looked_at(self) -> None:
        mechanism = cv.RingGeometric(space_of(None, public("de")))
        for asked, language in ((None, None), ("German", "de"), ("detect", "de")):
            release = cv.Release(mechanism, cv.Budget(1.0), cv.TextPolicy(language=asked), KEY)
            assert release.policy.language == language, asked
            assert release.kernel().policy.reads_as_is() == (language is None)
            assert ("language" in release.configuration()["text"]) == (language is not None)

    def test_a_worker_with_other_dictionaries_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        kernel = release_of("zh").kernel()
        monkeypatch.setattr(languages, "version_of", lambda *_, **__: "/icu-1.0")
        with refused("other-version", "icu-1.0"):
            kernel.privatize(pa.array(["我"]), [1], "text")


class TestMisfit:
    """On the English demo space."""

    ENGLISH = ["the printer in the office does not work since yesterday, please help me with the new one."] * 20
    GERMAN = public("de") * 3

    @pytest.fixture
    def release(self) -> cv.Release:
        return cv.Release(cv.RingGeometric(cv.demo_space()), cv.Budget(1.0), key=KEY)

    def test_texts_in_another_language_are_said_before_the_run(self, release: cv.Release, tmp_path: Path) -> None:
        """In frames and files; it quotes nothing, and names no language of the texts."""
        (tmp_path / "texts.txt").write_text("\n".join(self.GERMAN))
        ids, source, output = list(range(len(self.GERMAN))), str(tmp_path / "texts.txt"), str(tmp_path / "out")
        calls: tuple[Callable[[], object], ...] = (
            lambda: cv.privatize(self.GERMAN, release, ids),
            lambda: cv.privatize_table(pa.table({"text": self.GERMAN}), release, ids=ids),
            lambda: cv.privatize_corpus(source, output, release),
        )
        for call in calls:
            with pytest.warns(UserWarning, match="another language.*English") as caught:
                call()
            assert not re.search(r"\d|German|Drucker", str(caught[0].message))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            cv.privatize(self.ENGLISH, release, list(range(20)))

    def test_without_a_detector_unknown_words_say_it(
        self, release: cv.Release, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        languages._identifier.cache_clear()
        monkeypatch.setitem(sys.modules, "py3langid.langid", None)
        sentence = misfit(release, pa.array(self.GERMAN)) or ""
        assert "not in the space" in sentence
        assert misfit(release, pa.array(self.ENGLISH)) is None

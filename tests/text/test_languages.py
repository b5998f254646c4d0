"""How texts of a language are read, and where sentences end: a rule each, beside where it does not apply."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusveil.text import languages
from corpusveil.text.languages import code_of, function_words, read, version_of, written
from corpusveil.text.sentences import sentence_ends
from corpusveil.text.tokens import Tokenizer, Tokens
from tests.calls import refused, texts_of
from tests.spoken import TEXTS, private, public


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Forget what packages said, since some tests take them away."""
    yield
    for cached in (languages._icu, function_words):
        cached.cache_clear()


def tokens(text: str, language: str | None = None, words: tuple[str, ...] = ()) -> list[str]:
    return texts_of(Tokenizer.of_words(words, language=language).tokenize([text]))


class TestNames:
    def test_a_code_or_an_english_name(self) -> None:
        assert [code_of(name) for name in ("de", "German", "CHINESE")] == ["de", "de", "zh"]

    def test_others_are_refused(self) -> None:
        for name in ("Deutsch", "", "xx", "de_DE", "detect"):
            with refused("wrong-setting", "language", "German"):
                code_of(name)


class TestWords:
    def test_are_read_as_before_without_rules(self) -> None:
        """A language without rules of its own changes no release."""
        for code in ("de", "ru", "ar"):
            data, offsets = (
                Tokenizer.of_words([], language=language).tokenize(public(code)) for language in (None, code)
            )
            assert np.array_equal(data.starts, offsets.starts), code
            assert read(texts := pa.array(public(code)), code) is texts, code

    def test_an_elided_article_is_a_word(self) -> None:
        """So that the word after it is one of the space."""
        expected = ["L", "'", "homme", "d", "’", "aujourd", "'", "hui"]
        assert tokens("L'homme d’aujourd'hui", "fr") == expected
        assert tokens("dell'arte", "it") == ["dell", "'", "arte"]
        assert tokens("L'homme d’aujourd'hui") == ["L'homme", "d’aujourd'hui"], "the control"

    def test_a_dotless_i_is_the_small_letter_of_i(self) -> None:
        words = ("ışık", "ısparta", "istanbul")
        found = Tokenizer.of_words(words, language="tr").tokenize(["IŞIK Isparta ISPARTA İstanbul İSTANBUL"])
        assert found.ids.tolist() == [0, 1, 1, 2, 2]
        assert Tokenizer.of_words(words).tokenize(["ISPARTA İSTANBUL"]).ids.tolist() == [-1, -1], "the control"

    def test_are_separated_without_blanks(self) -> None:
        """Scripts without blanks have words, too."""
        assert tokens("第3章，iPhone手机很好。", "zh") == ["第", "3", "章", "，", "iPhone", "手机", "很好", "。"]
        assert tokens("第3章，iPhone手机很好。") == ["第3章", "，", "iPhone手机很好", "。"], "the control"
        for language in ("zh", "ja", "th", "km"):
            assert len(tokens(private(language), language)) > 2 * len(tokens(private(language))), language

    def test_what_is_put_between_them_is_taken_out(self) -> None:
        """White space of the text stays where it is kept, and goes where it is not."""
        mixed = ["第3章 iPhone手机\n很好。", "ไป 3วัน ครับ", "", None, "a\vb 東京's", "𠮷野家 ｶﾅ"]
        for language in ("zh", "ja", "th", "km"):
            for texts in (mixed, TEXTS[language]):
                separated = read(pa.array(texts), language)
                expected = [None if text is None else text.replace("\v", " ") for text in texts]
                assert written(separated, language, "keep").to_pylist() == expected, language
        assert written(pa.array(["我 来 到 a b 北"]), "zh", "normalize").to_pylist() == ["我来到 a b 北"]


def test_an_abbreviation_ends_no_sentence() -> None:
    text = "Er wohnt in der Str. Nr. Acht bzw. Neun. Morgen zieht er um."
    lines = [sentences(Tokenizer.of_words([], language=language).tokenize([text]), 0) for language in ("de", None)]
    assert [len(some) for some in lines] == [2, 5]


class TestFunctionWords:
    def test_are_those_of_the_language(self) -> None:
        assert {"und", "nicht", "über"} <= function_words("de")
        assert {"l", "qu", "aujourd", "est"} <= function_words("fr"), "read as the tokenizer reads them"
        assert function_words(None) == function_words("en")
        assert "und" not in function_words(None)

    def test_a_language_without_a_list_is_said(self) -> None:
        assert not function_words("km")
        with refused("wrong-setting", "km", "stop_words"):
            version_of("km", stop_words=True)


class TestPackages:
    def test_what_is_missing_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """With what installs it, and no text is read otherwise instead."""
        for package, call in (
            ("icu4py", lambda: tokens("我来到", "zh")),
            ("stopwordsiso", lambda: function_words("de")),
        ):
            for cached in (languages._icu, function_words):
                cached.cache_clear()
            monkeypatch.setitem(sys.modules, package, None)
            with refused("missing-package", "pip install 'corpusveil[languages]'"):
                call()

    def test_their_versions_are_part_of_how_texts_are_read(self) -> None:
        assert version_of("ja").startswith("/icu-")
        assert version_of("de", stop_words=True) not in ("", version_of("fr", stop_words=True))


TOKENIZER = Tokenizer.of_words(["word"])

ENDS = {
    "One. Two! Three? Four": ["One.", "Two!", "Three?", "Four"],
    'He said "Stop." Then he left.': ['He said "Stop."', "Then he left."],
    "Mr. Smith met Dr. Jones vs. J. Doe. Fine.": ["Mr. Smith met Dr. Jones vs. J. Doe.", "Fine."],
    "It was I. Then you.": ["It was I.", "Then you."],
    "Pi is 3.14. Really... yes. See e.g. Figure 2.": ["Pi is 3.14.", "Really... yes.", "See e.g. Figure 2."],
    "What?! No (never.) Well": ["What?!", "No (never.)", "Well"],
    "a line\nanother\r\nthird": ["a line", "another", "third"],
    "第一句。第二句！「好。」完": ["第一句。", "第二句！", "「好。」", "完"],
    "version 2.0 is at www.x.org. Get it.": ["version 2.0 is at www.x.org.", "Get it."],
    "": [],
    "   \n ": [],
}


def sentences(tokens: Tokens, document: int) -> list[str]:
    """Return the sentences of a document, without surrounding white space."""
    ends = sentence_ends(tokens)
    result, start = [], None
    for t in range(int(tokens.offsets[document]), int(tokens.offsets[document + 1])):
        start = int(tokens.starts[t]) if start is None else start
        if ends[t]:
            result.append(tokens.data[start : tokens.ends[t]].tobytes().decode("utf-8", "replace"))
            start = None
    return result


@pytest.mark.parametrize(("text", "expected"), ENDS.items())
def test_sentences_end_where_the_rule_says(text: str, expected: list[str]) -> None:
    assert sentences(TOKENIZER.tokenize([text]), 0) == expected


@given(st.lists(st.text(st.sampled_from(" \n.!?…。aAbI1()'\"’😀\x00é"), max_size=40), max_size=5))
def test_every_token_lies_in_one_sentence_and_a_document_ends_with_one(texts: list[str]) -> None:
    tokens = TOKENIZER.tokenize(texts)
    ends = sentence_ends(tokens)
    assert ends.shape == (len(tokens),)
    assert ends[tokens.offsets[1:][np.diff(tokens.offsets) > 0] - 1].all()
    for number, text in enumerate(texts):
        joined = "".join("".join(sentence.split()) for sentence in sentences(tokens, number))
        kept = texts_of(tokens, number)
        assert joined == "".join("".join(token.split()) for token in kept)
        assert len(joined) <= len(text)

"""Sentence ends: the documented rule, on real-looking text, and nothing lost on any text."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusveil.text.sentences import sentence_ends
from corpusveil.text.tokens import Tokenizer, Tokens

TOKENIZER = Tokenizer.of_words(["word"])

CASES = {
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


@pytest.mark.parametrize(("text", "expected"), CASES.items())
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
        kept = tokens.texts(number)
        assert joined == "".join("".join(token.split()) for token in kept)
        assert len(joined) <= len(text)

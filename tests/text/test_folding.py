"""What texts are equal: composed before anything reads them, and folded with a map of positions for terms."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from corpusveil.text.folding import composed as composed_of
from corpusveil.text.folding import composed_text, folded, plain
from corpusveil.text.tokens import Tokenizer, string_buffers
from tests.calls import texts_of

ZERO = "\u00ad\u034f\u200b\u200c\u200d\u200e\u2060\ufe0f\ufeff\U000e0041"


def composed(texts: pa.Array) -> pa.Array:
    return composed_of(texts, *string_buffers(texts))


def test_every_character_that_changes_is_looked_at() -> None:
    """The quick look says of no text of two characters that it is composed already where it is not."""
    texts = ["a" + chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    expected = [composed_text(text) for text in texts]
    assert composed(pa.array(texts, pa.large_string())).to_pylist() == expected
    column = pa.array(["long " * 30 + "e\u0301", None, "", "e\u0301" + "b" * 80, "plain"])
    assert composed(column).to_pylist() == ["long " * 30 + "é", None, "", "é" + "b" * 80, "plain"]
    assert composed(column.slice(1, 2)).to_pylist() == [None, ""]


def test_a_document_that_is_no_utf8_stays_as_it_is() -> None:
    raw = pa.array([b"e\xcc\x81\xff", b"ok"], pa.large_binary()).view(pa.large_string())
    assert composed(raw).view(pa.large_binary()).to_pylist() == [b"e\xcc\x81\xff", b"ok"]


def test_invisible_characters_make_no_other_word() -> None:
    """A name that is written with one is found and replaced as it is without."""
    tokenizer = Tokenizer.of_words(["sarah", "zoë"])
    for mark in ZERO:
        written = (f"Sa{mark}rah", f"{mark}Sarah", f"Sarah{mark}", f"Sarah {mark}{mark}", f"Zoe{mark}\u0308")
        for text in (*written, "Zoe\u0308"):
            assert (tokenizer.tokenize([text]).ids >= 0).tolist() == [True], ascii(text)
        assert texts_of(tokenizer.tokenize([f"ada@{mark}example.org"])) == ["ada@example.org"], ascii(mark)


def test_marks_stay_where_they_mean_something() -> None:
    """Emoji, and scripts that need joiners, are read as they were written."""
    for text in ("👩\u200d👧", "❤\ufe0f", "می\u200cخواهم", "\u200fבמשרד\u200e לא", "क्\u200dष", "កម្ពុជា\u200bភាសា"):
        assert composed_text(text) == text, ascii(text)


@given(st.text(st.sampled_from("aßẞÉİıi\u0307 ﬁ\n\r\t>|'’-‑_\xa0\u202f"), max_size=20))
def test_each_character_of_folded_text_has_its_place(text: str) -> None:
    """Places ascend from the first character to behind the last, and a part of the text folds to its part."""
    same, places = folded(text)
    assert len(places) == len(same) + 1
    assert [*places] == sorted(places)
    assert places[-1] == len(text)
    assert len(plain(text)) == len(text)
    for at in range(len(same)):
        assert same[at] in folded(text[max(0, places[at] - 1) :])[0][: len(same) + 1]

"""The tokenizer loses nothing, follows its documented rules in linear time, and finds exactly the vocabulary."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from corpusveil.text.classes import CLASS_NAMES, CONTACT, NUMBER, OTHER, PUNCTUATION, UNKNOWN, WORD
from corpusveil.text.folding import composed_text
from corpusveil.text.output_words import Wording, concatenate
from corpusveil.text.tokens import Tokenizer, Tokens
from tests.calls import texts_of

VOCABULARY = ["the", "don't", "café", "ὀδός", "river", "straße", "中文", "हिन्दी", "10", "a"]
TOKENIZER = Tokenizer.of_words(VOCABULARY)

TRICKY = (
    "aAéÉßİΣσς中हि्01٣.,'’-@:/w_%+~\"<>|\\^`!?;*)[]{}\u0301\u200c\u200d😀👍🏽\x00\x1c\x1f\x7f\x85\xa0\u2028\ufffd \n\t\r"
)
MIXED = st.one_of(st.text(), st.text(st.sampled_from(TRICKY)), st.text(st.sampled_from("a.@:/w' ’1-_😀")))


def is_blank(character: str) -> bool:
    return character.isspace() and ord(character) not in range(0x1C, 0x20)


def assert_lossless(texts: list[str], tokens: Tokens) -> None:
    """Check, document by document, that tokens are whole characters in order and that only blanks lie between."""
    assert tokens.offsets[0] == 0
    assert tokens.offsets[-1] == len(tokens)
    assert tokens.offsets.size == len(texts) + 1
    assert ((tokens.ids == UNKNOWN) | (tokens.classes == WORD)).all()
    assert tokens.ids.max(initial=UNKNOWN) < len(VOCABULARY)
    for document, text in enumerate(texts):
        raw = (text := composed_text(text)).encode()
        base = int(tokens.documents[document])
        assert tokens.data[base : tokens.documents[document + 1]].tobytes() == raw
        edge = 0
        rebuilt = []
        for token in range(tokens.offsets[document], tokens.offsets[document + 1]):
            start, end = int(tokens.starts[token]) - base, int(tokens.ends[token]) - base
            assert edge <= start < end <= len(raw)
            gap, body = raw[edge:start].decode(), raw[start:end].decode()
            assert all(map(is_blank, gap))
            assert not any(map(is_blank, body))
            assert tokens.text(token) == body
            rebuilt += [gap, body]
            edge = end
        rest = raw[edge:].decode()
        assert all(map(is_blank, rest))
        assert "".join([*rebuilt, rest]) == text


@given(st.lists(MIXED, max_size=4))
@example(["", " ", "a\x00b", "\x1c", "\ud7ff\ue000", "a\u0301'\u0301b", "@", "@a", "a@", "://", "www.", "w.@_"])
@settings(max_examples=400)
def test_every_character_is_in_one_token_or_between_two(texts: list[str]) -> None:
    """On any Unicode: spans ascend, lie on character boundaries, and joining them gives the composed input back."""
    assert_lossless(texts, TOKENIZER.tokenize(texts))


@given(st.lists(MIXED, max_size=5))
@settings(max_examples=100)
def test_a_document_is_tokenised_alike_in_any_batch(texts: list[str]) -> None:
    """What stands before and behind a document in the buffer changes none of its tokens."""
    whole = TOKENIZER.tokenize(texts)
    for document, text in enumerate(texts):
        alone = TOKENIZER.tokenize([text])
        part = slice(whole.offsets[document], whole.offsets[document + 1])
        assert np.array_equal(whole.classes[part], alone.classes)
        assert np.array_equal(whole.ids[part], alone.ids)
        assert np.array_equal(whole.starts[part] - whole.documents[document], alone.starts)
        assert np.array_equal(whole.ends[part] - whole.documents[document], alone.ends)


PIECES = (b"\xff", b"\xc3", b"\xe2\x80", b"\xe2\x80\x99", b"'", b"\xf0\x9f\x98", b"\xed\xa0\x80", b"\xc0\x80", b"\x80")
RAW = st.one_of(
    st.binary(max_size=200),
    st.lists(st.sampled_from([*PIECES, b"a", b"@", b"://", b"www.", b" ", b"1", b"."])).map(b"".join),
)


@given(RAW, st.integers(0, 200))
@settings(max_examples=100)
def test_bytes_that_are_not_utf8_neither_crash_nor_get_lost(raw: bytes, cut: int) -> None:
    """Malformed bytes belong to tokens of class other (or to an address); every span is sound and nothing is lost."""
    cut = min(cut, len(raw))
    data = np.frombuffer(bytearray(raw), dtype=np.uint8)
    tokens = TOKENIZER.tokens(data, np.array([0, cut, len(raw)], dtype=np.int64))
    edges = [0]
    for token in range(len(tokens)):
        start, end = int(tokens.starts[token]), int(tokens.ends[token])
        assert edges[-1] <= start < end <= len(raw)
        assert not start < cut < end
        for at in (*range(edges[-1], start),):
            assert raw[at] <= 0x20 or raw[at] >= 0x80
        edges.append(end)
    visible = [at for at in range(len(raw)) if 0x21 <= raw[at] < 0x7F]
    inside = np.zeros(len(raw) + 1, dtype=bool)
    for start, end in zip(tokens.starts, tokens.ends, strict=True):
        inside[start:end] = True
    assert inside[visible].all()
    assert inside[[at for at in range(len(raw)) if raw[at] in {0xC0, 0xC1, 0xFF}]].all()


HOSTILE = [
    "@", "a.", "a@a@", "://", "a://", "'", "a'", "’", "a’", "\u0301", "a\u0301", ".@b", "._-@", "a.b@", "@_-", "@a-",
    "www.", "www.!", "www", "a:/", "1.", "1,1", "1.a", "-", "_@", "%+", "😀", "😀\u200d", "\x00", "Σ", "aΣ", "Σ1", "@-",
    "a://.!", "中", "İ", "\u200c", "a\u2028", " ", "\u3000", "w", "a@", "@.", "://@",
]  # fmt: skip


@pytest.mark.parametrize("unit", HOSTILE)
def test_hostile_repetitions_take_linear_time(unit: str) -> None:
    """A megabyte of one pattern, alone and before an ``@x``: quadratic work would run into the time limit."""
    count = 1_000_000 // len(unit.encode())
    for text in (unit * count, unit * (count // 4) + "@x", "a" + unit * (count // 4) + " b"):
        tokens = TOKENIZER.tokenize([text])
        assert (tokens.starts[1:] >= tokens.ends[:-1]).all()
        assert (tokens.ends > tokens.starts).all()


# Classes. w word, n number, p punctuation, c contact, o other.

CASES = {
    "": "",
    " \t\r\n\u00a0\u2003\u3000\u2028\x85": "",
    "hello": "hello/w",
    "Hello World": "Hello/w World/w",
    "don't I’m o'clock rock'n'roll": "don't/w I’m/w o'clock/w rock'n'roll/w",
    "'tis dogs' 'quoted'": "'/p tis/w dogs/w '/p '/p quoted/w '/p",
    "a''b a'’b": "a/w '/p '/p b/w a/w '/p ’/p b/w",
    "x1'y": "x1/w '/p y/w",
    "l'été e\u0301'a": "l'été/w é'a/w",
    "well-known e-mail": "well/w -/p known/w e/w -/p mail/w",
    "snake_case": "snake/w _/p case/w",
    "B2B mp3 x86": "B2B/w mp3/w x86/w",
    "3 3.14 1,000,000 3rd 10km 1.": "3/n 3.14/n 1,000,000/n 3rd/n 10km/n 1/n ./p",
    "1..2 1.a 1, 2 .5": "1/n ./p ./p 2/n 1/n ./p a/w 1/n ,/p 2/n ./p 5/n",
    "1a.2": "1a/n ./p 2/n",
    "12:30 50% $5 -3": "12/n :/p 30/n 50/n %/p $/p 5/n -/p 3/n",
    "٣٫٥ १२३ Ⅷ ½ ²": "٣/n ٫/p ٥/n १२३/n Ⅷ/n ½/n ²/n",
    "(a) [b] {c} “d” «e» f… g—h": "(/p a/w )/p [/p b/w ]/p {/p c/w }/p “/p d/w ”/p «/p e/w »/p f/w …/p g/w —/p h/w",
    "a+b=c <d> ~e |f| ^g `h` $": "a/w +/p b/w =/p c/w </p d/w >/p ~/p e/w |/p f/w |/p ^/p g/w `/p h/w `/p $/p",
    "http://x.org https://a.b/c?d=e#f.": "http://x.org/c https://a.b/c?d=e#f/c ./p",
    "(see ftp://h/a_b_,)": "(/p see/w ftp://h/a_b/c _/p ,/p )/p",
    "<http://x.org>": "</p http://x.org/c >/p",
    "http://пример.рф/é\u3000x": "http://пример.рф/é/c x/w",
    "http:// www. www": "http/w :/p //p //p www/w ./p www/w",
    "www.x.org WWW.X.ORG, wwww.x": "www.x.org/c WWW.X.ORG/c ,/p wwww/w ./p x/w",
    "mailto:a@b.org": "mailto/w :/p a@b.org/c",
    "me@x.org, first.last+tag%1@sub.x-y.org.": "me@x.org/c ,/p first.last+tag%1@sub.x-y.org/c ./p",
    ".a@b _a@b": "./p a@b/c _/p a@b/c",
    "@handle @under_score @1 @_x @-x @": "@handle/c @under_score/c @1/c @_x/c @/p -/p x/w @/p",
    "a @ b a@ b": "a/w @/p b/w a/w @/p b/w",
    "a@b@c": "a@b@c/c",
    "été@école.fr": "été@école.fr/c",
    "😀 👍🏽 ❤️ 🇨🇭": "😀/o 👍🏽/o ❤️/o 🇨🇭/o",
    "hi😀😀there": "hi/w 😀😀/o there/w",
    "👩\u200d👧": "👩\u200d👧/o",
    "© ™ € ° ©®": "©/o ™/o €/p °/o ©®/o",
    "a\x00b \x07\x08 \x1c \x7f": "a/w \x00/o b/w \x07\x08/o \x1c/o \x7f/o",
    "中文 日本語テキスト 한국어": "中文/w 日本語テキスト/w 한국어/w",
    "句子。好": "句子/w 。/p 好/w",
    "हिन्दी में क्\u200dष": "हिन्दी/w में/w क्\u200dष/w",
    "שָׁלוֹם العَرَبِيَّة": "שָׁלוֹם/w العَرَبِيَّة/w",
    "\u0301a \u200da": "\u0301/o a/w a/w",
    "\ufffd \ue000 \U000f0000 \U0010ffff": "\ufffd/o \ue000/o \U000f0000/o \U0010ffff/o",
    "\ufeffa soft\u00adhyphen zero\u200bwidth": "a/w softhyphen/w zerowidth/w",
}
LETTERS = {"w": WORD, "n": NUMBER, "p": PUNCTUATION, "c": CONTACT, "o": OTHER}


@pytest.mark.parametrize(("text", "expected"), CASES.items())
def test_classes_follow_the_documented_rules(text: str, expected: str) -> None:
    """A table of every class and its edges."""
    tokens = TOKENIZER.tokenize([text])
    wanted = [piece.rsplit("/", 1) for piece in expected.split(" ") if piece]
    assert texts_of(tokens) == [word for word, _ in wanted]
    assert [CLASS_NAMES[c] for c in tokens.classes] == [CLASS_NAMES[LETTERS[letter]] for _, letter in wanted]


def test_words_of_the_vocabulary_are_found_in_any_case_and_with_either_apostrophe() -> None:
    tokens = TOKENIZER.tokenize(["THE Don’t CAFÉ ὈΔΌΣ STRAßE 中文 हिन्दी a theme 10 www.the.org @the the://x"])
    found = [VOCABULARY[id] if id >= 0 else None for id in tokens.ids]
    assert found == ["the", "don't", "café", "ὀδός", "straße", "中文", "हिन्दी", "a", *[None] * 5]


SPELLINGS = st.text(st.sampled_from("abcdeéßσ中"), min_size=1, max_size=4)


def found(tokenizer: Tokenizer, words: list[str]) -> list[int]:
    tokens = tokenizer.tokenize(words)
    assert (np.diff(tokens.offsets) == 1).all()
    return tokens.ids.tolist()


@given(st.lists(SPELLINGS, unique=True, max_size=60), st.lists(SPELLINGS, max_size=30))
@settings(max_examples=150)
def test_exactly_the_vocabulary_is_found(vocabulary: list[str], others: list[str]) -> None:
    """Words and only they, whatever shares a beginning, an end or a length with them."""
    vocabulary = list({word.lower(): None for word in vocabulary})
    tokenizer = Tokenizer.of_words(vocabulary)
    assert found(tokenizer, vocabulary) == list(range(len(vocabulary)))
    asked = [*others, *(word + "a" for word in vocabulary), *(word[:-1] or "q" for word in vocabulary)]
    index = {word: id for id, word in enumerate(vocabulary)}
    assert found(tokenizer, asked) == [index.get(word.lower(), UNKNOWN) for word in asked]


@pytest.mark.parametrize(
    ("vocabulary", "id"), [(["US", "us"], 1), (["US", "Us"], 0), (["ÉTÉ", "été"], 1), (["don’t", "don't"], 1)]
)
def test_of_words_that_differ_in_case_the_lower_case_form_wins_else_the_first(vocabulary: list[str], id: int) -> None:
    """Every way to write such a word has the same id: which capitals it had is not looked at."""
    tokenizer = Tokenizer.of_words(vocabulary)
    for word in vocabulary:
        assert set(found(tokenizer, [word, word.upper(), word.lower(), word.title().replace("'T", "'t")])) == {id}


def test_case_forms_are_those_of_python() -> None:
    """Plain, capitalized, all capitals: each word three times, and room for the longest."""
    words, offsets = concatenate([word.encode() for word in ["river", "straße", "ŉ", "état"]])
    wording = Wording.build(words, offsets, capitals=True)
    raw = wording.words.tobytes()
    forms = [raw[a:b].decode() for a, b in itertools.pairwise(wording.offsets)]
    assert forms == [
        "river", "straße", "ŉ", "état", "River", "Straße", "ʼN", "État", "RIVER", "STRASSE", "ʼN", "ÉTAT",
    ]  # fmt: skip
    assert wording.longest.tolist() == [5, 7, 3, 5]

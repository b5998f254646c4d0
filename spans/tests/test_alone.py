"""What is found in a text depends on that text alone: not on the texts that happen to follow in its batch."""

from __future__ import annotations

import functools
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpusveil.recognizers.registry import named
from corpusveil.spaces import load_space
from corpusveil.text.tokens import Tokenizer, string_buffers

ENDS = (
    "see example.com", "ann%40example.com", "write to ann@example", "call 020 7946 0958", "+44 20 7946", "2001:db8::",
    "Dear Mr", "my name is", "Sarah", "sarah lee", "(at", "anna (at) example [dot]", "10.0.0", "IBAN GB29", "born 1",
    "at www.example", "example.", "x@", "ann", "123-45-", "DE89 3704 0044", "Hi", "Dr.", "O'", "Anne-",
)  # fmt: skip
BEGINNINGS = (
    "com", "org is", "Hello", "1234567", " 5", "@example.com", "Lee was here", "dot] com", "::1", "t", "uk", ".com", "",
)  # fmt: skip
TEXT = st.builds(lambda first, end: f"{first} {end}", st.sampled_from(BEGINNINGS), st.sampled_from(ENDS))


@functools.cache
def made(name: str) -> tuple[Any, Tokenizer]:
    space = load_space("en")
    return named(name).make(space), Tokenizer.of_words(space.vocabulary.words)


@pytest.mark.parametrize("name", ["rules", "names"])
@settings(max_examples=50, deadline=None)
@given(texts=st.lists(TEXT, min_size=2, max_size=6))
def test_a_text_is_read_alone_as_in_any_batch(name: str, texts: list[str]) -> None:
    recognizer, tokenizer = made(name)

    def found(some: list[str]) -> list[list[tuple[int, int, str]]]:
        spans = recognizer(tokenizer.tokens(*string_buffers(pa.array(some, pa.large_string()))))
        starts = [0]
        for text in some:
            starts.append(starts[-1] + len(text))
        places: list[list[tuple[int, int, str]]] = [[] for _ in some]
        for start, end, kind in zip(spans.starts.tolist(), spans.ends.tolist(), spans.kinds.tolist(), strict=True):
            at = max(number for number in range(len(some)) if starts[number] <= start)
            assert end <= starts[at + 1], "a span that reaches into the next text"
            places[at].append((start - starts[at], end - starts[at], spans.names[kind]))
        return places

    assert found(texts) == [found([text])[0] for text in texts]

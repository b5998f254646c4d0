"""Texts become the same JSON strings as orjson writes."""

from __future__ import annotations

import orjson
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from corpusveil.storage.forms.jsonlines import quoted

TEXTS = st.lists(st.none() | st.text() | st.text(st.sampled_from('ab"\\\n\x00\x1f\x7fé'), max_size=60), max_size=9)


@given(TEXTS, st.integers(0, 3))
@settings(max_examples=300)
def test_strings_are_those_of_orjson(texts: list[str | None], skipped: int) -> None:
    """Any text, at any place in its column; a null is ``null``."""
    whole = quoted(pa.array(texts, pa.large_string())[skipped:], "<", ">\n")
    wanted = [b"<" + orjson.dumps(text) + b">\n" for text in texts[skipped:]]
    assert bytes(whole) == b"".join(wanted)


def test_every_byte_that_is_escaped_and_every_one_that_is_not() -> None:
    """Alone, and at each place of a text longer than what is written at once."""
    texts = [" " * place + chr(code) + " " * (20 - place) for code in range(0x100) for place in range(21)]
    whole = quoted(pa.array([*texts, *map(chr, range(0x100))], pa.large_string()), "", "\n")
    assert bytes(whole).splitlines() == [orjson.dumps(text) for text in [*texts, *map(chr, range(0x100))]]

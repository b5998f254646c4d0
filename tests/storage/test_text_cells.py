"""Texts become the same cells as the csv module writes, and the same JSON strings as orjson writes."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

import orjson
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from corpusveil.choices import Separator
from corpusveil.storage.forms.delimited import MARKS, Csv
from corpusveil.storage.forms.jsonlines import quoted
from corpusveil.storage.rows import Columns

TEXTS = st.lists(
    st.none() | st.text() | st.text(st.sampled_from('ab",;\\\n\r\t\x00\x1f\x7f =+-@é'), max_size=60), max_size=9
)


def written(rows: Sequence[Sequence[str | None]], separator: Separator) -> bytes:
    lines = []
    for row in rows:
        text = io.StringIO(newline="")
        csv.writer(text, delimiter=MARKS[separator], lineterminator="\r\n").writerow(row)
        lines.append(text.getvalue()[:-2] + "\n")
    return "".join(lines).encode()


@given(TEXTS, st.integers(0, 3), st.sampled_from([*MARKS]))
@settings(max_examples=80)
def test_cells_are_those_of_the_csv_module(texts: list[str | None], skipped: int, separator: Separator) -> None:
    """Any text, at any place in its column, alone in its row or with others."""
    column = pa.array(texts, pa.large_string())[skipped:]
    for others in range(3):
        columns = Columns(separator=separator)
        rendered = Csv("").render(column, [column] * others, columns)
        assert bytes(rendered) == written([[text] * (1 + others) for text in texts[skipped:]], separator), others


@given(TEXTS, st.integers(0, 3), st.sampled_from([1, 1000]))
@settings(max_examples=80)
def test_strings_are_those_of_orjson(texts: list[str | None], skipped: int, times: int) -> None:
    """Any text, short or long, at any place in its column; a null is ``null``."""
    texts = [text and text * times for text in texts]
    whole = quoted(pa.array(texts, pa.large_string())[skipped:], "<", ">\n")
    wanted = [b"<" + orjson.dumps(text) + b">\n" for text in texts[skipped:]]
    assert bytes(whole) == b"".join(wanted)


def test_every_byte_that_is_escaped_and_every_one_that_is_not() -> None:
    """Alone, and at each place of a text longer than what is written at once."""
    texts = [" " * place + chr(code) + " " * (20 - place) for code in range(0x100) for place in range(21)]
    whole = quoted(pa.array([*texts, *map(chr, range(0x100))], pa.large_string()), "", "\n")
    assert bytes(whole).splitlines() == [orjson.dumps(text) for text in [*texts, *map(chr, range(0x100))]]

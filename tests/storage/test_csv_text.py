"""Texts become the same cells as the csv module writes."""

from __future__ import annotations

import csv

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from corpusveil.storage.csv_text import cells

TEXTS = st.lists(st.none() | st.text() | st.text(st.sampled_from('ab",;\n\r\t =+-@é'), max_size=60), max_size=9)


class Lines(list[str]):
    def write(self, row: str) -> None:
        self.append(row[:-2])


def written(rows: list[list[str | None]], separator: str) -> list[bytes]:
    lines = Lines()
    csv.writer(lines, delimiter=separator, lineterminator="\r\n").writerows(rows)
    return [line.encode() for line in lines]


def harmless(text: str | None) -> str | None:
    return f"'{text}" if text and text[0] in "=+-@\t\r" else text


@given(TEXTS, st.integers(0, 3), st.booleans(), st.sampled_from(",;\t"))
@settings(max_examples=300)
def test_cells_are_those_of_the_csv_module(
    texts: list[str | None], skipped: int, escapes: bool, separator: str
) -> None:
    """Any text, alone in its row or with other columns, with formulas escaped or not."""
    column = pa.array(texts, pa.large_string())[skipped:]
    wanted = [harmless(text) if escapes else text for text in texts[skipped:]]
    whole, _ = cells(column, separator=separator, alone=True, escapes=escapes)
    assert bytes(whole) == b"".join(line + b"\n" for line in written([[text] for text in wanted], separator))
    whole, ends = cells(column, separator=separator, alone=False, escapes=escapes)
    each = [bytes(whole[a:b]) for a, b in zip([0, *ends], ends, strict=False)]
    assert [cell + separator.encode() + b"x" for cell in each] == written([[text, "x"] for text in wanted], separator)


def test_marks_at_every_place_of_a_long_cell() -> None:
    """Loops over many bytes at once find a mark at every position."""
    texts = [" " * place + mark + "a" * (40 - place) for mark in '",;\t\n\ré' for place in range(41)]
    for separator in ",;\t":
        whole, _ = cells(pa.array(texts, pa.large_string()), separator=separator, alone=True, escapes=False)
        assert bytes(whole) == b"".join(line + b"\n" for line in written([[text] for text in texts], separator))

"""JSON lines that are wrong or unusual, and texts in JSON and in cells, character by character."""

from __future__ import annotations

import csv
import gzip
import io
import itertools
from collections.abc import Sequence

import orjson
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from corpusveil.choices import Separator
from corpusveil.storage.formats import find
from corpusveil.storage.forms.delimited import MARKS, Csv
from corpusveil.storage.forms.jsonlines import JsonLines
from corpusveil.storage.rows import Batch, Columns
from corpusveil.storage.values import json_strings

GOOD = b'{"text": "bababa"}\n'
JSON_LINES, JSON_LINES_GZIP = find(".jsonl"), find(".jsonl.gz")


class TestUnusualInput:
    def test_gives_a_row_for_each(self) -> None:
        """Reading and counting agree on the rows of a file."""
        for data, texts in (
            (b"", []),
            (b"\n\n", []),
            (GOOD.strip(), ["bababa"]),
            (b"\n" + GOOD + b"\n  \n" + GOOD + b"\n", ["bababa"] * 2),
            (GOOD.replace(b"\n", b"\r\n") * 3, ["bababa"] * 3),
            (b'{"text": "a\\nb\\u2028c"}\n' + '{"text": "\u2028\u0085"}'.encode(), ["a\nb\u2028c", "\u2028\u0085"]),
            (b'  {"text" :\t"x"}  \n', ["x"]),
        ):
            for form, file in ((JSON_LINES, data), (JSON_LINES_GZIP, gzip.compress(data))):
                batches = form.batches(io.BytesIO(file), "x", Columns())
                assert [text for batch in batches for text in batch.texts.to_pylist()] == texts, data


TEXTS = st.lists(
    st.none() | st.text() | st.text(st.sampled_from('ab",;\\\n\r\t\x00\x1f\x7f =+-@é'), max_size=60), max_size=9
)


def written(rows: Sequence[Sequence[str | None]], separator: Separator) -> bytes:
    lines = []
    for row in rows:
        text, forced = io.StringIO(newline=""), "\r\U0010ffff"
        cells = [f"{cell}{forced}" if cell and cell.endswith("\\") else cell for cell in row]
        csv.writer(text, delimiter=MARKS[separator], lineterminator="\r\n").writerow(cells)
        lines.append(text.getvalue()[:-2].replace(forced, "") + "\n")
    return "".join(lines).encode()


def test_a_kept_number_is_written_as_it_is_read_or_its_row_is_bad() -> None:
    """Beside an id and without, and whatever the other rows are; no integer is rounded."""
    sound = {"1": "1", "1.530e0": "1.53", "-2E2": "-200.0", "18446744073709551615": "18446744073709551615",
             "-9223372036854775808": "-9223372036854775808", "1e300": "1e+300", "true": "true", "null": "null",
             '"1e400 is 18446744073709551616"': '"1e400 is 18446744073709551616"'}  # fmt: skip
    bad = {"18446744073709551616": "64 bits", "-9223372036854775809": "64 bits", "9" * 300: "64 bits",
           "1e400": "64 bits", "9" * 5000: "64 bits", "[1]": "a list or an object", '{"a": 1}': "a list or an object",
           "NaN": "not valid JSON", "01": "not valid JSON"}  # fmt: skip
    for columns in (Columns(keep=("v",)), Columns(id="id", keep=("v",))):
        for many in ({**sound, **bad}, sound, *({number: bad[number]} for number in bad)):
            lines = "".join(f'{{"id": {k}, "text": "a", "v": {value}}}\n' for k, value in enumerate(many))
            (batch,) = JsonLines("").batches(io.BytesIO(lines.encode()), "x.jsonl", columns)
            assert batch.kept[0].storage.to_pylist() == [sound[value] for value in many if value in sound]
            assert len(batch.bad) == len([value for value in many if value in bad])
            for row, why in zip(batch.bad, (bad[value] for value in many if value in bad), strict=True):
                assert why in row.why


def test_rows_read_at_once_are_those_read_one_by_one() -> None:
    """Duplicate keys, nulls, ids of any kind: the same rows and sentences, whatever stands beside them."""
    rows = (
        '{"text": "a", "id": 1, "text": "b", "v": null}', '{"text": null, "id": "", "v": {"v": 1.50}}',
        '{"text": "a", "id": 18446744073709551615, "v": "\\u00e9\\u0000"}', '{"text": "a", "id": true, "v": 1}',
        '{"text": "a", "id": 18446744073709551616, "v": 1}', '{"text": "a", "id": null, "v": 1}', "17",
        '{"text": 1, "id": 1, "v": 1}', '{"id": 1, "v": 1}', '{"text": "a", "id": 1}', '"text"', '{"text": "a"},{',
        '{"v": 0, "text": "a", "id": -3}, {}',
    )  # fmt: skip
    for columns in (Columns(), Columns(id="id"), Columns(id="id", keep=("v", "id"))):
        form, alone = JsonLines(""), []
        for row in rows:
            (batch,) = form.batches(io.BytesIO(row.encode()), "x.jsonl", columns)
            alone.append((batch.texts.to_pylist(), batch.ids, [bad.why for bad in batch.bad], *_plain(batch)))
        for first, second in itertools.product(range(len(rows)), repeat=2):
            lines = io.BytesIO(f"{rows[first]}\n{rows[second]}".encode())
            (batch,) = form.batches(lines, "x.jsonl", columns)
            joined = batch.texts.to_pylist(), batch.ids, [bad.why for bad in batch.bad], *_plain(batch)
            want = [
                None if one is None else one + other for one, other in zip(alone[first], alone[second], strict=True)
            ]
            assert list(joined) == want


def _plain(batch: Batch) -> list[list[str]]:
    return [column.storage.to_pylist() for column in batch.kept]


@given(TEXTS, st.integers(0, 3), st.sampled_from([*MARKS]))
@settings(max_examples=80)
def test_cells_are_those_of_the_csv_module(texts: list[str | None], skipped: int, separator: Separator) -> None:
    """Any text, at any place in its column, alone in its row or with others; after a backslash, a cell has a quote."""
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
    whole = json_strings(pa.array(texts, pa.large_string())[skipped:], "<", ">\n")
    assert whole.to_pylist() == [f"<{orjson.dumps(text).decode()}>\n" for text in texts[skipped:]]


def test_every_byte_that_is_escaped_and_every_one_that_is_not() -> None:
    """Alone, and at each place of a text longer than what is written at once."""
    texts = [" " * place + chr(code) + " " * (20 - place) for code in range(0x100) for place in range(21)]
    whole = json_strings(pa.array([*texts, *map(chr, range(0x100))], pa.large_string()))
    assert whole.to_pylist() == [orjson.dumps(text).decode() for text in [*texts, *map(chr, range(0x100))]]

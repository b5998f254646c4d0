"""Public numbers by shape, from which surrogates are drawn: ``numbers.parquet`` of counts and of spaces.

For a kept shape, a number u that occurs ``c_u`` times is drawn with probability ``c_u / (N + 1)``, where numbers of the
shape occur N times. With the remaining probability the number is *made up*: each digit is drawn uniformly, each letter
stays. So the numbers that are too rare to be kept represent those that public text lacks, as in Good's estimate, and
every number of the shape is possible. A number of any other shape is made up, digits and letters.

A date or time that is made up is drawn part by part. A part is that of a kept number of the same whole shape, with its
probability; with the remaining probability it is a number of its own shape, by the rule above. If the whole shape is
not kept, each part is drawn by its own shape.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusveil.arrays import Int64, UInt8, UInt64
from corpusveil.errors import ArtefactError
from corpusveil.sampling.weights import integer_weights
from corpusveil.storage import files
from corpusveil.storage.parquet import read_whole, sound, write_table
from corpusveil.text.output_words import concatenate
from corpusveil.text.word_table import WordTable

NUMBERS = "numbers.parquet"
ALLOWED = "[0-9a-z.,/:-]"
"""The characters of numbers that are kept."""
LONGEST = 64
MOST = 1 << 20
MOST_COUNT = 1 << 62
_SCHEMA = pa.schema([("shape", pa.string()), ("number", pa.string()), ("count", pa.int64())])


def shapes_of(numbers: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return the shapes of numbers of allowed characters: Arrow strings to Arrow strings."""
    return pc.replace_substring_regex(numbers, "[0-9]", "0")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Numbers:
    """Public numbers. Equal when their contents are.

    ``shapes`` [S] are sorted; the numbers of shape s are ``numbers[firsts[s]:firsts[s + 1]]``, with ``counts`` int64;
    ``others`` int64 [S] counts all other numbers of a shape. ``firsts`` int64 [S + 1].
    """

    shapes: tuple[str, ...]
    firsts: Int64
    numbers: tuple[str, ...]
    counts: Int64
    others: Int64
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        sha = hashlib.sha256(b"corpusveil numbers 1\n")
        rows = zip(self.shapes, self.firsts[:-1].tolist(), self.firsts[1:].tolist(), self.others.tolist(), strict=True)
        counts = self.counts.tolist()
        for shape, first, last, other in rows:
            own = " ".join(f"{n} {c}" for n, c in zip(self.numbers[first:last], counts[first:last], strict=True))
            sha.update(f"{shape} {other} {own}\n".encode())
        object.__setattr__(self, "digest", sha.hexdigest())

    @classmethod
    def of(cls, rows: Iterable[tuple[str, str, int]]) -> Numbers:
        """Return numbers from rows (shape, number, count), where a missing number means all further numbers of a shape.

        Raises UserError for invalid rows.
        """
        by_shape: dict[str, dict[str, int]] = {}
        total = 0
        for shape, number, count in rows:
            own = by_shape.setdefault(shape, {})
            if number in own or count < (1 if number else 0):
                raise ArtefactError("A public number occurs twice in this file, or has a count below 1; count again.")
            own[number] = count
            total += count
        if total >= MOST_COUNT:
            raise ArtefactError("The counts of public numbers add up to more than 64 bits can hold; count again.")
        shapes = sorted(by_shape)
        others = [by_shape[shape].pop("", 0) for shape in shapes]
        sizes = [len(by_shape[shape]) for shape in shapes]
        pairs = [
            pair for shape in shapes for pair in sorted(by_shape[shape].items(), key=lambda pair: (-pair[1], pair[0]))
        ]
        return cls(
            tuple(shapes),
            np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64),
            tuple(number for number, _ in pairs),
            np.array([count for _, count in pairs], np.int64),
            np.array(others, np.int64),
        )

    def __len__(self) -> int:
        return len(self.numbers)

    def __repr__(self) -> str:
        return f"Numbers({len(self):,} public numbers of {len(self.shapes):,} shapes)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Numbers) and other.digest == self.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __reduce__(self) -> tuple[object, ...]:
        return Numbers, (self.shapes, self.firsts, self.numbers, self.counts, self.others)


@dataclass(frozen=True, slots=True)
class NumberTables:
    """The tables from which numbers are drawn, as arrays for compiled code.

    ``shapes`` finds a shape. Its cells, of which the first makes a number up, have the lower ``bounds`` uint64 from
    ``cells[s]`` to ``cells[s + 1]``; cell k of all is number ``text[offsets[k]:offsets[k + 1]]``, empty for the first.
    """

    shapes: WordTable
    cells: Int64
    bounds: UInt64
    text: UInt8
    offsets: Int64


@functools.lru_cache(maxsize=2)
def tables_of(public: Numbers) -> NumberTables:
    """Return the tables of public numbers; once a process."""
    bounds = [np.zeros(0, np.uint64)]
    words: list[bytes] = []
    for shape in range(len(public.shapes)):
        first, last = public.firsts[shape], public.firsts[shape + 1]
        weights = integer_weights(np.concatenate([[public.others[shape] + 1], public.counts[first:last]]))
        lower = np.zeros(weights.size, np.uint64)
        np.cumsum(weights[:-1], out=lower[1:])
        bounds.append(lower)
        words += [b"", *(number.encode() for number in public.numbers[first:last])]
    shapes = [shape.encode() for shape in public.shapes]
    return NumberTables(
        WordTable.build(*concatenate(shapes)),
        public.firsts + np.arange(len(public.shapes) + 1),
        np.concatenate(bounds),
        *concatenate(words),
    )


def write_numbers(public: Numbers, url: str) -> None:
    """Write ``shape, number, count``; the row of a shape without a number has all its further ones."""
    shapes = np.repeat(np.arange(len(public.shapes)), np.diff(public.firsts))
    table = pa.table(
        {
            "shape": pa.array([*public.shapes, *(public.shapes[shape] for shape in shapes.tolist())], pa.string()),
            "number": pa.array([""] * len(public.shapes) + list(public.numbers), pa.string()),
            "count": pa.array(np.concatenate([public.others, public.counts]).astype(np.int64)),
        }
    ).cast(_SCHEMA)
    write_table(table, url)


def read_numbers(url: str) -> Numbers | None:
    """Return the public numbers of counts or of a space; None if there are none, as in older artefacts.

    Raises UserError if the file is damaged.
    """
    address = files.join(url, NUMBERS)
    if url.endswith((".parquet", ".csv", ".tsv", ".gz", ".txt")) or not files.exists(address):
        return None
    unsound = f"{address}: these public numbers are damaged; make them again with 'corpusveil count'."
    table = read_whole(address, unsound, lambda _: _SCHEMA.names)
    with sound(unsound):
        table = table.replace_schema_metadata(None).cast(_SCHEMA)
        if any(column.null_count for column in table.columns) or table.num_rows > 2 * MOST:
            raise ArtefactError(unsound)
        shaped = pc.equal(shapes_of(table["number"]), table["shape"])
        fits = pc.or_(shaped, pc.equal(table["number"], ""))
        spelt = pc.match_substring_regex(table["shape"], f"^0{ALLOWED}{{0,{LONGEST - 1}}}$")
        if not (pc.all(fits).as_py() in (True, None) and pc.all(spelt).as_py() in (True, None)):
            raise ArtefactError(unsound)
        rows = zip(*(table[name].to_pylist() for name in _SCHEMA.names), strict=True)
    try:
        return Numbers.of(rows)
    except ArtefactError:
        raise ArtefactError(unsound) from None

"""What fuzzing found, once each: the reader, the smallest input, and a part of what its sentence says now."""

from __future__ import annotations

import functools
import io
import json
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from corpusveil.ledger.entries import ABOUT, ROWS, VERSION, About, header_of
from fuzz.containers import RAW, one, zipped
from fuzz.invariant import CANARY

SECRET = CANARY.encode()
SIGNED = bytes([RAW | 0x40])[0]
"""A part of a space that is replaced whole, by somebody who also gives the space the digest of its new content."""
JSONS = (b"[]", b"1", b"null", b"{}", b'{"_": 1', b"\xff", b"[" * 5000, b'{"release": 1}', b'{"shards": {"x": 1}}')
CONFIGURATIONS = (
    "[budget]\nepsilon = 1" + "0" * 400,
    "[budget]\nepsilon = 1" + "0" * 5000,
    "a = " + "[" * 5000,
    '["a\\nb"]\n',
    '[budget]\n"a\\nb" = 1\n',
    f'[budget]\nepsilon = "{"x" * 1000}"\n',
    "[budget]\nepsilon = 1979-05-27\n",
    "[budget]\nepsilon = 1.0\nweights = [true]\n",
    "[space]\npath = 'x'\nlists = 99999999999999999999\n",
)


class _Note:
    """Pickled as the call of a name with arguments, and perhaps a state."""

    def __init__(self, *reduced: Any) -> None:
        self.reduced = reduced

    def __reduce__(self) -> Any:
        return self.reduced


OBJECTS = _Note(np.dtype, ("V8", False, True), (3, "|", None, ("f",), {"f": (np.dtype("O"), 0)}, 8, 1, 0))
"""A type of eight bytes that NumPy takes for a pointer, and says it does not."""
PICKLES = (
    b"\x80\x02]r" + (0x31020214).to_bytes(4, "little") + b".",  # a memo of 13 GB
    b"\x80\x05\x96" + (1 << 40).to_bytes(8, "little") + b".",  # a bytearray of 1 TB
    b"\x80\x04\x8e" + (1 << 40).to_bytes(8, "little") + b".",  # bytes of 1 TB
    b"\x80\x04})" + b"\x85" * 1_000_000 + b"Ns.",  # a tuple a million deep
    b"\x80\x04(" + b")" + b"\x85" * 1_000_000 + b"\x91.",  # a set of deep tuples
    pickle.dumps({_Note(np._core.multiarray.scalar, (OBJECTS, b"ABCDEFGH")): 1}, 4),  # type: ignore[attr-defined] # pointers
    b"\x80\x02\x82\x01.",  # an extension of this process
    b"cos\x0bx\n" + SECRET + b"\nq.",  # a name with line ends
    SECRET,
)


def parquet(table: Any, names: list[str] | None = None, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table if isinstance(table, pa.Table) else pa.table(table, names=names), sink, **options)
    return sink.getvalue()


def npy(array: np.ndarray) -> bytes:
    sink = io.BytesIO()
    np.save(sink, array)
    return sink.getvalue()


def lines() -> Iterator[tuple[str, bytes, str]]:
    """Python before 3.13 writes carriage returns in CSV without quotes, and then does not read them."""
    texts = ("a\rb", "\r\n", 'a"\r')
    yield "jsonl", b"\x06" + b"".join(json.dumps({"text": text, "a": text}).encode() + b"\n" for text in texts), ""
    for inside, depth in ((b"1", 300), (b"1234567890123456789012", 1000)):
        nest = b"[" * depth + inside + b"]" * depth
        yield "jsonl", b'\x02{"text": "' + SECRET + b'", "a": ' + nest + b"}\n", "nested too deeply"


def fewer_rows() -> Iterator[tuple[str, bytes, str]]:
    """A row group with a negative number of rows ended the file without a word."""
    whole = parquet({"text": [CANARY] * 9}, row_group_size=1, compression="none")
    for at in range(len(whole) - 8 - int.from_bytes(whole[-8:-4], "little"), len(whole) - 8):
        changed = bytearray(whole)
        changed[at] ^= 0x29  # a 1 becomes a -20, as Thrift writes them
        try:
            read = pq.read_metadata(io.BytesIO(changed))
            if min(read.row_group(k).num_rows for k in range(9)) < 0:
                yield "parquet", bytes([RAW]) + changed, "not a valid Parquet file"
        except Exception:  # noqa: BLE001 - other places in the footer
            continue


def vectors() -> Iterator[tuple[str, bytes, str]]:
    """Among them a column that is there twice, which Arrow said in three lines with every column's name."""
    columns: dict[str, Any] = {"word": ["a", "b"], "vector": [[1.0], [2.0]], "count": [1, 2]}
    for wrong in (
        {"count": [CANARY, "1"]}, {"count": [None, 1]}, {"count": [{"a": 1}, {"a": 2}]},
        {"vector": [[CANARY], [CANARY]]}, {"word": pa.array(["a", CANARY]).dictionary_encode()},
        {"word": [{CANARY: 1}, {CANARY: 2}]},
    ):  # fmt: skip
        yield "vectors-parquet", bytes([RAW]) + parquet(columns | wrong), ": "
    for name, column in columns.items():
        twice = pa.table([*map(pa.array, columns.values()), pa.array(column)], names=[*columns, name])
        yield "vectors-parquet", bytes([RAW]) + parquet(twice), ": "
    members = [("vectors.npy", npy(np.eye(2))), ("vocab.npy", SECRET)]
    yield "vectors-npz", bytes([RAW]) + zipped(members), "not a NumPy array"
    yield "vectors-text", b"\0" + b"9" * 5000 + b" 3\na 1 2 3\n", ": "
    yield "vectors-binary", b"\0" + b"9" * 5000 + b" 3\n", ": "
    yield "vectors-text.gz", bytes([RAW]) + SECRET, ": "
    for data in PICKLES:
        yield "vectors-gensim", bytes([RAW]) + data, ": "


def counts() -> Iterator[tuple[str, bytes, str]]:
    """Sums beyond 64 bits came round again as another number."""
    most = 2**63 - 1
    yield "vocabulary", b"\0" + parquet({"id": [0, 1], "token": ["a", CANARY], "count": [1, -1]}), "negative"
    yield "counts-tsv", b"\0" + b"der\t999999999999999999\n" * 20, "64 bits"
    yield "counts-parquet", b"\0" + parquet({"ngram": ["der", "der"], "count": [most, most]}), "64 bits"
    yield "counts-tsv", b"\0der\t3\x1d\n", ""  # a separator that is no blank to all
    yield "counts-parquet", b"\0" + parquet({"ngram": ["der"], "count": [CANARY]}), ": "


def states() -> Iterator[tuple[str, bytes, str]]:
    """Records, manifests, descriptions, leases, entries of a ledger and tables of collocations."""
    for text in CONFIGURATIONS:
        yield "configuration", text.encode(), ": "
    rewritten = b'[collocations]\ninput = ["a\\u007f\\n\\u0001"]\ncounts = "c"\ntable = "t"\ntokens = "k"\n'
    yield "configuration", rewritten, ""  # JSON leaves the character of Delete as it is, TOML does not take it so
    for data in JSONS:
        for reader, files in (("records", 8), ("schedule", 4)):
            yield from ((reader, bytes([number]) + data, "") for number in range(files))
        yield "artifact", data, ""
        yield "space", bytes([RAW]) + data, ": "
    for holder, beat in ((b"{}", b"{}"), (b"\xff", b"\xff"), (b"[]", b'{"time": "x"}')):
        yield "lease", one(holder, beat), ""
    names: dict[str, Any] = dict.fromkeys(
        ("unit", "namespace", "column", "release", "metric", "mechanism", "space"), CANARY
    )
    about = About(**names, version=VERSION, ranged=False, budget={}, documents=1, tokens=1)
    told = about.model_dump(mode="json")
    tags = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"c" * 16], pa.binary(16)))
    versions: tuple[Any, ...] = (CANARY, None, 1.5, [], True)
    headers = [json.dumps({**told, "version": version}) for version in versions]
    for number, header in ((None, header_of(about)), (-1, header_of(about)), *((1, header) for header in headers)):
        columns = [tags, tags, *[pa.array([number], pa.int64())] * (len(ROWS) - 2)]
        entry = pa.table(columns, schema=ROWS.with_metadata({ABOUT: header}))
        yield "ledger", bytes([RAW]) + parquet(entry), ": "
    yield from (("ledger", b"\0" + at.to_bytes(2, "little") + b"\x55", "") for at in range(0, 4000, 61))
    table: dict[str, Any] = {"ngram": ["a b"], "n": [2], "score": [1.0]}
    wrong: dict[str, Any]
    for wrong in (
        {"ngram": ["a b", None], "n": [2, 2], "score": [1.0, 1.0]}, {"n": [None]}, {"score": [float("nan")]},
        {"ngram": [CANARY]}, {"n": ["2x"]}, {"ngram": [], "n": [], "score": []},
    ):  # fmt: skip
        yield "collocations", bytes([RAW]) + parquet(table | wrong), ": "


def spaces() -> Iterator[tuple[str, bytes, str]]:
    """Spaces that nobody can build."""
    matrix = np.eye(6, 2, dtype=np.float32)
    matrix[1, 1] = np.nan
    yield "space", bytes([SIGNED | 1]) + npy(matrix), "finite"
    for word in ("b\nc", ""):
        words = parquet({"id": range(6), "token": ["a", word, *"cdef"], "count": [1] * 6})
        yield "space", bytes([SIGNED | 3]) + words, "blank"


@functools.cache
def found() -> tuple[tuple[str, bytes, str], ...]:
    """Return every finding."""
    return tuple(finding for kind in (lines, fewer_rows, vectors, counts, states, spaces) for finding in kind())

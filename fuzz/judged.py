"""Judged search: passages and queries with tabs, and judgments of TREC."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from pathlib import Path

from corpusveil_evaluate.studies.retrieval.trec import read_qrels, read_rows
from fuzz.containers import RAW, packed
from fuzz.invariant import CANARY, Reader, need, refused

CODECS = ("", ".gz", ".zst")
PASSAGES = f"\ufeff1\t{CANARY} one\r\n\nq2\ttwo\twith a tab\n3\té".encode()
QRELS = f"1 0 {CANARY} 3\n1 Q0 p2 -1\r\n\n2 0 p2 0".encode()


def _file(data: bytes, folder: Path, name: str) -> Path:
    codec = CODECS[data[0] % 3]
    path = folder / f"{name}{codec}"
    path.write_bytes(packed(data[1:], codec, raw=bool(data[0] & RAW)))
    return path


def check_passages(data: bytes, folder: Path) -> None:
    """Data that were read and written again as lines are read equally."""
    if not data:
        return
    path = _file(data, folder, "passages.tsv")
    found = refused(lambda: list(read_rows(str(path))), path)
    if found is None:
        return
    rows = [row for ids, texts in found for row in zip(ids, texts, strict=True)]
    need(all(id == id.strip() and id for id, _ in rows), "an id with blanks around it")
    again = folder / "again.tsv"
    again.write_bytes(
        b"\n" + "".join(f"{id}\t{text}\n" for id, text in rows).encode()
    )  # there is no mark at the beginning
    read = list(itertools.chain.from_iterable(zip(*some, strict=True) for some in read_rows(str(again))))
    need([(id, text.rstrip("\r")) for id, text in rows] == read, "rows that read otherwise when written again")


def check_qrels(data: bytes, folder: Path) -> None:
    if not data:
        return
    path = _file(data, folder, "qrels")
    found = refused(lambda: read_qrels(str(path)), path)
    if found is None:
        return
    again = folder / "again"
    lines = [f"{query} 0 {passage} {grade}" for query, some in found.items() for passage, grade in some.items()]
    again.write_text("\n".join(["", *lines]), encoding="utf-8")
    need(read_qrels(str(again)) == found, "judgments that read otherwise when written again")


def _packings(seed: bytes) -> Iterator[bytes]:
    return (bytes([bits]) + seed for bits in range(3))


def readers() -> Iterator[Reader]:
    for name, check, seed in (("passages", check_passages, PASSAGES), ("qrels", check_qrels, QRELS)):
        yield Reader(name, functools.partial(_packings, seed), check)

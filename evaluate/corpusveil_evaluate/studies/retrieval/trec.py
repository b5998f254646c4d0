"""Judged search from files: a collection of passages, queries, and judgments in the form of TREC.

DL'19 (the TREC 2019 deep learning track, passages) is 43 judged queries on the 8.8 million passages of MS MARCO. The
user provides its files; none of them comes with this package.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusveil.errors import DataError, SettingError
from corpusveil.storage import files, formats
from corpusveil.storage.compression import chunks, codec_of
from corpusveil.storage.forms import split
from corpusveil.storage.rows import Columns
from corpusveil_evaluate.studies.retrieval.obfuscated_search import DL19_THRESHOLD, Judgements

NO_JUDGMENTS = "No query has a judgment: the ids of queries and judgments do not match; give those of one collection."
_GRADE = re.compile(r"-?[0-9]{1,4}")

Rows = tuple[list[str], list[str]]
"""Ids and texts of some rows that follow one another."""


def read_rows(url: str) -> Iterator[Rows]:
    r"""Yield ids and texts of a file, some thousands at a time: ``id<TAB>text`` a line, or Parquet, JSON lines or CSV.

    A name that ends in ``.tsv`` (``.tsv.gz``, ``.tsv.zst``) is the first, without a header; of the others ``id`` and
    ``text`` are columns. The address is any of fsspec's. Raises UserError that names the file and the line or row.
    """
    if url.removesuffix(codec_of(url)).endswith(".tsv"):
        yield from _tab_separated(url)
        return
    form = formats.form_of(url)
    with files.open_read(url) as file:
        for batch in form.batches(file, url, Columns("text", "id")):
            for bad in batch.bad:
                raise DataError(f"{url}, row {bad.number + 1}: {bad.why}")
            texts = batch.texts.to_pylist()
            for number, content, identity in zip(batch.numbers, texts, batch.ids or [], strict=True):
                if content is None or identity is None or not str(identity).strip():
                    raise DataError(f"{url}, row {number + 1}: the id or the text is missing; leave the row out.")
            yield [str(identity).strip() for identity in batch.ids or []], texts


def _tab_separated(url: str) -> Iterator[Rows]:
    for first, group in _numbered(url):
        ids, texts = [], []
        for number, line in enumerate(group, first):
            if not line.strip():
                continue
            identity, tab, text = _decoded(line, url, number).partition("\t")
            if not tab or not identity.strip():
                raise DataError(
                    f"{url}, line {number}: this is not an id, a tab and a text; repair or remove the line."
                )
            ids.append(identity.strip())
            texts.append(text)
        yield ids, texts


def _numbered(url: str) -> Iterator[tuple[int, list[bytes]]]:
    """Yield the number of the first line of some, from 1, and the lines."""
    number = 1
    with files.open_read(url) as file:
        for group in split(chunks(file, url, codec_of(url)), url):
            yield number, group
            number += len(group)


def _decoded(line: bytes, url: str, number: int) -> str:
    try:
        return line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r")
    except UnicodeDecodeError:
        raise DataError(f"{url}, line {number}: not valid UTF-8; repair or remove the line.") from None


def read_queries(url: str) -> dict[str, str]:
    """Return queries by id, in the order of the file. Raises as ``read_rows``, and for an id that occurs twice."""
    queries: dict[str, str] = {}
    for ids, texts in read_rows(url):
        for identity, query in zip(ids, texts, strict=True):
            if identity in queries:
                raise DataError(f"{url}: the id of query {len(queries) + 1} occurs before; give each query its own.")
            queries[identity] = query
    if not queries:
        raise DataError(f"{url}: there are no queries; give a file with queries.")
    return queries


def read_qrels(url: str) -> dict[str, dict[str, int]]:
    """Return the grades of judged passages, by query and passage: ``qid 0 pid grade`` a line, blanks between.

    The second field is not used, as in trec_eval. Raises UserError that names the file and the line.
    """
    grades: dict[str, dict[str, int]] = {}
    for first, group in _numbered(url):
        for number, line in enumerate(group, first):
            fields = _decoded(line, url, number).split()
            if not fields:
                continue
            if len(fields) != 4 or not _GRADE.fullmatch(fields[3]):
                raise DataError(
                    f"{url}, line {number}: this is not 'qid 0 pid grade' with a whole number as grade; repair "
                    "the line."
                )
            query, _, passage, grade = *fields[:3], int(fields[3])
            if grades.setdefault(query, {}).setdefault(passage, grade) != grade:
                raise DataError(f"{url}, line {number}: this passage has another judgment before; keep either.")
    if not grades:
        raise DataError(f"{url}: there are no judgments; give a file with judgments.")
    return grades


@dataclass(frozen=True, slots=True, eq=False)
class Passages:
    """A collection at ``url``, N passages in the order of the file, read again at each use.

    ``ids`` are an Arrow array of large strings [N]; ``kept`` holds the texts as well, where somebody needs them by
    number: for MS MARCO some 3 GB, where ids take 0.15 GB.
    """

    url: str
    ids: pa.LargeStringArray = field(repr=False)
    kept: pa.LargeStringArray | None = field(repr=False)

    @classmethod
    def open(cls, url: str, *, keep: bool = False) -> Passages:
        """Read the ids, and with ``keep`` the texts. Raises as ``read_rows``, and where an id occurs twice."""
        names, texts = [], []
        for ids, some in read_rows(url):
            names.append(pa.array(ids, pa.large_string()))
            if keep:
                texts.append(pa.array(some, pa.large_string()))
        if not sum(map(len, names)):
            raise DataError(f"{url}: there are no passages; give a file with passages.")
        joined = pa.concat_arrays(names)
        if pc.count_distinct(joined).as_py() < len(joined):
            raise DataError(f"{url}: an id occurs twice; give each passage its own.")
        return cls(url, joined, pa.concat_arrays(texts) if keep else None)

    def __len__(self) -> int:
        return len(self.ids)

    def batches(self) -> Iterator[list[str]]:
        """Yield the texts, some thousands at a time, as ``Bm25.of_batches`` takes them."""
        for _, texts in read_rows(self.url):
            yield texts

    def texts(self, numbers: Sequence[int]) -> list[str]:
        """Return some texts by number. Raises UserError if they are not kept."""
        if self.kept is None:
            raise SettingError(f"{self.url}: the texts were not kept; open the collection with keep=True.")
        passages: list[str] = self.kept.take(pa.array(numbers, pa.int64())).to_pylist()
        return passages

    def numbers(self, ids: Sequence[str]) -> list[int]:
        """Return the number of each id, -1 if there is no such passage."""
        places = pc.index_in(pa.array(ids, pa.large_string()), value_set=self.ids)
        rows: list[int] = places.fill_null(-1).to_pylist()
        return rows


@dataclass(frozen=True, slots=True)
class Judged:
    """The queries that are judged, with ids and texts; ``missing`` judged passages are not in the collection."""

    ids: tuple[str, ...]
    queries: tuple[str, ...]
    judgements: Judgements
    missing: int


def join_judgements(
    queries: Mapping[str, str],
    qrels: Mapping[str, Mapping[str, int]],
    passages: Passages,
) -> Judged:
    """Return the queries with a judgment, and the judgments by the numbers of passages.

    Judged passages that the collection lacks stay in the denominators. Queries without judgments are left out, as are
    judgments without a query. Raises UserError where no query has a judgment.
    """
    ids = [identity for identity in queries if identity in qrels]
    if not ids:
        raise SettingError(NO_JUDGMENTS)
    judged = list(dict.fromkeys(passage for identity in ids for passage in qrels[identity]))
    numbers = np.array(passages.numbers(judged), np.int64)
    lost = numbers < 0
    numbers[lost] = -2 - np.arange(int(lost.sum()))
    if lost.all():
        raise SettingError(f"{passages.url}: no judged passage is here; give the judgments of this collection.")
    number_of = dict(zip(judged, numbers.tolist(), strict=True))
    grades = [{number_of[passage]: grade for passage, grade in qrels[identity].items()} for identity in ids]
    return Judged(
        tuple(ids), tuple(queries[identity] for identity in ids), Judgements(grades, DL19_THRESHOLD), int(lost.sum())
    )

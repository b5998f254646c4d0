"""Questions about all documents of a ledger, answered on any engine, in memory that does not grow with their number.

If entries have few rows, the caller answers the question itself. Otherwise tasks of the engine spread the rows over
buckets, by the fingerprint of a document's content and again by that of its identity, so that a bucket has all rows of
a document. Further tasks look at one bucket each. The caller sees only the result of each bucket: the largest sums, by
metric.

A document with more rows than a bucket may have, such as an empty text that occurs a million times, makes its bucket
too large for memory. The worker spreads such a bucket again, by noise, on its disk, and merges rows that differ only in
their noise.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import secrets
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusveil.errors import BadRecordError, BadShardsError, UnfinishedError
from corpusveil.storage import buckets, durable, files
from corpusveil.storage.durable import Done, PartTask, Stage, stem
from corpusveil.storage.engine import Engine, Measured, total
from corpusveil.storage.ledger import AnEntry, Held
from corpusveil.storage.records import Records
from corpusveil.transforms.composed_spending import Told
from corpusveil.transforms.spent_documents import (
    KEYS,
    SPREAD,
    Answer,
    Question,
    alike,
    answered,
    as_text,
    distinct,
    from_text,
    lines_of,
    of_planned,
    once,
)

BUCKET_ROWS = 1 << 19
"""About the number of rows of entries in memory: with derived data, about 1 KiB each."""


class Here:
    """Runs tasks in this process, one after the other."""

    def slots(self) -> int:
        """Return how many tasks run in parallel."""
        return 1

    def run(self, function: Any, tasks: Sequence[Any]) -> Measured:
        """Run the function on every task; return the sums of its measures."""
        return total(function(task) for task in tasks)


@dataclass(frozen=True, slots=True)
class Where:
    """Where questions are answered: by what ``engine``, and in which ``folder``; None for a temporary one."""

    engine: Engine = dataclasses.field(default_factory=Here)
    folder: str | None = None


class Source(NamedTuple):
    """An entry of a question: the numbers of its release and of its line, and whether it is planned.

    ``told`` and ``line`` number different values, in the order of their first entries.
    """

    entry: AnEntry
    told: int
    line: int
    planned: bool

    def tables(self) -> Iterator[pa.Table]:
        """Yield its rows with their release and line."""
        for table in self.entry.tables():
            rows = table
            for name, value in (("told", self.told), ("line", self.line), ("planned", self.planned)):
                rows = rows.append_column(name, pa.repeat(pa.scalar(value, SPREAD.field(name).type), rows.num_rows))
            yield rows

    def is_gone(self) -> bool:
        """Say whether the file of the entry can't be found."""
        return isinstance(self.entry, Held) and not files.exists(self.entry.address)


@dataclass(frozen=True, slots=True)
class Pile:
    """Several entries, which one task spreads."""

    part: int
    parts: int
    sources: tuple[Source, ...]

    @property
    def record_name(self) -> str:
        """The name of the task's record."""
        return f"part-{self.part:05d}-of-{self.parts:05d}.json"


class Made(Done):
    """The files into which a pile was spread, of contents and identities in turn; and entries that were not found."""

    made: list[str]
    gone: list[int]


@dataclass(frozen=True, slots=True)
class Spread(Stage[Made]):
    """Spreads the rows of entries over buckets."""

    name: ClassVar[str] = "spread"

    buckets: int
    most: int

    def place(self) -> Records:
        return Records(self.address())

    def make(self, task: Pile) -> dict[str, Any]:
        made: list[str] = []
        gone: list[int] = []
        waiting: list[pa.Table] = []
        for number, source in enumerate(task.sources):
            try:
                for rows in source.tables():
                    if rows.num_rows + sum(one.num_rows for one in waiting) > self.most:
                        made += self._put(task, len(made), waiting)
                        waiting = []
                    waiting.append(rows)
            except Exception:
                if not source.is_gone():
                    raise
                gone.append(number)
        made += self._put(task, len(made), waiting)
        return {"made": made, "gone": gone}

    def _put(self, task: Pile, number: int, tables: Sequence[pa.Table]) -> list[str]:
        if not any(one.num_rows for one in tables):
            return []
        rows = pa.concat_tables(tables).combine_chunks()
        made = []
        for key in KEYS:
            url = self.address("made", f"{stem(task)}-{number:05d}-{key}.rows")
            buckets.write(url, keyed(rows, key), buckets.bucket_of(rows[key].chunk(0), self.buckets), self.buckets)
            made.append(url)
        return made


def keyed(rows: pa.Table, key: str) -> pa.Table:
    """Return the rows of entries as those of a bucket by one key."""
    renamed = [rows[key if name == "key" else name] for name in SPREAD.names]
    return pa.table(renamed, SPREAD)


class Found(Done):
    """The answer of a bucket, as JSON."""

    answer: str


@dataclass(frozen=True, slots=True)
class Look(Stage[Found]):
    """Reads one bucket, of contents or of identities."""

    name: ClassVar[str] = "look"

    buckets: int
    most: int
    made: tuple[tuple[str, ...], ...]
    question: Question
    tolds: tuple[Told, ...]

    def place(self) -> Records:
        return Records(self.address())

    def make(self, task: PartTask) -> dict[str, Any]:
        which, bucket = divmod(task.part, self.buckets)
        urls = self.made[which]
        rows = buckets.rows_in(urls, bucket, self.buckets)
        tables = buckets.read(urls, bucket, self.buckets)
        if rows <= 2 * self.most:
            found = looked(pa.concat_tables([SPREAD.empty_table(), *tables]), KEYS[which], self.question, self.tolds)
        else:
            parts = -(-rows // self.most)
            found = looked_again(tables, parts, KEYS[which], self.question, self.tolds)
        return {"answer": json.dumps(as_text(found))}


def looked(rows: pa.Table, key: str, question: Question, tolds: Sequence[Told]) -> Answer:
    """Return the answer from all rows of a bucket."""
    lines = lines_of(rows) if question.lines and key == "identity" else {}
    if question.planned:
        rows = of_planned(rows, pc.unique(rows["key"].filter(rows["planned"])))
    answer = answered(once(distinct(rows)), key, question, tolds) if rows.num_rows else Answer()
    answer.lines = lines
    return answer


def looked_again(tables: Iterable[pa.Table], parts: int, key: str, question: Question, tolds: Sequence[Told]) -> Answer:
    """Return the answer from a bucket that is too large for memory, in this many parts, by noise."""
    lines = Answer()
    wanted = pa.array([], SPREAD.field("key").type)
    with tempfile.TemporaryDirectory(prefix="corpusveil-ledger-") as folder:
        paths = [os.path.join(folder, f"{part}.rows") for part in range(parts)]
        for table in tables:
            rows = table.combine_chunks()
            wanted = pc.unique(pa.concat_arrays([wanted, *rows["key"].filter(rows["planned"]).chunks]))
            which = buckets.bucket_of(rows["noise"].chunk(0), parts, half=1)
            rows = rows.take(pa.array(np.argsort(which, kind="stable")))
            ends = np.cumsum(np.bincount(which, minlength=parts)).tolist()
            for path, first, last in zip(paths, [0, *ends], ends, strict=False):
                with open(path, "ab", opener=files.private_opener) as file:
                    file.write(buckets.packed(rows.slice(first, last - first)))
        whole = once(distinct(SPREAD.empty_table()))
        for path in paths:
            rows = _all_of(path)
            if question.lines and key == "identity":
                lines.add(Answer(lines=lines_of(rows)))
            if question.planned:
                rows = of_planned(rows, wanted)
            whole = alike(pa.concat_tables([whole, once(distinct(rows)).select(whole.column_names)]))
    answer = answered(whole, key, question, tolds) if whole.num_rows else Answer()
    answer.lines = lines.lines
    return answer


def _all_of(path: str) -> pa.Table:
    tables = [SPREAD.empty_table()]
    if os.path.exists(path):
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            while file.tell() < size:
                tables.append(pa.ipc.open_stream(file).read_all())
    return pa.concat_tables(tables)


def ask(
    question: Question, entries: Sequence[AnEntry], planned: Sequence[AnEntry] = (), where: Where | None = None
) -> Answer:
    """Return the answer from the documents of entries and planned entries. Raises UserError for a damaged entry."""
    where = where or Where()
    numbers: dict[Told, int] = {}
    lines: dict[tuple[str, ...], int] = {}
    sources = [
        Source(entry, numbers.setdefault(told_of(entry), len(numbers)),
               lines.setdefault(line_of(entry), len(lines)) if question.lines else 0, flag)
        for group, flag in ((entries, False), (planned, True)) for entry in group
    ]  # fmt: skip
    tolds = tuple(numbers)
    rows = sum(source.entry.rows for source in sources)
    if rows > BUCKET_ROWS:
        return _asked(question, sources, tolds, rows, where)
    tables = [table for source in sources for table in _there(source)]
    answer = Answer()
    if tables:
        whole = pa.concat_tables(tables)
        for key in KEYS:
            answer.add(looked(keyed(whole, key), key, question, tolds))
    return answer


def told_of(entry: AnEntry) -> Told:
    """Return the release of an entry."""
    release, metric, mechanism = (str(entry.about[name]) for name in ("release", "metric", "mechanism"))
    return Told(release, metric, mechanism, float(entry.about.get("length_epsilon", 0.0)))


def line_of(entry: AnEntry) -> tuple[str, str, str]:
    """Return the line of a listing to which an entry belongs: its corpus, release and text column."""
    return str(entry.about["corpus"]), str(entry.about["release"]), str(entry.about["column"])


def _there(source: Source) -> list[pa.Table]:
    """Return the rows of an entry; none if it was withdrawn meanwhile."""
    try:
        return list(source.tables())
    except Exception:
        if source.is_gone() and not source.planned:
            return []
        raise


def _asked(question: Question, sources: Sequence[Source], tolds: tuple[Told, ...], rows: int, where: Where) -> Answer:
    """Return the answer from documents that are too many for this process."""
    count = -(-rows // BUCKET_ROWS)
    with _folder(where) as folder:
        piles = _piles(sources)
        spread = Spread(folder, "", count, 2 * BUCKET_ROWS)
        made: list[str] = []
        gone: list[Source] = []
        for pile, record in zip(piles, _run(spread, piles, where.engine), strict=True):
            made += record.made
            gone += [pile.sources[number] for number in record.gone]
        hidden = [source for source in gone if not source.is_gone()]  # for the workers, but not for this process
        if hidden:
            (record,) = _run(dataclasses.replace(spread, work=f"{folder}/here"), [Pile(0, 1, tuple(hidden))], Here())
            made += record.made
            gone = [hidden[number] for number in record.gone]
        if any(source.planned for source in gone):
            raise UnfinishedError(f"{folder}: temporary files of this run were removed; run again.")
        by_key = tuple(tuple(made[number :: len(KEYS)]) for number in range(len(KEYS)))
        look = Look(folder, "", count, BUCKET_ROWS, by_key, question, tolds)
        tasks = [PartTask(part, count * len(KEYS)) for part in range(count * len(KEYS))]
        answer = Answer()
        for found in _run(look, tasks, where.engine):
            answer.add(from_text(json.loads(found.answer)))
    return answer


def _run(work: Any, tasks: Sequence[Any], engine: Engine) -> Any:
    """Run a stage; a damaged entry gives the same error as if this process had read it."""
    try:
        return durable.run(work, tasks, engine)
    except BadShardsError as error:
        raise BadRecordError(error.sentences[min(error.sentences)]) from None


@contextlib.contextmanager
def _folder(where: Where) -> Iterator[str]:
    """Provide a folder for the buckets, which is removed at the end."""
    if where.folder is None:
        with tempfile.TemporaryDirectory(prefix="corpusveil-ledger-") as folder:
            yield folder
        return
    folder = files.join(where.folder, f"caps-{secrets.token_hex(8)}")
    try:
        yield folder
    finally:
        files.remove_folder(folder)


def _piles(sources: Sequence[Source]) -> list[Pile]:
    """Split entries into tasks of about as many rows as are spread at once."""
    groups: list[list[Source]] = [[]]
    rows = 0
    for source in sources:
        if rows and rows + source.entry.rows > 2 * BUCKET_ROWS:
            groups.append([])
            rows = 0
        groups[-1].append(source)
        rows += source.entry.rows
    return [Pile(number, len(groups), tuple(group)) for number, group in enumerate(groups)]

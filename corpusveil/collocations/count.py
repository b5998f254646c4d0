"""n-gram counts of a corpus, exact, on any engine, in bounded memory.

Four stages, each a map over tasks: count words a shard, add them up a part; then, over the vocabulary of the most
frequent words, count n-grams a shard, add them up a part. Partial counts are never pruned; only what is written at the
end leaves out n-grams below the least count, and words below it can't occur in a kept one. What was added up stays in
``state``, so that further shards can be added to it.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from corpusveil.collocations import parts
from corpusveil.collocations.ngrams import NgramCounter, merge_all, most_words, unpacked
from corpusveil.collocations.stages import Engine, PartTask, Stage, Watch, mark_of, run_stage
from corpusveil.collocations.words import WordCounter
from corpusveil.errors import UserError
from corpusveil.storage import files, formats
from corpusveil.storage.inputs import find_shards
from corpusveil.storage.rows import Columns
from corpusveil.storage.tasks import KeyedReader, ShardTask, plan
from corpusveil.text.classes import TOKENIZER_VERSION
from corpusveil.text.sentences import sentence_ends
from corpusveil.text.tokens import Tokenizer, Tokens
from corpusveil.text.words import WordTable

KIND, VERSION = "counts", 1
ARTIFACT = "_artifact.json"
PART_BYTES = 64 << 20
MOST_PARTS = 4096
CHUNK_BYTES = 4 << 20
_BLANK = pa.scalar(" ", pa.large_string())


@dataclass(frozen=True, slots=True)
class CountOptions:
    """What is counted: n-grams of 1 to ``max_n`` words that occur ``min_count`` times at least, in column ``text``."""

    max_n: int = 3
    min_count: int = 5
    text: str = "text"

    def __post_init__(self) -> None:
        most_words(self.max_n)
        if self.min_count < 1:
            raise UserError(f"min_count = {self.min_count}: it has to be at least 1.")


@dataclass(frozen=True, slots=True)
class _ShardStage(Stage):
    """A stage that reads the corpus."""

    text: str
    parts: int

    def fingerprint(self, task: ShardTask) -> str:
        fs, path = files.resolve(task.url)
        return str(fs.ukey(path))

    def batches(self, task: ShardTask, tokenizer: Tokenizer, told: dict[str, Any]) -> Iterator[Tokens]:
        """Yield the shard's tokens, some documents at a time; then ``told`` has its digest and its documents."""
        form = formats.find(formats.form_of(task.url))
        columns = Columns(self.text)
        told["documents"] = 0
        with files.open_read(task.url) as raw:
            source: Any = KeyedReader(raw, b"")
            file = source.whole() if form.seeks else source
            for batch in form.batches(file, task.url, columns):
                for bad in batch.bad:
                    raise UserError(f"{task.url}, row {bad.number + 1}: {bad.why}")
                told["documents"] += len(batch.texts)
                yield tokenizer.tokenize(batch.texts)
            told["digest"] = source.digest()


@dataclass(frozen=True, slots=True)
class CountWords(_ShardStage):
    """Count the words of a shard."""

    @property
    def name(self) -> str:
        return "words"

    def do(self, task: ShardTask) -> dict[str, Any]:
        counter = WordCounter()
        told: dict[str, Any] = {}
        made: list[str] = []
        words = 0
        tokenizer = Tokenizer.of_words([])
        for tokens in self.batches(task, tokenizer, told):
            words += int(np.count_nonzero(tokens.classes == 0))
            for table in counter.add(tokens):
                made.append(self._put(task, len(made), table))
        made.append(self._put(task, len(made), counter.take()))
        return {**told, "words": words, "made": made}

    def _put(self, task: ShardTask, number: int, table: pa.Table) -> str:
        url = self.address("made", f"{task.record_name.removesuffix('.json')}-{number:03d}.parquet")
        order = pc.sort_indices(table, [("hash", "ascending"), ("word", "ascending")])
        table = table.take(order)
        parts.write(url, table, table["hash"].to_numpy(), self.parts)
        return url


@dataclass(frozen=True, slots=True)
class AddWords(Stage):
    """Add up one part of the word counts."""

    made: tuple[str, ...]

    @property
    def name(self) -> str:
        return "words-added"

    def do(self, task: PartTask) -> dict[str, Any]:
        tables = list(parts.read(self.made, task.part, task.parts))
        table = pa.concat_tables(tables) if tables else _no_words()
        added = table.group_by(["word", "hash"]).aggregate([("count", "sum")]).rename_columns(["word", "hash", "count"])
        added = added.select(["word", "count", "hash"]).sort_by([("hash", "ascending"), ("word", "ascending")])
        url = self.address("made", f"{task.record_name.removesuffix('.json')}.parquet")
        parts.write(url, added, added["hash"].to_numpy(), task.parts)
        return {"made": url, "different": added.num_rows}


def _no_words() -> pa.Table:
    return pa.table(
        {"word": pa.array([], pa.large_string()), "count": pa.array([], pa.int64()), "hash": pa.array([], pa.uint64())}
    )


@dataclass(frozen=True, slots=True)
class CountNgrams(_ShardStage):
    """Count the n-grams of a shard over a vocabulary."""

    vocabulary: str
    max_n: int

    @property
    def name(self) -> str:
        return "ngrams"

    def do(self, task: ShardTask) -> dict[str, Any]:
        tokenizer, size = _vocabulary_tokenizer(self.vocabulary, self.mark)
        counter = NgramCounter(size, self.max_n)
        told: dict[str, Any] = {}
        made: list[str] = []
        sentences = 0
        for tokens in self.batches(task, tokenizer, told):
            ends = sentence_ends(tokens)
            sentences += int(ends.sum())
            for run in counter.add(tokens, ends):
                made.append(self._put(task, len(made), run))
        made.append(self._put(task, len(made), counter.finish()))
        return {**told, "sentences": sentences, "made": made}

    def _put(self, task: ShardTask, number: int, run: tuple[Any, Any]) -> str:
        url = self.address("made", f"{task.record_name.removesuffix('.json')}-{number:03d}.parquet")
        parts.write(url, pa.table({"key": run[0], "count": run[1]}), run[0], self.parts)
        return url


@functools.lru_cache(maxsize=1)
def _vocabulary_tokenizer(url: str, mark: str) -> tuple[Tokenizer, int]:  # noqa: ARG001 - of which vocabulary
    words = _read_vocabulary(url)["word"].combine_chunks()
    offsets, data = _buffers(words)
    return Tokenizer(WordTable.build(data, offsets)), len(words)


def _buffers(strings: Any) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    whole = strings.combine_chunks() if isinstance(strings, pa.ChunkedArray) else strings
    _, offsets, text = whole.buffers()
    ends = np.frombuffer(offsets, np.int64)[whole.offset : whole.offset + len(whole) + 1]
    data = np.frombuffer(text, np.uint8) if text is not None and text.size else np.empty(0, np.uint8)
    return ends - ends[0], data[ends[0] : ends[-1]]


@dataclass(frozen=True, slots=True)
class AddNgrams(Stage):
    """Add up one part of the n-gram counts and write those that occur often enough."""

    made: tuple[str, ...]
    vocabulary: str
    max_n: int
    min_count: int
    output: str

    @property
    def name(self) -> str:
        return "ngrams-added"

    def do(self, task: PartTask) -> dict[str, Any]:
        runs = [
            (table["key"].to_numpy(), table["count"].to_numpy())
            for table in parts.read(self.made, task.part, task.parts)
        ]
        keys, counts = merge_all(runs)
        del runs
        url = self.address("made", f"{task.record_name.removesuffix('.json')}.parquet")
        parts.write(url, pa.table({"key": keys, "count": counts}), keys, task.parts)
        often = counts >= self.min_count
        lengths, ids = unpacked(keys[often], self.max_n)
        vocabulary = _read_vocabulary(self.vocabulary)
        words = vocabulary["word"].combine_chunks()
        joined = [
            pc.binary_join_element_wise(*(words.take(pa.array(ids[rows, k])) for k in range(n)), _BLANK)
            for n in range(2, self.max_n + 1)
            if (rows := np.flatnonzero(lengths == n)).size
        ]
        sizes = [lengths[lengths == n] for n in range(2, self.max_n + 1)]
        kept = [counts[often][lengths == n] for n in range(2, self.max_n + 1)]
        table = _table(
            joined, np.concatenate([*sizes, np.empty(0, np.int8)]), np.concatenate([*kept, np.empty(0, np.int64)])
        )
        _write_part(self.output, task.part + 1, task.parts + 1, table)
        return {"made": url, "different": keys.size, "kept": table.num_rows}


def _table(ngrams: list[Any], lengths: Any, counts: Any) -> pa.Table:
    """Return the table of counts in its order: n, falling count, n-gram."""
    table = pa.table(
        {
            "ngram": pa.chunked_array(ngrams, pa.large_string()),
            "n": pa.array(lengths, pa.int8()),
            "count": pa.array(counts, pa.int64()),
        }
    )
    return table.take(pc.sort_indices(table, [("n", "ascending"), ("count", "descending"), ("ngram", "ascending")]))


def _write_part(output: str, part: int, of: int, table: pa.Table) -> None:
    schema = pa.schema([("ngram", pa.string()), ("n", pa.int8()), ("count", pa.int64())])
    with files.open_write(files.join(output, "ngrams", f"part-{part:05d}-of-{of:05d}.parquet")) as file:
        pq.write_table(table.cast(schema), file, compression="zstd")


def _read_vocabulary(url: str) -> pa.Table:
    """Return ``word: large_string, count: int64`` by id."""
    with files.open_read(url) as file:
        try:
            table = pq.read_table(file)
            return table.set_column(0, "word", table["word"].cast(pa.large_string()))
        except (pa.ArrowException, KeyError) as error:
            raise UserError(f"{url}: this vocabulary is damaged ({type(error).__name__}); count again.") from None


def read_artifact(url: str) -> dict[str, Any]:
    """Return the description of counts. Raises UserError when there are none, or of another version."""
    address = files.join(url, ARTIFACT)
    if not files.exists(address):
        raise UserError(f"{url}: there are no counts here (no {ARTIFACT}); make them with 'corpusveil count'.")
    try:
        told: dict[str, Any] = json.loads(files.read_bytes(address))
        kind, version, tokenizer = told["kind"], told["version"], told["tokenizer"]
    except (ValueError, KeyError, TypeError):
        raise UserError(f"{address}: this description is damaged; count again.") from None
    if kind != KIND or version != VERSION:
        raise UserError(f"{url}: this is {kind} version {version}, not counts version {VERSION}.")
    if tokenizer != TOKENIZER_VERSION:
        raise UserError(
            f"{url}: counted by tokenizer {tokenizer}, and this is {TOKENIZER_VERSION}; count again with this one."
        )
    return told


def count_corpus(
    inputs: Sequence[str],
    output: str,
    engine: Engine,
    options: CountOptions | None = None,
    *,
    add_to: str | None = None,
    watch: Watch | None = None,
) -> dict[str, Any]:
    """Count the n-grams of a corpus into the artefact ``output``; return its description.

    ``ngrams/*.parquet`` (``ngram: string, n: int8, count: int64``) holds every n-gram that occurs ``min_count`` times
    at least. ``add_to`` names counts that the corpus is added to, which stay as they are; their ``max_n``, column and
    least count stand. Run again after an interruption it goes on where it stopped. Raises UserError when the input is
    wrong, empty or counted already, when the vocabulary is larger than keys can hold, and when nothing is left.
    """
    output = files.absolute(output)
    if files.exists(files.join(output, ARTIFACT)):
        return read_artifact(output)
    before = None if add_to is None else read_artifact(add_to)
    options = options or CountOptions()
    if before is not None:
        options = CountOptions(**before["options"])
    shards = find_shards(inputs)
    tasks = plan(shards, None, None)
    number = before["parts"] if before else _parts(sum(shard.size for shard in shards))
    sizes = [(shard.relative, shard.size) for shard in shards]
    settings = [VERSION, TOKENIZER_VERSION, options.max_n, options.text, number, before and before["digest"], sizes]
    work = files.join(output, "work")
    words = CountWords(work, mark_of(settings), options.text, number)
    counted = run_stage(words, tasks, engine, watch)
    inputs_counted = [
        {"path": task.relative, "digest": told["digest"]} for task, told in zip(tasks, counted, strict=True)
    ]
    _refuse_counted(before, inputs_counted)
    made = [url for told in counted for url in told["made"]] + _state(add_to, "words", before)
    part_tasks = [PartTask(part, number) for part in range(number)]
    mark = mark_of(settings, [told["digest"] for told in counted])
    added = run_stage(AddWords(work, mark, tuple(made)), part_tasks, engine, watch)
    vocabulary = files.join(output, "state", "vocabulary.parquet")
    left_out = _choose_vocabulary([told["made"] for told in added], vocabulary, options, add_to)
    ngrams = CountNgrams(work, mark, options.text, number, vocabulary, options.max_n)
    gathered = run_stage(ngrams, tasks, engine, watch)
    made = [url for told in gathered for url in told["made"]] + _state(add_to, "ngrams", before)
    adding = AddNgrams(
        work, mark_of(mark, options.min_count), tuple(made), vocabulary, options.max_n, options.min_count, output
    )
    ended = run_stage(adding, part_tasks, engine, watch)
    kept = _write_unigrams(vocabulary, output, options, number)
    for folder, told in (("words", added), ("ngrams", ended)):
        for record in told:
            _copy(record["made"], files.join(output, "state", folder, record["made"].rsplit("/", 1)[-1]))
    totals = {
        "documents": sum(told["documents"] for told in counted),
        "sentences": sum(told["sentences"] for told in gathered),
        "words": sum(told["words"] for told in counted),
    }
    for name in totals:
        totals[name] += before[name] if before else 0
    description = {
        "kind": KIND,
        "version": VERSION,
        "by": f"corpusveil {metadata.version('corpusveil')}",
        "tokenizer": TOKENIZER_VERSION,
        "options": {"max_n": options.max_n, "min_count": options.min_count, "text": options.text},
        **totals,
        "different_words": sum(told["different"] for told in added),
        "ngrams": kept + sum(told["kept"] for told in ended),
        "words_left_out": left_out,
        "parts": number,
        "digest": mark_of(mark, options.min_count),
        "inputs": [*(before["inputs"] if before else []), *inputs_counted],
    }
    files.write_bytes(files.join(output, ARTIFACT), (json.dumps(description, indent=1) + "\n").encode())
    files.remove_folder(work)
    return description


def _parts(size: int) -> int:
    """Return into how many parts counts are parted: a power of two."""
    wanted = max(4, size // PART_BYTES)
    return min(MOST_PARTS, 1 << (int(wanted) - 1).bit_length())


def _refuse_counted(before: dict[str, Any] | None, inputs: Sequence[dict[str, str]]) -> None:
    known = {one["digest"]: one["path"] for one in before["inputs"]} if before else {}
    for one in inputs:
        if one["digest"] in known:
            raise UserError(
                f"{one['path']}: this shard is in the counts already, as {known[one['digest']]}; leave it out."
            )


def _state(url: str | None, folder: str, before: dict[str, Any] | None) -> list[str]:
    if url is None or before is None:
        return []
    address = files.join(url, "state", folder)
    found = [files.join(address, name) for name in files.listing(address)]
    if len(found) != before["parts"]:
        raise UserError(f"{url}: its state, which shards are added to, is not complete; count everything again.")
    return found


def _choose_vocabulary(made: Sequence[str], url: str, options: CountOptions, add_to: str | None) -> int:
    """Write the words that n-grams are counted over, most frequent first; return how many frequent ones are left out.

    All words are taken where keys can hold them, so that later shards can be added. Those of earlier counts keep their
    ids; a word that earlier shards have but their vocabulary lacks is left out, since its n-grams there are not known.
    """
    most = most_words(options.max_n)
    words = pa.concat_tables([_read_words(one) for one in made])
    words = words.take(pc.sort_indices(words, [("count", "descending"), ("word", "ascending")]))
    if not words.num_rows:
        raise UserError("The corpus has no words; name one with text, or the column that holds it with --text.")
    often = int(np.count_nonzero(words["count"].to_numpy() >= options.min_count))
    left_out = 0
    if add_to is not None:
        old = _read_vocabulary(files.join(add_to, "state", "vocabulary.parquet"))["word"]
        found = pc.index_in(words["word"], value_set=old.combine_chunks())
        fresh = words.filter(pc.is_null(found))
        seen = pa.concat_tables([_read_words(one) for one in _state(add_to, "words", read_artifact(add_to))])
        known = pc.is_in(fresh["word"], value_set=seen["word"].combine_chunks())
        lost = fresh.filter(known)
        left_out = int(np.count_nonzero(lost["count"].to_numpy() >= options.min_count))
        counts = words["count"].take(pc.index_in(old, value_set=words["word"].combine_chunks()))
        words = pa.concat_tables(
            [pa.table({"word": old, "count": counts}), fresh.filter(pc.invert(known)).select(["word", "count"])]
        )
        often = min(often, int(np.count_nonzero(words["count"].to_numpy() >= options.min_count)))
    if often > most:
        raise UserError(
            f"{often:,} words occur {options.min_count} times or more, and n-grams of up to {options.max_n} words hold "
            f"{most:,} different ones; raise --min-count or lower --max-n."
        )
    if not often:
        raise UserError(f"No word occurs {options.min_count} times; lower --min-count or count more text.")
    chosen = words.slice(0, most).select(["word", "count"])
    with files.open_write(url) as file:
        pq.write_table(chosen, file, compression="zstd")
    return left_out


def _read_words(url: str) -> pa.Table:
    with files.open_read(url) as file:
        return pq.read_table(file, columns=["word", "count"])


def _write_unigrams(vocabulary: str, output: str, options: CountOptions, number: int) -> int:
    table = _read_vocabulary(vocabulary)
    table = table.filter(pc.greater_equal(table["count"], options.min_count))
    lengths = np.ones(table.num_rows, dtype=np.int8)
    _write_part(output, 0, number + 1, _table(table["word"].chunks, lengths, table["count"].to_numpy()))
    return int(table.num_rows)


def _copy(source: str, target: str) -> None:
    with files.open_read(source) as file, files.open_write(target) as copy:
        while data := file.read(CHUNK_BYTES):
            copy.write(data)

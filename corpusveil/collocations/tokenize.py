"""A corpus as token shards: Parquet with a row per document, and LineSentence text with a line per sentence."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from corpusveil.choices import Hyphens
from corpusveil.collocations.artifact import WORK, make_once, of_language, remove_others
from corpusveil.collocations.collocation_table import Collocations, load_collocations
from corpusveil.collocations.corpus_shards import Read, ShardStage, inputs_of, refuse_changed
from corpusveil.collocations.tokenizers import METHODS, units
from corpusveil.collocations.word_counts import COUNTS, most_frequent, summed, written
from corpusveil.errors import SettingError, no_words
from corpusveil.storage import files
from corpusveil.storage.compression import Blocks
from corpusveil.storage.durable import mark_of, run
from corpusveil.storage.engine import Engine
from corpusveil.storage.inputs import find_shards, refuse_within
from corpusveil.storage.parquet import read_table, write_table
from corpusveil.storage.tasks import ShardTask, plan
from corpusveil.text.classes import TOKENIZER_VERSION, WORD
from corpusveil.text.languages import version_of
from corpusveil.text.sentences import sentence_ends
from corpusveil.text.tokens import Tokenizer, Tokens

VERSION = 1
How = Literal["word", "gst", "mst"]


class Tokenized(Read):
    """The tokens of a shard."""

    sentences: int
    words: int
    tokens: int
    made: str


@dataclass(frozen=True, slots=True)
class TokenizeShard(ShardStage[Tokenized]):
    """Tokenize a shard."""

    name: ClassVar[str] = "tokens"

    method: How
    collocations: str | None
    output: str
    hyphens: Hyphens = "split"
    language: str | None = None

    def do_task(self, task: ShardTask) -> dict[str, Any]:
        part = f"part-{task.shard:05d}-of-{task.shards:05d}"
        read: dict[str, Any] = {"sentences": 0, "words": 0, "tokens": 0}
        counts: list[pa.Table] = []
        schema = pa.schema([("tokens", pa.list_(pa.string()))])
        with (
            files.open_write(files.join(self.output, "tokens", f"{part}.parquet")) as sink,
            files.open_write(files.join(self.output, "lines", f"{part}.txt.gz")) as text,
            pq.ParquetWriter(sink, schema, compression="zstd") as writer,
        ):
            lines = Blocks(text, ".gz")
            for texts in self.texts(task, read):
                tokens, stops, lengths = self._segmented(texts)
                text_lines, lists, flat = written(tokens, stops, lengths)
                lines.write(text_lines)
                writer.write_table(pa.table([lists.cast(schema.field(0).type)], schema=schema))
                counts.append(pa.table(list(flat.value_counts().flatten()), schema=COUNTS))
                read["sentences"] += text_lines.count(b"\n")
                read["words"] += int(np.count_nonzero(tokens.classes == WORD))
                read["tokens"] += len(flat)
            if not read["documents"]:
                lines.write(b"")  # a gzip file is never empty
            lines.end()
        url = self.address("made", f"{part}.parquet")
        write_table(summed(counts), url)
        return {**read, "made": url}

    def _segmented(self, texts: pa.Array) -> tuple[Tokens, npt.NDArray[np.bool_], npt.NDArray[np.int8]]:
        if self.method == "word":
            tokens = Tokenizer.of_words([], self.hyphens, self.language).tokenize(texts)
            return tokens, sentence_ends(tokens), np.ones(len(tokens), dtype=np.int8)
        table, tokenizer = _opened(str(self.collocations))
        tokens = tokenizer.tokenize(texts)
        segments, stops = units(tokens, tokens.ids, table, self.method)
        return tokens, stops, segments.lengths


@functools.lru_cache(maxsize=1)
def _opened(url: str) -> tuple[Collocations, Tokenizer]:
    table = load_collocations(url)
    return table, Tokenizer.of_words(table.words, table.hyphens, table.reading.language)


def tokenize_corpus(
    inputs: Sequence[str],
    output: str,
    engine: Engine,
    method: How = "word",
    collocations: str | None = None,
    *,
    text: str = "text",
    hyphens: Hyphens | None = None,
    language: str | None = None,
) -> dict[str, Any]:
    """Tokenize a corpus into the artifact ``output``; return its description.

    ``method``: ``word``, or ``gst`` or ``mst``, which need ``collocations``. ``tokens/part-*.parquet`` has ``tokens:
    list<string>``, a row per document; ``lines/part-*.txt.gz`` a sentence per line; ``counts.parquet`` the count of
    each token. Only words are kept, in lower case, collocations joined by ``_``. ``hyphens`` and ``language`` are those
    of the collocation table by default. A repeated call does nothing when all is done.

    Raises UserError if the input is wrong, if the table is missing, or if it was read with other hyphens; WorkError if
    another run is in progress.

    >>> tokenized = cv.tokenize_corpus(["public.txt"], "tokens", cv.Local(), "gst", "table")
    """
    output = files.absolute(output)
    if method not in ("word", *METHODS):
        raise SettingError(f"tokenizer = {method!r}: choose one of word, {', '.join(METHODS)}.")
    if (method == "word") != (collocations is None):
        need = "needs none" if method == "word" else "needs one"
        raise SettingError(f"tokenizer = {method}: this tokenizer {need} collocation table.")
    digest = None
    if collocations is not None:
        collocations = files.absolute(collocations)
        table = load_collocations(collocations)
        digest = table.digest
        if hyphens not in (None, table.hyphens):
            raise SettingError(f"hyphens = {hyphens}: the collocations were counted with {table.hyphens}.")
        if language not in (None, table.reading.language):
            raise SettingError(
                f"language = {language}: the collocations were counted with {table.reading.language}; count again."
            )
        hyphens, language = table.hyphens, table.reading.language
    hyphens = hyphens or "split"
    shards = find_shards(inputs)
    refuse_within(inputs, shards, output, "output")
    tasks = plan(shards, None, None)
    sizes = [(shard.relative, shard.size) for shard in shards]
    read = [hyphens, *([] if language is None else [language])]
    mark = mark_of(VERSION, TOKENIZER_VERSION + version_of(language), method, digest, text, sizes, *read)
    stage = TokenizeShard(files.join(output, WORK), mark, text, method, collocations, output, hyphens, language)

    def make_artifact() -> dict[str, Any]:
        records = run(stage, tasks, engine)
        for folder, suffix in (("tokens", "parquet"), ("lines", "txt.gz")):
            remove_others(files.join(output, folder), f"-of-{len(tasks):05d}.{suffix}")
        names = ("documents", "sentences", "words", "tokens")
        totals = {name: sum(getattr(record, name) for record in records) for name in names}
        if not totals["tokens"]:
            raise no_words()
        counts = most_frequent(summed(read_table(record.made) for record in records))
        write_table(counts.rename_columns(["token", "count"]), files.join(output, "counts.parquet"))
        return {
            "method": method,
            "collocations": digest,
            "hyphens": hyphens,
            **of_language(language),
            **totals,
            "different_tokens": counts.num_rows,
            "shards": len(tasks),
            "inputs": inputs_of(tasks, records),
        }

    return make_once(
        output, "tokens", mark, make_artifact, lambda earlier: refuse_changed(output, shards, earlier["inputs"])
    )

"""Building a store of public texts: which pieces are cut from them, which are fit, and which of these are taken.

A *piece* begins with a sentence, to which the next ones are added until it has the least number of words; if it then
has more than the most, it is left out. Only fit sentences go into it, and none from another line: what stands there may
be a heading. A sentence, and a piece read alone, is *fit* if it ends as sentences end, and has no number, contact,
symbol, span that the recognizers ``rules`` and ``names`` find, or excluded word; and nine in ten words of a piece are
words of the space. Equal pieces (``normalized``) are one, in the spelling that sorts first.

Taken are the pieces with the smallest salted BLAKE2b of their normal form, in its order. The salt is drawn after the
texts were collected: nobody can write texts that are sure to be taken. Samples are nested, and are the same on every
engine and in every split, since a task keeps at most as many pieces as the store will have and a few to measure with.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import re
import secrets
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusveil.arrays import Bool, Int64
from corpusveil.collocations.artifact import WORK, make_once
from corpusveil.collocations.corpus_shards import Read, ShardStage, inputs_of, refuse_changed
from corpusveil.compiled import compiled
from corpusveil.errors import BadValueError, below_least
from corpusveil.passages import pieces as piece_rules
from corpusveil.passages.encoder import mean_vectors
from corpusveil.passages.figures import LEFT_OUT, figures_of
from corpusveil.passages.pieces import normalized, pieces_of
from corpusveil.passages.store import Store, load_store
from corpusveil.recognizers import registry
from corpusveil.spaces import Space
from corpusveil.spaces.installed import excluded_words
from corpusveil.storage import files
from corpusveil.storage.artifacts import described
from corpusveil.storage.durable import StageWatch, mark_of, run, stem
from corpusveil.storage.engine import Engine, Here
from corpusveil.storage.inputs import Address, addresses, find_shards
from corpusveil.storage.parquet import read_table, write_table
from corpusveil.storage.tasks import ShardTask, plan
from corpusveil.text import classes
from corpusveil.text.characters import DIGIT
from corpusveil.text.output_words import concatenate
from corpusveil.text.sentences import closes, terminal
from corpusveil.text.spans import Spans
from corpusveil.text.tokens import Tokenizer, Tokens, string_buffers
from corpusveil.text.utf8 import KINDS, decode, kind_of
from corpusveil.text.word_table import WordTable

VERSION = 1
"""Goes up whenever the same texts and salt would give another store."""
RECOGNIZERS = ("rules", "names")
KNOWN = (9, 10)
"""At least this share of the words of a piece are words of the space."""
SALT_BYTES = 16
SPARE = LEFT_OUT + LEFT_OUT // 2
"""Pieces beyond those of the store that a task keeps: some to measure with, and near duplicates of the store."""
_FAULTS = ("", "number", "contact", "symbol", "excluded word", "end", "unknown words")
_END, _UNKNOWN = _FAULTS.index("end"), _FAULTS.index("unknown words")
_OF_CLASS: Any = np.zeros(len(classes.CLASS_NAMES), np.int8)
_OF_CLASS[[classes.NUMBER, classes.CONTACT, classes.OTHER]] = 1, 2, 3
_EMPTY = pa.table({"key": pa.array([], pa.binary()), "text": pa.array([], pa.large_string())})


@dataclass(frozen=True, slots=True)
class Pieces:
    """What decides which pieces a text gives: a space, and the least and most words, or None for texts as they are."""

    space: Space
    words: tuple[int, int] | None
    excluded: tuple[str, ...]

    def of(self, texts: pa.Array, refused: Counter[str]) -> list[str]:
        """Return the fit pieces of texts, large_string [D] without nulls, and count what was refused by its fault."""
        if self.words is not None:
            texts = self._cut(texts, refused)
        tokens = self.tools[0].tokenize(texts)
        fits = self._fits(tokens, tokens.offsets, refused, alone=True)
        return [" ".join(text.split()) for text in texts.filter(pa.array(fits)).to_pylist()]

    @property
    def tools(self) -> tuple[Tokenizer, list[Any], int]:
        return _tools(self.space, self.excluded)

    def _cut(self, texts: pa.Array, refused: Counter[str]) -> pa.Array:
        """Return the runs of fit sentences."""
        cut = pieces_of(self.tools[0], *string_buffers(texts), "sentence")
        tokens, bounds = cut.tokens, cut.bounds
        if not len(cut):
            return texts.slice(0, 0)
        starts, ends = tokens.starts[bounds[:-1]], tokens.ends[bounds[1:] - 1]
        lines = _before((tokens.data == 0x0A) | (tokens.data == 0x0D))
        apart = np.ones(len(cut), np.bool_)
        apart[1:] = (lines[starts[1:]] > lines[ends[:-1]]) | (np.diff(cut.documents) > 0)
        sizes = np.diff(_before(tokens.classes == classes.WORD)[bounds])
        least, most = self.words or (0, 0)
        fits = self._fits(tokens, bounds, refused, alone=False)
        firsts, lasts = np.empty(len(cut), np.int64), np.empty(len(cut), np.int64)
        n = _join(fits & (sizes <= most), apart, sizes, least, most, firsts, lasts)
        raw, spans = tokens.data.tobytes(), zip(starts[firsts[:n]].tolist(), ends[lasts[:n]].tolist(), strict=True)
        return pa.array([raw[start:end] for start, end in spans], pa.large_binary()).cast(pa.large_string())

    def _fits(self, tokens: Tokens, bounds: Int64, refused: Counter[str], *, alone: bool) -> Bool:
        """Say which runs of tokens are fit, with bounds int64 [P + 1] -> bool [P]."""
        _, recognizers, size = self.tools
        faults = _OF_CLASS[tokens.classes]
        digits = np.zeros(len(tokens), np.bool_)
        _digits(tokens.data, tokens.starts, tokens.ends, KINDS, digits)
        faults[digits & (faults == 0)] = 1
        faults[tokens.ids >= size] = _FAULTS.index("excluded word")
        # The recognizers look ids up in the space alone.
        tokens = dataclasses.replace(tokens, ids=np.where(tokens.ids < size, tokens.ids, np.int32(-1)))
        spans = Spans.joined(recognizer(tokens) for recognizer in recognizers)
        firsts = np.searchsorted(tokens.ends, spans.starts, "right")
        for first, last, kind in zip(
            firsts.tolist(), np.searchsorted(tokens.starts, spans.ends, "left").tolist(), spans.kinds.tolist(),
            strict=True,
        ):  # fmt: skip
            faults[first:last] = len(_FAULTS) + kind
        names = (*_FAULTS, *spans.names)
        out = np.empty(bounds.size - 1, np.int8)
        unsound = (tokens.data, tokens.starts, tokens.ends, tokens.classes)
        _worst(*unsound, faults, bounds, _END, out)
        if alone:
            words = tokens.classes == classes.WORD
            known, every = (np.diff(_before(some)[bounds]) for some in (words & (tokens.ids >= 0), words))
            out[(out == 0) & ((known * KNOWN[1] < every * KNOWN[0]) | (every == 0))] = _UNKNOWN
        for fault, count in enumerate(np.bincount(out, minlength=1).tolist()):
            if fault and count:
                refused[names[fault]] += count
        return np.asarray(out == 0)


@functools.lru_cache(maxsize=2)
def _tools(space: Space, excluded: tuple[str, ...]) -> tuple[Tokenizer, list[Any], int]:
    """Return a tokenizer that knows excluded words behind those of the space, recognizers, and the space's size."""
    forms = sorted({form for word in excluded for form in (word, f"{word}'s")})
    more, offsets = concatenate([form.encode() for form in forms])
    own = space.vocabulary.offsets.astype(np.int64)
    table = WordTable.build(np.concatenate([space.vocabulary.text, more]), np.append(own, offsets[1:] + own[-1]))
    made = [registry.make(name, space) for name in RECOGNIZERS]
    return Tokenizer(table, space.hyphens or "split", space.language), made, len(space)


def _before(marks: Bool) -> Int64:
    """Return how many marks are before each place, int64 [n + 1]."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(marks, dtype=np.int64)])


@compiled
def _digits(data: Any, starts: Any, ends: Any, kinds: Any, out: Any) -> None:
    for t in range(starts.size):
        at, end = np.int64(starts[t]), np.int64(ends[t])
        while at < end and not out[t]:
            code, length = decode(data, at, end)
            out[t] = kind_of(code, kinds) == DIGIT
            at += length


@compiled
def _worst(data: Any, starts: Any, ends: Any, kinds: Any, faults: Any, bounds: Any, no_end: Any, out: Any) -> None:
    """Write the last fault of each run's tokens, or that its end, but for closing marks, is not that of a sentence."""
    for piece in range(out.size):
        out[piece] = 0
        for t in range(bounds[piece], bounds[piece + 1]):
            if faults[t] > 0:
                out[piece] = faults[t]
        ended = False
        for t in range(bounds[piece + 1] - 1, bounds[piece] - 1, -1):
            code, _ = decode(data, np.int64(starts[t]), np.int64(ends[t]))
            ended = kinds[t] == classes.PUNCTUATION and terminal(code) > 0
            if ended or not closes(code):
                break
        if out[piece] == 0 and not ended:
            out[piece] = no_end


@compiled
def _join(fits: Any, apart: Any, sizes: Any, least: Any, most: Any, firsts: Any, lasts: Any) -> Any:
    n, first, total = 0, 0, 0
    for sentence in range(fits.size):
        if apart[sentence] or not fits[sentence]:
            first, total = sentence, 0
        if not fits[sentence]:
            first = sentence + 1
            continue
        total += sizes[sentence]
        if total >= least:
            if total <= most:
                firsts[n], lasts[n] = first, sentence
                n += 1
            first, total = sentence + 1, 0
    return n


class Taken(Read):
    """The pieces of a shard with the smallest hashes: their address, how many were fit, and what was refused."""

    made: str
    fit: int
    refused: dict[str, int]


@dataclass(frozen=True, slots=True)
class Take(ShardStage[Taken]):
    """Cut a shard into pieces, and write at most ``most`` of them, ``key`` and ``text``, in the order of their keys."""

    name: ClassVar[str] = "pieces"

    pieces: Pieces
    salt: str
    most: int

    def make(self, task: ShardTask) -> dict[str, Any]:
        read: dict[str, Any] = {}
        refused: Counter[str] = Counter()
        salt, last, fit = bytes.fromhex(self.salt), b"\xff" * SALT_BYTES, 0
        taken, waiting = _EMPTY, [_EMPTY]
        for texts in self.texts(task, read):
            fitting = self.pieces.of(texts, refused)
            fit += len(fitting)
            keys = [hash_of(text, salt) for text in fitting]
            small = [(key, text) for key, text in zip(keys, fitting, strict=True) if key <= last]
            waiting.append(pa.table(list(map(list, zip(*small, strict=True))) or [[], []], schema=_EMPTY.schema))
            if sum(map(len, waiting)) > self.most:
                taken, waiting = smallest([taken, *waiting], self.most), []
                last = taken["key"][-1].as_py() if len(taken) == self.most else last
        url = self.address("made", f"{stem(task)}.parquet")
        write_table(smallest([taken, *waiting], self.most), url)
        return {**read, "made": url, "fit": fit, "refused": dict(sorted(refused.items()))}


def hash_of(piece: str, salt: bytes) -> bytes:
    """Return the salted BLAKE2b-128 of the normal form of a piece."""
    return hashlib.blake2b(normalized(piece).encode(), digest_size=16, salt=salt).digest()


def smallest(tables: Iterable[pa.Table], most: int) -> pa.Table:
    """Return the rows with the ``most`` smallest keys, each key once, with the text that sorts first."""
    table = pa.concat_tables(tables).sort_by([("key", "ascending"), ("text", "ascending")]).combine_chunks()
    keys = table["key"]
    same = pc.equal(keys.slice(1), keys.slice(0, max(len(keys) - 1, 0))).to_numpy()
    return table.filter(pa.array(np.concatenate([np.zeros(min(len(keys), 1), np.bool_), same]) == 0)).slice(0, most)


def build_store(
    inputs: Address | Sequence[Address],
    output: Address,
    space: Space,
    licence: str,
    words: tuple[int, int] | None = (4, 40),
    size: int = 100_000,
    salt: str | None = None,
    engine: Engine | None = None,
    attribution: str | None = None,
    *,
    text: str = "text",
    excluded: Sequence[str] | None = None,
    unlike: Address | Sequence[Address] = (),
    rows_per_task: int | None = None,
    watch: StageWatch | None = None,
) -> Store:
    """Make a store of at most ``size`` pieces of public texts at ``output``, and open it.

    **Pieces of a store are released word for word**: give only texts that anybody may read, under a ``licence`` that
    allows that, which the store records with ``attribution``. ``inputs`` are files, folders or globs, with texts in the
    column ``text``. A piece has the least to the most ``words``; with None, each text is one piece. ``salt`` are 16
    bytes, hexadecimal; without it, one is drawn and recorded. ``excluded`` are words that no piece has, by default
    those that the package of the space left out. ``unlike`` are other public texts, to measure what the store does not
    know. A repeated call resumes after an interruption, and does nothing when all is done.

    Raises UserError for wrong arguments or input, and if fewer than two pieces are fit; WorkError if another run is in
    progress.
    """
    url, engine = files.absolute(files.as_text(output)), engine or Here()
    _check(licence, words, size, salt)
    without = sorted(excluded_words(space.url) if excluded is None else {word.casefold() for word in excluded})
    pieces = Pieces(space, words, tuple(without))
    shards, others = find_shards(addresses(inputs)), find_shards(addresses(unlike)) if unlike else []
    split = functools.partial(plan, suffix=None, rows_per_task=rows_per_task, slots=lambda: engine.slots())  # noqa: PLW0108
    settings: list[Any] = [
        VERSION, classes.TOKENIZER_VERSION, piece_rules.VERSION, mean_vectors(space).name, words, size, text, licence,
        attribution, without, *map(registry.identity, RECOGNIZERS),
        [[(shard.relative, shard.size) for shard in some] for some in (shards, others)],
    ]  # fmt: skip
    salt = _salt(url, salt, mark_of(settings))
    settings.append(salt)
    take = Take(files.join(url, WORK), mark_of(settings), text, pieces, salt, size + SPARE)

    def make() -> dict[str, Any]:
        tasks = split(shards)
        read = run(take, tasks, engine, watch)
        every = _merged(read, take.most)
        other = _EMPTY
        if others:
            beside = dataclasses.replace(take, work=files.join(take.work, "unlike"), most=SPARE)
            other = _merged(run(beside, split(others), engine, watch), beside.most)
        store = Store.of(_texts(every.slice(0, size)), space)
        refused = sum((Counter(record.refused) for record in read), Counter[str]())
        info = {
            "licence": licence, "attribution": attribution, "salt": salt, "size": size,
            "documents": sum(record.documents for record in read), "fit": sum(record.fit for record in read),
            "filters": {
                "words": words, "known": KNOWN[0] / KNOWN[1], "recognizers": list(map(registry.identity, RECOGNIZERS)),
                "excluded": {"words": len(without), "digest": mark_of(without)},
                "refused": dict(sorted(refused.items())),
            },
            "figures": figures_of(store, _texts(every.slice(size)), _texts(other)),
            "inputs": inputs_of(tasks, read),
        }  # fmt: skip
        return dataclasses.replace(store, info=info).write(url)

    make_once(url, "store", mark_of(settings), make, lambda made: refuse_changed(url, shards, made["inputs"]))
    return load_store(url, space=space)


def _merged(records: Sequence[Taken], most: int) -> pa.Table:
    """Return the pieces of all tasks with the smallest keys, in the memory of some tasks."""
    return functools.reduce(lambda kept, record: smallest([kept, read_table(record.made)], most), records, _EMPTY)


def _texts(table: pa.Table) -> pa.LargeStringArray:
    return pa.concat_arrays([*_EMPTY["text"].chunks, *table["text"].cast(pa.large_string()).chunks])


def _check(licence: str, words: tuple[int, int] | None, size: int, salt: str | None) -> None:
    if not isinstance(licence, str) or not licence.strip() or not licence.isprintable():
        raise BadValueError("licence: say in a line under which licence the texts are public, such as CC0.")
    if words is not None and not (len(words) == 2 and 1 <= words[0] <= words[1]):
        raise BadValueError(f"words = {words}: give the least and the most words of a piece, such as (4, 40).")
    if size < 2:
        raise below_least("size", size, 2)
    if salt is not None and not re.fullmatch(f"[0-9a-f]{{{2 * SALT_BYTES}}}", salt):
        raise BadValueError(f"salt: give {2 * SALT_BYTES} hexadecimal digits, or leave it out, and one is drawn.")


def _salt(url: str, given: str | None, call: str) -> str:
    """Return the salt: that of the store that is there, of an interrupted call like this one, or a new one."""
    if given is not None:
        return given
    made = described(url)
    if made is not None and isinstance(salt := made.as_dict().get("salt"), str):
        return salt
    place = files.join(url, WORK, f"salt-{call[:16]}")
    files.create_bytes(place, secrets.token_hex(SALT_BYTES).encode())
    return files.read_bytes(place).decode()

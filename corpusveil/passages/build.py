"""Building a store of public texts: which pieces are cut from them, which are fit, and which of these are taken.

A *piece* begins with a sentence, to which the next ones are added until it has the least number of words; if it then
has more than the most, it is left out. Only fit sentences go into it, and none from another line: what stands there may
be a heading. A sentence, and a piece read alone, is *fit* if it has no number, contact, symbol, excluded word, word
that may tell of somebody (``suspicions``), or span of a recognizer that the caller names. A piece also ends as
sentences end, and nine in ten of its words are words of the space. Equal pieces (``normalized``) are one, in the
spelling that sorts first.

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
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusveil.arrays import Bool, Int32, Int64
from corpusveil.collocations.artifact import WORK, make_once
from corpusveil.collocations.corpus_shards import Read, ShardStage, inputs_of, refuse_changed
from corpusveil.compiled import compiled
from corpusveil.errors import SettingError, check_whole
from corpusveil.passages import pieces as piece_rules
from corpusveil.passages.encoder import encoder_of
from corpusveil.passages.figures import LEFT_OUT, figures_of
from corpusveil.passages.pieces import normalized, pieces_of
from corpusveil.passages.store import LEAST, Store, load_store
from corpusveil.passages.suspicions import KINDS as SUSPECT
from corpusveil.passages.suspicions import Suspicions
from corpusveil.recognizers.registry import named
from corpusveil.spaces import Space
from corpusveil.spaces.installed import excluded_words
from corpusveil.spaces.vocabulary import compared
from corpusveil.storage import files
from corpusveil.storage.artifacts import described
from corpusveil.storage.durable import mark_of, run, stem
from corpusveil.storage.engine import Engine, Here
from corpusveil.storage.inputs import Address, addresses, find_shards
from corpusveil.storage.parquet import read_table, write_table
from corpusveil.storage.tasks import ShardTask, plan
from corpusveil.text import classes
from corpusveil.text.output_words import concatenate
from corpusveil.text.spans import Function, Recognizer, Spans
from corpusveil.text.tokens import Tokenizer, Tokens, string_buffers
from corpusveil.text.word_table import WordTable

VERSION = 2
"""Goes up whenever the same texts and salt would give another store."""
KNOWN = (9, 10)
"""At least this share of the words of a piece are words of the space."""
SALT_BYTES = 16
MOST = 1 << 30
"""Pieces of a store: their ids are int32."""
SPARE = LEFT_OUT + LEFT_OUT // 2
"""Pieces beyond those of the store that a task keeps: some to measure with, and near duplicates of the store."""
_FAULTS = ("", *SUSPECT, "number", "contact", "symbol", "end", "unknown words")
_EXCLUDED, _NUMBER, _CONTACT, _SYMBOL, _END, _UNKNOWN = range(len(SUSPECT), len(_FAULTS))
_OF_CLASS = np.array([0, _NUMBER, 0, _CONTACT, _SYMBOL, 0], np.int8)
_ENDS = (
    r"[.!?\x{2026}\x{203c}\x{2047}-\x{2049}\x{61f}\x{6d4}\x{964}\x{965}\x{3002}\x{ff01}\x{ff0e}\x{ff1f}\x{ff61}]"
    r"[\p{Pf}\p{Pe}\p{Pi}\"']*\s*$"
)
_NOT_PROSE = (
    r"[\x00-\x08\x0e-\x1f\x7f\x{ad}\x{200b}\x{200e}\x{200f}\x{202a}-\x{202e}\x{2060}-\x{206f}\x{feff}"
    r"\x{e0000}-\x{e007f}\p{Co}]|''|[*_`#<>|~\\^={}\[\]]|&#?[0-9A-Za-z]+;"
)
"""Not in prose: characters that nobody sees, but for joiners of some scripts; those of private use; and markup."""
_EMPTY = pa.table({"key": pa.array([], pa.binary()), "text": pa.array([], pa.large_string())})


@dataclass(frozen=True, slots=True)
class PublicPieces:
    """The settings that decide the pieces of a text: a space, and the least and most words (None: whole texts)."""

    space: Space
    words: tuple[int, int] | None
    excluded: tuple[str, ...]
    refuse: tuple[str | Function, ...] = ()
    """Recognizers whose spans no sentence may have."""
    suspect: bool = True
    """Refuse words that may tell of somebody."""

    def fit_pieces(self, texts: pa.Array, refused: Counter[str]) -> list[str]:
        """Return the fit pieces of texts, large_string [D] without nulls.

        ``refused`` counts sentences and pieces by their faults, and documents that give no piece.
        """
        every, documents = len(texts), np.arange(len(texts), dtype=np.int32)
        if self.words is not None:
            texts, documents = self._cut(texts, *self.words, refused)
        tools = _tools(self.space, self.excluded, self.refuse)
        read = pieces_of(tools.tokenizer, *string_buffers(texts), "sentence")
        tokens = read.tokens
        faults, names = self._faults(tools, tokens, tokens.offsets, read.bounds)
        words = tokens.classes == classes.WORD
        known = words & (tokens.ids >= 0) & (tokens.ids < len(self.space))
        few, all_words = (np.diff(_before(some)[tokens.offsets]) for some in (known, words))
        for fault, fits in (
            (_SYMBOL, ~pc.match_substring_regex(texts, _NOT_PROSE).to_numpy(zero_copy_only=False)),
            (_NUMBER, ~pc.match_substring_regex(texts, r"\pN").to_numpy(zero_copy_only=False)),
            (_END, pc.match_substring_regex(texts, _ENDS).to_numpy(zero_copy_only=False)),
            (_UNKNOWN, (few * KNOWN[1] >= all_words * KNOWN[0]) & (all_words > 0)),
        ):
            faults[(faults == 0) & ~fits.astype(np.bool_)] = fault
        _count("pieces", faults, names, refused)
        refused["documents: no piece"] += every - len(np.unique(documents[faults == 0]))
        return [" ".join(text.split()) for text in texts.filter(pa.array(faults == 0)).to_pylist()]

    def _cut(self, texts: pa.Array, least: int, most: int, refused: Counter[str]) -> tuple[pa.Array, Int32]:
        tools = _tools(self.space, self.excluded, self.refuse)
        cut = pieces_of(tools.tokenizer, *string_buffers(texts), "sentence")
        tokens, bounds = cut.tokens, cut.bounds
        starts, ends = tokens.starts[bounds[:-1]], tokens.ends[bounds[1:] - 1]
        lines = _before((tokens.data == 0x0A) | (tokens.data == 0x0D))
        apart = (lines[starts[1:]] > lines[ends[:-1]]) | (np.diff(cut.documents) > 0)
        sizes = np.diff(_before(tokens.classes == classes.WORD)[bounds])
        faults, names = self._faults(tools, tokens, bounds, bounds)
        _count("sentences", faults, names, refused)
        firsts, lasts = np.empty(len(cut), np.int64), np.empty(len(cut), np.int64)
        n = _join((faults == 0) & (sizes <= most), apart, sizes, least, most, firsts, lasts)
        raw, runs = tokens.data.tobytes(), zip(starts[firsts[:n]].tolist(), ends[lasts[:n]].tolist(), strict=True)
        pieces = pa.array([raw[start:end] for start, end in runs], pa.large_binary()).cast(pa.large_string())
        return pieces, cut.documents[firsts[:n]]

    def _faults(self, tools: _Tools, tokens: Tokens, bounds: Int64, sentences: Int64) -> tuple[Any, tuple[str, ...]]:
        """Return the worst fault of the tokens of each run, with bounds int64 [P + 1] -> int8 [P]; and their names."""
        size, faults = len(self.space), _OF_CLASS[tokens.classes]
        if self.suspect:
            faults = np.maximum(faults, tools.suspicions.marks(tokens, sentences))
        faults[tools.barred[tokens.ids]] = _EXCLUDED
        # The recognizers look ids up in the space alone.
        tokens = dataclasses.replace(tokens, ids=np.where(tokens.ids < size, tokens.ids, np.int32(-1)))
        spans = Spans.joined(find(tokens) for find in tools.recognizers)
        firsts = np.searchsorted(tokens.ends, spans.starts, "right").tolist()
        lasts = np.searchsorted(tokens.starts, spans.ends, "left").tolist()
        for first, last, kind in zip(firsts, lasts, spans.kinds.tolist(), strict=True):
            faults[first:last] = len(_FAULTS) + kind
        worst = np.maximum.reduceat(np.append(faults, np.int8(0)), bounds)[:-1]
        return np.where(np.diff(bounds) > 0, worst, 0), (*_FAULTS, *spans.names)


class _Tools(NamedTuple):
    """A tokenizer that also knows excluded words, the finders of faults, and the ids of excluded words."""

    tokenizer: Tokenizer
    suspicions: Suspicions
    recognizers: list[Recognizer]
    barred: Bool


@functools.lru_cache(maxsize=2)
def _tools(space: Space, excluded: tuple[str, ...], refuse: tuple[str | Function, ...]) -> _Tools:
    forms = sorted({form for word in excluded for form in (word, f"{word}'s")})
    more, offsets = concatenate([form.encode() for form in forms])
    own = space.vocabulary.offsets.astype(np.int64)
    table = WordTable.build(np.concatenate([space.vocabulary.text, more]), np.append(own, offsets[1:] + own[-1]))
    barred = np.array([*map(set(forms).__contains__, space.vocabulary.words), *(True for _ in forms)], np.bool_)
    made = [named(name).make(space) for name in refuse]
    tokenizer = Tokenizer(table, space.hyphens or "split", space.language)
    return _Tools(tokenizer, Suspicions(space, excluded), made, np.append(barred, False))


def _before(marks: Bool) -> Int64:
    """Return how many marks are before each place, int64 [n + 1]."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(marks, dtype=np.int64)])


def _count(what: str, faults: Any, names: Sequence[str], refused: Counter[str]) -> None:
    for fault in faults[np.flatnonzero(faults)]:
        refused[f"{what}: {names[fault]}"] += 1


@compiled
def _join(fits: Any, apart: Any, sizes: Any, least: Any, most: Any, firsts: Any, lasts: Any) -> Any:
    """Write the first and last sentence of each piece, and return how many there are; ``apart`` bool [S - 1]."""
    n, first, total = 0, 0, 0
    for sentence in range(fits.size):
        if not fits[sentence] or (sentence > 0 and apart[sentence - 1]):
            first, total = sentence, 0
        if fits[sentence]:
            total += sizes[sentence]
        if least <= total <= most:
            firsts[n], lasts[n] = first, sentence
            n += 1
        if total >= least or not fits[sentence]:
            first, total = sentence + 1, 0
    return n


class Taken(Read):
    """The pieces of a shard with the smallest hashes: their address, how many were fit, and the reasons of refusals."""

    made: str
    fit: int
    refused: dict[str, int]


@dataclass(frozen=True, slots=True)
class Take(ShardStage[Taken]):
    """Cut a shard into pieces, and write at most ``most`` of them, ``key`` and ``text``, in the order of their keys."""

    name: ClassVar[str] = "pieces"

    pieces: PublicPieces
    salt: str
    most: int

    def do_task(self, task: ShardTask) -> dict[str, Any]:
        read: dict[str, Any] = {}
        refused: Counter[str] = Counter()
        salt, last, fit = bytes.fromhex(self.salt), b"\xff" * SALT_BYTES, 0
        waiting = [_EMPTY]
        for texts in self.texts(task, read):
            fitting = self.pieces.fit_pieces(texts, refused)
            fit += len(fitting)
            keys = [hash_of(text, salt) for text in fitting]
            some = pa.table([keys, fitting], schema=_EMPTY.schema)
            waiting.append(some.filter(pc.less_equal(some["key"], last)))
            if sum(map(len, waiting)) > 2 * self.most:
                waiting = [smallest(waiting, self.most)]
                last = waiting[0]["key"][-1].as_py()
        url = self.address("made", f"{stem(task)}.parquet")
        write_table(smallest(waiting, self.most), url)
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
    encoder: str | None = None,
    refuse: Sequence[str | Function] = (),
    suspect: bool = True,
    rows_per_task: int | None = None,
) -> Store:
    """Make a store of at most ``size`` passages of public texts at ``output``, and open it.

    **Passages are released word for word**: give only texts that anybody may read, under a ``licence`` that allows
    that; it is recorded with ``attribution``. ``inputs`` are files, folders or globs with a column ``text``. A passage
    has the fewest to the most ``words``; with None, each text is one. ``salt``: 32 hexadecimal digits, drawn and
    recorded if not given. ``excluded``: words that no passage may have, by default those that the space's package left
    out. ``refuse``: recognizers whose spans no passage may have. ``suspect=False`` admits words that may name a
    person; use it for texts about nobody. ``encoder``: a name among ``corpusveil.encoders``, if not the built-in one. A
    repeated call resumes, and does nothing when all is done.

    Raises UserError for wrong arguments or input, and if fewer than two passages are fit; WorkError if another run is
    in progress.

    >>> store = cv.build_store("public.txt", "store", space, "CC0-1.0", suspect=False)
    >>> len(cv.load_store("store", space=space)) == len(store)
    True
    """
    url, engine = files.absolute(files.as_text(output)), engine or Here()
    if not isinstance(licence, str) or not licence.strip() or not licence.isprintable():
        raise SettingError("licence: say in a line under which license the texts are public, such as CC0.")
    if attribution is not None and not (isinstance(attribution, str) and attribution.isprintable()):
        raise SettingError("attribution: say in a line whom to name, or leave it out.")
    match words:
        case None:
            pass
        case [int(least), int(most)] if 1 <= least <= most:
            words = (least, most)
        case _:
            raise SettingError(f"words = {words}: give the least and the most words of a piece, such as (4, 40).")
    check_whole("size", size, LEAST, MOST)
    if salt is not None and not re.fullmatch(f"[0-9a-f]{{{2 * SALT_BYTES}}}", salt):
        raise SettingError(f"salt: give {2 * SALT_BYTES} hexadecimal digits, or leave it out, and one is drawn.")
    without = sorted(excluded_words(space.url) if excluded is None else {compared(word) for word in excluded})
    shards = find_shards(addresses(inputs))
    refuse = tuple(refuse)
    marks = [*(named(name).mark for name in refuse), suspect]
    settings = [
        VERSION, classes.TOKENIZER_VERSION, piece_rules.VERSION, encoder_of(space, encoder).name, words, size, text,
        licence, attribution, without, marks,
        [(shard.relative, shard.size) for shard in shards],
    ]  # fmt: skip
    salt = _salt(url, salt, mark_of(settings))
    call = mark_of(settings, salt)
    take = Take(
        files.join(url, WORK),
        call,
        text,
        PublicPieces(space, words, tuple(without), refuse, suspect),
        salt,
        size + SPARE,
    )

    def make_artifact() -> dict[str, Any]:
        tasks = plan(shards, None, rows_per_task, lambda: engine.slots())  # noqa: PLW0108 - only asked when it matters
        read = run(take, tasks, engine)
        # One after the other: in the memory of two tasks.
        every = functools.reduce(
            lambda kept, record: smallest([kept, read_table(record.made)], take.most), read, _EMPTY
        )
        texts = pa.concat_arrays(every["text"].chunks or [pa.array([], pa.large_string())])
        store = Store.from_texts(texts.slice(0, size), space, encoder=encoder)
        refused = sum((Counter(record.refused) for record in read), Counter[str]())
        info = {
            "encoder": store.encoder.name, "licence": licence, "attribution": attribution, "salt": salt, "size": size,
            "words": words,
            "known": KNOWN[0] / KNOWN[1], "recognizers": [named(name).identity for name in refuse], "suspect": suspect,
            "excluded": len(without),
            "documents": sum(record.documents for record in read), "fit": sum(record.fit for record in read),
            "refused": dict(sorted((+refused).items())),
            "figures": figures_of(store, texts.slice(size)), "inputs": inputs_of(tasks, read),
        }  # fmt: skip
        return dataclasses.replace(store, info=info).write(url)

    make_once(url, "store", call, make_artifact, lambda made: refuse_changed(url, shards, made["inputs"]))
    return load_store(url, space=space, encoder=encoder)


def _salt(url: str, given: str | None, call: str) -> str:
    """Return the salt: that of the store that is there, of an interrupted call like this one, or a new one."""
    if given is not None:
        return given
    if (made := described(url)) is not None:
        return str(made.as_dict().get("salt"))
    place = files.join(url, WORK, f"salt-{call[:16]}")
    files.create_bytes(place, secrets.token_hex(SALT_BYTES).encode())
    return files.read_bytes(place).decode()

"""Keyed draws: every random number is a function of (key, release, document, token position, purpose, attempt).

A document's tag is a 128-bit keyed BLAKE2b over its column, id and content. The block of a draw is
``AES-128(tag + (token << 64 | purpose << 32 | attempt) mod 2^128)``, and the draw is its first 64 bits (a
second draw the others), all read as little-endian integers. A retry, a speculative copy or another engine draws the
same numbers; without the key they are unpredictable (PRF assumption on AES).
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from corpusveil.arrays import Int64, Integers, Scratch, UInt8, UInt64
from corpusveil.compiled import compiled, njit, u
from corpusveil.errors import ChangedError
from corpusveil.sampling.blake2b import keyed_digests
from corpusveil.sampling.keys import Key

AES_BYTES = 16
_SIZE = struct.Struct("<Q")
TAG_KEY_BYTES = 32
_AT_ONCE = 1 << 14
"""Blocks that are encrypted at once: they stay in the cache."""

MECHANISM, RESAMPLE, NOISE, TERM, EXCHANGE = 1, 2, 3, 4, 8
"""Purposes of draws. A number is never given a second meaning; 5 to 7 had one until version 0.6."""

_scratch = Scratch()


def encode_id(identity: Any) -> bytes:
    """Encode a document id, so that "1" and row 1 are two documents; an integer is its digits, as in a form of text.

    A tuple is a row number after the names of its place, such as (corpus, path, row).
    """
    if isinstance(identity, tuple):
        *place, row = identity
        return b"r" + _SIZE.pack(row) + _encode_place(*place)
    if isinstance(identity, bytes):  # of texts whose noise is the same; no caller can give it
        return b"b" + identity
    return b"s" + _utf8(str(identity))


def _utf8(name: str) -> bytes:
    return name.encode("utf-8", "surrogatepass")  # a path need not be text


def _prefixed(part: bytes) -> bytes:
    # Without lengths, another column and id could have the bytes of these two together, and so the same noise.
    return _SIZE.pack(len(part)) + part


@functools.lru_cache(maxsize=64, typed=True)
def _encode_place(*place: Any) -> bytes:
    """Encode the names of the place of a row, which are those of thousands of rows."""
    return b"".join(_prefixed(_utf8(str(name))) for name in place)


def keyed_tags(key: bytes, column: str, identities: Sequence[Any], data: UInt8, documents: Int64) -> UInt64:
    """Return BLAKE2b-128 of column name, id and bytes of each document under a key; uint64 [D, 2], low half first."""
    before, pack = _prefixed(_utf8(column)), _SIZE.pack
    heads: list[bytes] = []
    of_rows: dict[tuple[str, ...], tuple[bytes, bytes]] = {}  # what is before and after the row number in a place
    for identity, size in zip(identities, np.diff(documents).tolist(), strict=True):
        if type(identity) is tuple and type(identity[-1]) is int:
            place = identity[:-1]
            if (around := of_rows.get(place)) is None:
                after = _encode_place(*place)
                around = before + pack(len(after) + 1 + _SIZE.size) + b"r", after
                if all(type(name) is str for name in place):
                    of_rows[place] = around
            heads.append(around[0] + pack(identity[-1]) + around[1] + pack(size))
        else:
            heads.append(before + _prefixed(encode_id(identity)) + pack(size))
    bounds = np.zeros(len(heads) + 1, dtype=np.int64)
    np.cumsum(np.fromiter(map(len, heads), np.int64, len(heads)), out=bounds[1:])
    return keyed_digests(key, np.frombuffer(bytearray().join(heads), dtype=np.uint8), bounds, data, documents)


@dataclass(frozen=True, slots=True)
class DrawKey:
    """The part of a key that one release's workers need: an AES key and a tag key. Its text form never shows them."""

    aes: bytes = field(repr=False)
    tag: bytes = field(repr=False)
    source: tuple[tuple[str, str], str, str] | None = field(default=None, repr=False, compare=False)
    """What is pickled in its stead, if the key has a place: this, the key's fingerprint and the release digest."""

    @classmethod
    def derive(cls, key: Key, release_digest: str) -> Self:
        """Derive from a key and a release digest (hex), so that no two configurations share noise."""
        material = key.derive("draws", bytes.fromhex(release_digest), AES_BYTES + TAG_KEY_BYTES)
        source = None if key.place is None else (key.place, key.fingerprint(), release_digest)
        return cls(material[:AES_BYTES], material[AES_BYTES:], source)

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.aes, self.tag)) if self.source is None else (_derived_again, self.source)


@functools.lru_cache(maxsize=16)
def _derived_again(place: tuple[str, str], fingerprint: str, release_digest: str) -> DrawKey:
    """Return what was pickled, from the key at its place."""
    key = Key.at(*place)
    if key.fingerprint() != fingerprint:  # equal documents would get other noise on other workers
        raise ChangedError(f"{place[1]}: this is another key than that of the pipeline; give workers the same key.")
    return DrawKey.derive(key, release_digest)


@compiled
def _counters(tags: Any, documents: Any, positions: Any, offset: Any, out: Any) -> None:
    for t in range(positions.size):
        # The 128-bit sum of the tag and (token << 64 | purpose << 32 | attempt), by hand: numba has no such integer.
        document = u(documents[u(t)])
        low = tags[document, u(0)] + offset
        # Two halves of one 128-bit sum, modulo 2^128.
        carry = np.uint64(1) if low < offset else np.uint64(0)
        out[u(2 * t)] = low
        out[u(2 * t + 1)] = tags[document, u(1)] + np.uint64(positions[u(t)]) + carry


@njit()
def _counter_runs(tags: Any, documents: Any, positions: Any, offset: Any, out: Any) -> None:
    for t in range(positions.size):
        document = documents[t]
        for attempt in range(out.shape[1]):
            start = offset + np.uint64(attempt)
            low = tags[document, 0] + start
            carry = np.uint64(1) if low < start else np.uint64(0)
            out[t, attempt, 0] = low
            out[t, attempt, 1] = tags[document, 1] + np.uint64(positions[t]) + carry


@dataclass(frozen=True, slots=True)
class Draws:
    """Draws for T tokens, by document and position int [T], and the documents' tags uint64 [D, 2]."""

    key: DrawKey
    tags: UInt64
    documents: Integers
    positions: Integers

    def __len__(self) -> int:
        return self.positions.size

    @classmethod
    def of_tokens(cls, key: DrawKey, count: int, *, document: str = "tokens") -> Self:
        """Return draws for ``count`` tokens of one document that is known by name only; for trials and examples."""
        tags = keyed_tags(key.tag, "", [document], np.empty(0, dtype=np.uint8), np.zeros(2, dtype=np.int64))
        return cls(key, tags, np.zeros(count, dtype=np.int64), np.arange(count, dtype=np.int64))

    def for_tokens(self, tokens: slice | Integers) -> Draws:
        """Return the draws of some of the tokens."""
        return Draws(self.key, self.tags, self.documents[tokens], self.positions[tokens])

    def uint64(self, purpose: int, attempt: int = 0) -> UInt64:
        """Return one uniform 64-bit integer a token; uint64 [T]. Same purpose and attempt, same numbers."""
        (first,) = self._halves(purpose, attempt, 1)
        return first

    def pair(self, purpose: int, attempt: int = 0) -> tuple[UInt64, UInt64]:
        """Return two independent uniform 64-bit integers a token, the first of them that of ``uint64``."""
        first, second = self._halves(purpose, attempt, 2)
        return first, second

    def _halves(self, purpose: int, attempt: int, many: int) -> list[UInt64]:
        """Return the first half of each block, or both; uint64 [T] each."""
        out = [np.empty(len(self), dtype=np.uint64) for _ in range(many)]
        counters = _scratch.array("counters", 2 * _AT_ONCE, np.uint64)
        # One block more than is written, since update_into wants room beyond its output.
        blocks = _scratch.array("blocks", AES_BYTES * (_AT_ONCE + 1), np.uint8)
        offset = np.uint64((purpose << 32) | attempt)
        cipher = self._cipher()
        for first in range(0, len(self), _AT_ONCE):
            some = slice(first, first + _AT_ONCE)
            documents = self.documents[some]
            _counters(self.tags, documents, self.positions[some], offset, counters)
            size = cipher.update_into(counters[: 2 * documents.size].view(np.uint8).data, blocks.data)
            lanes = blocks[:size].view("<u8")
            for half, whole in enumerate(out):
                whole[some] = lanes[half::2]
        return out

    def lanes(self, purpose: int, pairs: int) -> UInt64:
        """Return uniform 64-bit integers, the pairs of attempts 0 .. pairs - 1 side by side; uint64 [T, 2 pairs].

        ``pairs`` is below 2^32, so that no attempt reaches into the counters of another purpose or token.
        """
        blocks = np.empty((len(self), pairs, 2), dtype=np.uint64)
        _counter_runs(self.tags, self.documents, self.positions, np.uint64(purpose << 32), blocks)
        out = np.empty(blocks.nbytes + AES_BYTES, dtype=np.uint8)
        self._cipher().update_into(blocks.reshape(-1).view(np.uint8).data, out.data)
        return out[: blocks.nbytes].view("<u8").reshape(len(self), 2 * pairs)

    def _cipher(self) -> Any:
        return Cipher(algorithms.AES(self.key.aes), modes.ECB()).encryptor()  # noqa: S305 - a PRF over counters

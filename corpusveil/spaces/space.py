"""A space: a frozen vocabulary with the vectors and one-dimensional lists on which mechanisms measure distance.

A saved space is opened once in a process: checked against its digest, and memory-mapped.
"""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from corpusveil.arrays import Float32, Int8, Int32, Int64
from corpusveil.choices import HYPHENS, Hyphens
from corpusveil.errors import AddressError, ArtifactError, DataError, SettingError, UserError
from corpusveil.spaces.installed import located
from corpusveil.spaces.risk_table import RiskTable
from corpusveil.spaces.vocabulary import (
    BLANKS,
    BLOCK,
    Vocabulary,
    read_only,
    read_vocabulary,
    rows_without,
    write_vocabulary,
)
from corpusveil.storage import files, home
from corpusveil.storage.artifacts import ARTIFACT, Saved, complete, is_artifact
from corpusveil.storage.failures import BROKEN_ARRAY
from corpusveil.text import languages

KIND = "space"
VERSION = 1
VECTORS, LISTS, VOCABULARY, RISK = "vectors.npy", "lists.npy", "vocabulary.parquet", "risk.json"
SENTENCES = "sentences.npy"
_BLANK_BYTES = np.frombuffer("".join(sorted(BLANKS)).encode(), np.uint8)
SAVED: Saved[Space] = Saved(KIND, VERSION)


@dataclass(frozen=True, eq=False, repr=False)
class Space:
    """A vocabulary of V words, each with a vector and a position on each of L lists of similar words.

    Spaces with equal contents are equal. A saved space is pickled as its address and digest only, and opened once per
    process, in memory that processes share.

    Attributes:
        vocabulary: the words, their ids and public counts.
        vectors: float32 [V, d], exactly as given; memory-mapped when loaded.
        lists: int32 [L, V], position -> id, each row a permutation; memory-mapped when loaded.
        digest: SHA-256 of the content, hexadecimal.
        url: where it is saved; None if it is not.
        info: sizes, and how the space was made, as in ``_artifact.json``.
        risk: the bytes of its table of what readers recovered; empty without one.
        sentences: int8 [V, any], vectors that add up to sentence vectors; None without.

    >>> space.word(space.id("river"))
    'river'
    """

    vocabulary: Vocabulary
    vectors: Float32
    lists: Int32
    digest: str
    url: str | None = None
    info: dict[str, Any] = field(default_factory=dict, repr=False)
    risk: bytes = b""
    sentences: Int8 | None = None

    def __post_init__(self) -> None:
        size = len(self.vocabulary)
        if size < 2:
            raise DataError(f"A space of {size} words cannot hide anything; give at least two words.")
        for name, dtype, axis, wanted in (
            ("vectors", "float32", 0, "(V, d)"), ("lists", "int32", 1, "(L, V)"), ("sentences", "int8", 0, "(V, d)")
        ):  # fmt: skip
            if (array := getattr(self, name)) is None:
                continue
            if array.dtype != dtype or array.ndim != 2 or array.shape[axis] != size:
                raise SettingError(f"{name}: {array.dtype} {array.shape}; {dtype} {wanted} is needed, V = {size}.")
            object.__setattr__(self, name, read_only(array))
        for number, row in enumerate(self.lists):
            if row.min() < 0 or row.max() >= size or np.bincount(row, minlength=size).max() != 1:
                raise ArtifactError(f"List {number} does not contain every word once; build the space again.")

    def __len__(self) -> int:
        return len(self.vocabulary)

    def __repr__(self) -> str:
        lists = "1 list" if len(self.lists) == 1 else f"{len(self.lists)} lists"
        size = f"{len(self):,} words, {self.dimensions} dimensions, {lists}"
        return f"Space({size}, {self.url or 'not saved'}, digest {self.digest[:12]})"

    def id(self, word: str) -> int:
        """Return the id of a word. Raises UserError if the space does not have it."""
        return self.vocabulary.id(word)

    def word(self, id: int) -> str:
        """Return the word of an id."""
        return self.vocabulary.word(id)

    @property
    def counts(self) -> Int64 | None:
        """Public counts of the words, int64 [V]; None if the space was built without."""
        return self.vocabulary.counts

    @property
    def hyphens(self) -> Hyphens | None:
        """Whether hyphens join words in the training text of the vectors; None if unknown."""
        return next((choice for choice in HYPHENS if choice == self._recorded("hyphens")), None)

    @property
    def language(self) -> str | None:
        """The language as which the training text of the vectors was read; None if unknown."""
        recorded = self._recorded("language")
        return str(recorded) if languages.rule(recorded, "name") else None

    def _recorded(self, name: str) -> Any:
        made = self.info.get("made")
        return made.get(name) if isinstance(made, dict) else None

    def read_in(self, asked: str | None) -> str | None:
        """Return the language in which texts are read for this space: the one ``asked`` for, or that of the space.

        Raises SettingError if the space has another.
        """
        return languages.agreed(asked, self.language, "the space")

    @property
    def dimensions(self) -> int:
        """The length of a word's vector."""
        return int(self.vectors.shape[1])

    @functools.cached_property
    def positions(self) -> Int32:
        """int32 [L, V], id -> position on each list; computed at the first use."""
        positions = np.empty(self.lists.shape, np.int32)
        for row, order in zip(positions, self.lists, strict=True):
            row[order] = np.arange(len(self), dtype=np.int32)
        positions.setflags(write=False)
        return positions

    def without(self, words: Collection[str]) -> Space:
        """Return the space without words (as ``exclude`` of ``build_space``), not saved; its lists keep their order."""
        rows = np.array(rows_without(self.vocabulary.words, words), np.int64)
        vocabulary = Vocabulary.from_words(
            [self.word(row) for row in rows], None if self.counts is None else self.counts[rows]
        )
        renumbered = np.full(len(self), -1, np.int32)
        renumbered[rows] = np.arange(rows.size)
        lists = renumbered[np.asarray(self.lists)]
        lists = np.ascontiguousarray(lists[lists >= 0].reshape(len(lists), rows.size))
        vectors = np.ascontiguousarray(self.vectors[rows])
        sentences = None if self.sentences is None else np.ascontiguousarray(self.sentences[rows])
        return _made(vocabulary, vectors, lists, self.info | {"words": rows.size}, b"", sentences)

    def with_risk(self, table: RiskTable) -> Space:
        """Return the space with another table of what readers recovered, not saved. It is another space."""
        return _made(self.vocabulary, self.vectors, self.lists, self.info, table.data(), self.sentences)

    def with_sentences(self, sentences: Int8 | None) -> Space:
        """Return the space with other sentence vectors, int8 [V, d], or none, not saved. It is another space."""
        return _made(self.vocabulary, self.vectors, self.lists, self.info, self.risk, sentences)

    def save(self, url: str | os.PathLike[str]) -> Space:
        """Write the space to the folder ``url`` (any fsspec URL) and return it with that address.

        An existing copy of the same space is left unchanged. ``_artifact.json`` is written last: without it there is no
        space.

        Raises:
            UserError: another artifact is there; a saved space is never overwritten.
        """
        url = files.absolute(files.as_text(url))
        if not is_artifact(url):
            for name, array in ((VECTORS, self.vectors), (LISTS, self.lists), (SENTENCES, self.sentences)):
                if array is not None:
                    with files.open_write(files.join(url, name)) as file:
                        np.save(file, array, allow_pickle=False)
            write_vocabulary(self.vocabulary, files.join(url, VOCABULARY))
            if self.risk:
                files.write_bytes(files.join(url, RISK), self.risk)
            if complete(url, self.info, indent=2, ensure_ascii=False):
                return replace(self, url=url)
        SAVED.require(url, self.digest)
        return replace(self, url=url)

    def __reduce__(self) -> tuple[object, ...]:
        """Return the pickled form: the address of a saved space, so that each process maps it, else the arrays."""
        if self.url is not None:
            return reopen, (self.url, self.digest)
        arrays = self.vocabulary, self.vectors, self.lists
        return Space, (*arrays, self.digest, None, self.info, self.risk, self.sentences)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Space) and other.digest == self.digest

    def __hash__(self) -> int:
        return hash(self.digest)


def _made(
    vocabulary: Vocabulary, vectors: Float32, lists: Int32, info: dict[str, Any], risk: bytes, sentences: Int8 | None
) -> Space:
    """Return a space of other content than ``info`` describes, not saved."""
    digest = content_digest(vocabulary, vectors, lists, risk, sentences)
    info = {name: value for name, value in info.items() if name not in ("risk", "sentences")}
    info |= {"digest": digest} | ({"risk": True} if risk else {})
    info |= {} if sentences is None else {"sentences": int(sentences.shape[1])}
    return Space(vocabulary, vectors, lists, digest, None, info, risk, sentences)


def content_digest(
    vocabulary: Vocabulary, vectors: Float32, lists: Int32, risk: bytes = b"", sentences: Int8 | None = None
) -> str:
    """Return the SHA-256 of a space's content: every array with its name, dtype and shape before its bytes."""
    # No counts and counts of 0 mean the same, and have one digest.
    counts = np.zeros(len(vocabulary), np.int64) if vocabulary.counts is None else vocabulary.counts
    sha = hashlib.sha256(f"corpusveil space {VERSION}\n".encode())
    arrays: tuple[tuple[str, npt.NDArray[Any], str], ...] = (
        ("text", vocabulary.text, "|u1"),
        ("offsets", vocabulary.offsets, "<i8"),
        ("counts", counts, "<i8"),
        ("vectors", vectors, "<f4"),
        ("lists", lists, "<i4"),
        *(() if sentences is None else (("sentences", sentences, "|i1"),)),
    )
    for name, array, dtype in arrays:
        sha.update(f"{name} {dtype} {array.shape}\n".encode())
        sha.update(np.ascontiguousarray(array, np.dtype(dtype)).data.cast("B") if array.size else b"")
    if risk:  # which most spaces lack: they have the digest of the arrays
        sha.update(f"risk |u1 ({len(risk)},)\n".encode() + risk)
    return sha.hexdigest()


def load_space(url: str | os.PathLike[str], *, verify: bool = True) -> Space:
    """Open the space at ``url``: any fsspec URL, or the name of an installed space, such as ``en``.

    A remote space is copied to this machine's cache once. ``verify`` checks the content against the digest (about a
    second per gigabyte). Raises UserError if there is no space, or it is damaged or of another version.

    >>> cv.load_space("en").word(0)
    'the'
    """
    url = files.absolute(located(files.as_text(url), "space"))
    info = SAVED.read(url)
    more = [name for name, key in ((RISK, "risk"), (SENTENCES, "sentences")) if info.get(key)]
    folder = home.local_folder(url, [VECTORS, LISTS, VOCABULARY, *more], info["digest"])
    where = str(folder) if str(folder) == url else f"{url} (local copy {folder}; delete it first)"
    try:
        vocabulary = read_vocabulary(str(folder / VOCABULARY))
        vectors, lists = mapped(folder / VECTORS), mapped(folder / LISTS)
        risk = (folder / RISK).read_bytes() if info.get("risk") else b""
        taught = mapped(folder / SENTENCES) if info.get("sentences") else None
        space = Space(vocabulary, vectors, lists, info["digest"], url, info, risk, taught)
    except OSError:
        raise SAVED.damaged(where, f"{RISK} is missing or cannot be read") from None
    except UserError as error:
        raise SAVED.damaged(where, str(error)) from None
    sizes = {"words": len(space), "dimensions": space.dimensions, "lists": len(space.lists)}
    if wrong := [name for name, size in sizes.items() if info.get(name) != size]:
        raise SAVED.damaged(where, f"{ARTIFACT} says another number of {wrong[0]}; the files have {sizes[wrong[0]]}.")
    if not verify:
        return space
    if content_digest(vocabulary, space.vectors, space.lists, risk, taught) != info["digest"]:
        raise SAVED.damaged(where, "its contents do not have the digest that they were saved with.")
    # Values that ``build_space`` never writes, but a modified space could contain.
    if np.isin(vocabulary.text, _BLANK_BYTES).any() or (np.diff(vocabulary.offsets) == 0).any():
        raise SAVED.damaged(where, "a word is empty or contains a blank.")
    for row in range(0, len(space), BLOCK):
        if not np.isfinite(space.vectors[row : row + BLOCK]).all():
            raise SAVED.damaged(where, "a vector contains a number that is not finite.")
    return space


def reopen(url: str, digest: str) -> Space:
    """Return the space that was pickled as (``url``, ``digest``), opened once in this process."""
    return SAVED.reopen(load_space, url, digest)


def mapped(path: Path) -> npt.NDArray[Any]:
    """Return the array of a file, mapped into memory. Raises UserError, which names the file alone."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except PermissionError:
        raise AddressError(f"there is no permission to read {path.name}.") from None
    except BROKEN_ARRAY:
        raise ArtifactError(f"{path.name} is missing or cut short.") from None
    if not isinstance(array, np.ndarray):
        raise ArtifactError(f"{path.name} is an archive of arrays.")
    return array


def demo_space() -> Space:
    """Return the installed space *en*, which ``load_space("en")`` opens, too.

    >>> cv.demo_space().word(0)
    'the'
    """
    return load_space("en")

"""A store: public pieces of text, in the order of a salted hash, with their vectors and what was measured of them.

Its folder has ``texts.parquet`` (``text``), ``vectors.npy`` (int8 [N, d]), its ``space`` unless that is installed, and
``_artifact.json``: sources, license, salt, filters, and the figures on public text. The first pieces of a store are a
random sample of it, so equally salted stores are nested (``build_store``).
"""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any

import numpy as np
import pyarrow as pa

from corpusveil.arrays import Float64, Int8
from corpusveil.errors import DataError, SettingError, UserError, VersionError
from corpusveil.passages import pieces
from corpusveil.passages.encoder import BUILT_IN, MeanVectors, OtherVectors, encoder_of, mean_vectors
from corpusveil.search.inner_products import ProductSearch
from corpusveil.spaces import Space, load_space
from corpusveil.spaces.installed import SCHEME, is_name, located, name_of
from corpusveil.spaces.space import mapped
from corpusveil.storage import files, home
from corpusveil.storage.artifacts import ARTIFACT, Saved, complete, is_artifact
from corpusveil.storage.failures import BROKEN_ARRAY
from corpusveil.storage.parquet import read_table, write_table
from corpusveil.text.tokens import Tokenizer

KIND = "store"
VERSION = 1
TEXTS, VECTORS = "texts.parquet", "vectors.npy"
OWN_SPACE = "space"
LEAST = 2
SAVED: Saved[Store] = Saved(KIND, VERSION)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Store:
    """N public passages with their vectors. Made by ``build_store``, read by ``load_store``.

    Stores with equal contents are equal. A saved store is pickled as its address and digest only.

    Attributes:
        texts: large_string [N], without nulls.
        vectors: int8 [N, d]; memory-mapped when loaded.
        space: the space whose words make the vectors.
        digest: SHA-256 of texts, vectors and encoder, hexadecimal.
        url: where it is saved; None if it is not.
        info: sizes, sources and figures, as in ``_artifact.json``.

    >>> cv.load_store("en").texts.null_count
    0
    """

    texts: pa.LargeStringArray
    vectors: Int8
    space: Space
    digest: str
    url: str | None = None
    info: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_texts(
        cls, texts: pa.LargeStringArray, space: Space, info: dict[str, Any] | None = None, encoder: str | None = None
    ) -> Store:  # fmt: skip
        """Return a store of these texts, large_string [N], which is not saved. Raises UserError for fewer than two.

        ``encoder`` names what makes vectors, by default the built-in one.
        """
        if len(texts) < LEAST:
            raise DataError(f"{len(texts)} passages hide nothing; give more public text, or looser filters.")
        made_by = encoder_of(space, encoder)
        vectors = made_by.encode(texts)
        digest = content_digest(texts, vectors, made_by.name)
        return cls(texts, vectors, space, digest, None, {**(info or {}), "encoder": made_by.name})

    def __len__(self) -> int:
        return len(self.texts)

    def __repr__(self) -> str:
        return f"Store({len(self):,} passages, {self.url or 'not saved'}, digest {self.digest[:12]})"

    @property
    def encoder(self) -> MeanVectors | OtherVectors:
        """The encoder of passages."""
        return encoder_of(self.space, self.info.get("encoder"))

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer, with the words of the space."""
        return mean_vectors(self.space).tokenizer

    @property
    def search(self) -> ProductSearch:
        """The index of the passages nearest to a vector."""
        return ProductSearch(self.vectors)

    @property
    def like(self) -> dict[str, Any]:
        """Figures measured on held-out public passages; empty if there are none."""
        figures: dict[str, Any] = self.info.get("figures", {}).get("like", {})
        return figures

    @property
    def similarity(self) -> Float64:
        """The mean similarity, by rank, of public pieces that the store does not have; float64 [M], M at most N."""
        return np.asarray((self.like.get("similarity") or [1.0])[: len(self)], np.float64)

    @property
    def overall(self) -> float:
        """The mean similarity of such a piece and any piece of the store."""
        return float(self.like.get("overall", 0.0))

    def save(self, url: str | PathLike[str]) -> Store:
        """Write the store to a folder (any fsspec URL), ``_artifact.json`` last; return it with that address.

        An existing copy of the same store is left unchanged. Raises UserError if another artifact is there.
        """
        url = files.absolute(files.as_text(url))
        if not is_artifact(url):
            described_as = {"kind": KIND, "version": VERSION, **self.write(url)}
            if complete(url, described_as, indent=1, ensure_ascii=False):
                return replace(self, url=url, info=described_as)
        SAVED.require(url, self.digest)
        return replace(self, url=url)

    def write(self, url: str) -> dict[str, Any]:
        """Write texts and vectors into a folder, and return the fields of their description."""
        write_table(pa.table({"text": self.texts}), files.join(url, TEXTS))
        with files.open_write(files.join(url, VECTORS)) as file:
            np.save(file, self.vectors, allow_pickle=False)
        if (name := name_of(self.space.url)) is None:
            self.space.save(files.join(url, OWN_SPACE))
        space = {"path": name or OWN_SPACE, "digest": self.space.digest}
        fields = {"digest": self.digest, "pieces": len(self), "space": space, "encoder": self.encoder.name}
        return fields | {"pieces_version": pieces.VERSION} | self.info

    def __reduce__(self) -> tuple[object, ...]:
        if self.url is not None:
            return reopen, (self.url, self.digest, self.space, self.encoder.name)
        return Store, (self.texts, self.vectors, self.space, self.digest, None, self.info)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Store) and other.digest == self.digest

    def __hash__(self) -> int:
        return hash(self.digest)


def content_digest(texts: pa.LargeStringArray, vectors: Int8, made_by: str) -> str:
    """Return the SHA-256 of a store's content: the encoder, and each text with its length, and the vectors."""
    sha = hashlib.sha256(f"corpusveil store {VERSION} {made_by} {vectors.shape}\n".encode())
    for text in texts.to_pylist():
        data = text.encode()
        sha.update(len(data).to_bytes(8, "little") + data)
    sha.update(np.ascontiguousarray(vectors).data)
    return sha.hexdigest()


def load_store(url: str | PathLike[str], *, space: Space | None = None, encoder: str | None = None) -> Store:
    """Open the store at ``url``: any fsspec URL, or the name of an installed store, such as ``en``.

    ``space`` is the one whose words make its vectors; by default an installed one that the store names, or its own.
    ``encoder`` names the encoder if another package's made the store; it reads the texts of a release. Raises
    UserError if there is no store, or it is damaged, of another version, space or encoder.

    >>> len(cv.load_store("en")) > 10_000
    True
    """
    given = files.as_text(url)
    named = given.startswith(SCHEME) or is_name(given)
    address = files.absolute(located(f"{given}-store", "store") if named else given)
    info = _read_info(address)
    made_of, name = info["space"], info["encoder"].partition("/")[0]
    if name not in (BUILT_IN, (encoder or "").partition("/")[0]):
        raise SettingError(f"{address}: this store was made by an encoder of another package; name it: encoder {name}.")
    path = made_of["path"]
    space = space or load_space(path if path.startswith(SCHEME) else files.join(address, OWN_SPACE))
    made_by = encoder_of(space, name)
    if space.digest != made_of["digest"] or made_by.name != info["encoder"]:
        raise SettingError(
            f"{address}: this store was made with another space ({str(made_of['digest'])[:16]}…) or version of the "
            "encoder; give that space, or build the store again."
        )
    folder = home.local_folder(address, [TEXTS, VECTORS], info["digest"])
    try:
        column = read_table(str(folder / TEXTS), ["text"]).column("text")
        texts = column.cast(pa.large_string()).combine_chunks()
        texts = texts if isinstance(texts, pa.Array) else pa.concat_arrays(texts.chunks)
        vectors = mapped(folder / VECTORS)
    except (*BROKEN_ARRAY, pa.ArrowException, UserError):
        raise SAVED.damaged(address, "a file is missing or cut short") from None
    if vectors.dtype != np.int8 or vectors.shape != (len(texts), made_by.dimensions) or texts.null_count:
        raise SAVED.damaged(address, "texts and vectors do not go together")
    if content_digest(texts, vectors, info["encoder"]) != info["digest"]:
        raise SAVED.damaged(address, "its contents do not have the digest that they were saved with")
    return Store(texts, vectors, space, info["digest"], address, info)


def reopen(url: str, digest: str, space: Space, encoder: str) -> Store:
    """Return the store that was pickled like this, opened once in this process."""
    return SAVED.reopen(functools.partial(load_store, space=space, encoder=encoder), url, digest)


def _read_info(url: str) -> dict[str, Any]:
    info = SAVED.read(url)
    named = info.get("space")
    of_space = [named.get(key) for key in ("path", "digest")] if isinstance(named, dict) else [None]
    of_texts = [info[key] for key in ("licence", "attribution") if info.get(key) is not None]
    lines = [info.get("encoder"), *of_space, *of_texts]
    figures = info.get("figures", {})
    like = figures.get("like", {}) if isinstance(figures, dict) else None
    if (
        not all(isinstance(line, str) and line.isprintable() for line in lines)
        or not (isinstance(like, dict) and isinstance(like.get("similarity") or [], list))
        or not all(
            isinstance(cosine, (int, float)) and -1.01 <= cosine <= 1.01
            for cosine in (like.get("overall", 0.0), *(like.get("similarity") or []))
        )
    ):
        raise SAVED.damaged(url, f"{ARTIFACT} is not a description of a store")
    if info.get("pieces_version") != pieces.VERSION:
        raise VersionError(f"{url}: this store was cut into pieces by other rules; build it again.")
    return info

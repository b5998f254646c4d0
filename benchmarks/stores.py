"""Stores of the shared data, which may be measured and not published, and their releases."""

import dataclasses
import functools
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import zstandard

import corpusveil as cv
from benchmarks import inputs
from corpusveil.arrays import Int8, Int32, Integers
from corpusveil.passages.build import SPARE
from corpusveil.passages.figures import figures_of
from corpusveil.passages.passage_exchange import MOST_NEIGHBORS
from corpusveil.search.inner_products import ProductSearch
from corpusveil.storage.documents import Documents

STORES = ("en", "c4-like 30,000", "c4-like 100,000", "open-en 30,000", "open-en 100,000")
WORDS = {"sentence": (4, 40), "document": (20, 80)}
SALT, BUILT = "00" * 16, 100_000
NOTHING = pa.array([], pa.large_string())
OWN = "multidogo"
"""The source of conversations, which no store of open-en has."""


@functools.cache
def conversations() -> list[dict[str, str]]:
    """Return the conversations of multiDoGO, ``text`` and ``service``; and write the rest of open-en."""
    kept, rest = inputs.work() / "multidogo.json", inputs.work() / "open-en"
    if not kept.exists():
        shared = inputs.data()
        assert shared is not None
        rest.mkdir(exist_ok=True)
        own = []
        for path in sorted((shared / "open-en").glob("*.zst")):
            with path.open("rb") as file, (rest / path.name).open("wb") as out:
                writer = zstandard.ZstdCompressor(level=1).stream_writer(out, closefd=False)
                for line in io.BufferedReader(zstandard.ZstdDecompressor().stream_reader(file)):
                    row = orjson.loads(line)
                    own += [row] if row["source"] == OWN else []
                    writer.write(b"" if row["source"] == OWN else line)
                writer.flush(zstandard.FLUSH_FRAME)
        kept.write_bytes(orjson.dumps(own))
    rows = orjson.loads(kept.read_bytes())
    return [{"text": row["text"], "service": service(row["url"])} for row in rows]


def service(url: str) -> str:
    found = re.search(r"_level/([a-z]+)/", url)
    return found.group(1) if found else ""


@dataclass(frozen=True, slots=True, eq=False)
class Ranks(ProductSearch):
    """The same search, which keeps the first ranks of points: keys and epsilons ask for them again."""

    known: dict[bytes, Int32] = field(default_factory=dict)

    def several(self, points: Int8, k: int) -> tuple[Int32, Int32]:
        names = [point.tobytes() for point in points]
        new = list({name: at for at, name in enumerate(names) if name not in self.known}.values())
        found = ProductSearch.several(self, points[new], min(MOST_NEIGHBORS, len(self.rows)))
        self.known.update(zip((names[at] for at in new), np.stack(found, axis=1), strict=True))
        both = np.array([self.known[name][:, :k] for name in names], np.int32).reshape(len(names), 2, k)
        return both[:, 0], both[:, 1]

    def at_ranks(self, points: Int8, ranks: Integers) -> Int32:
        return self.several(points, int(ranks.max(initial=0)) + 1)[0][np.arange(len(points)), ranks]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Ranked(cv.Store):
    """A store whose search remembers."""

    @property
    def search(self) -> Ranks:
        return ranks_of(self)


@functools.lru_cache(maxsize=2)
def ranks_of(store: cv.Store) -> Ranks:
    return Ranks(store.vectors)


def ranked(store: cv.Store) -> cv.Store:
    return Ranked(*(getattr(store, each.name) for each in dataclasses.fields(store)))


@functools.lru_cache(maxsize=1)
def opened(name: str, per: str) -> cv.Store:
    """Return the store ``en``, or one of c4-like or open-en of the size that its name says."""
    if name == "en":
        return ranked(cv.load_store("en"))
    source, size = name.split()
    number, space = int(size.replace(",", "")), cv.load_space("en")
    if source == "open-en":
        conversations()
    texts: Any = inputs.shards() if source == "c4-like" else f"{inputs.work()}/open-en/*.zst"
    large = number > BUILT
    folder = f"{inputs.work()}/stores/{source}-{per}{'-large' if large else ''}"
    licence, pieces = "research only, not to be published", number if large else BUILT
    whole = cv.build_store(texts, folder, space, licence, WORDS[per], pieces, salt=SALT)
    return (
        ranked(whole)
        if len(whole) <= number
        else measured(whole.texts.slice(0, number), whole.texts.slice(number, SPARE))
    )


def measured(texts: pa.Array, left: pa.Array = NOTHING) -> cv.Store:
    """Return a store of these texts with its figures, from which K follows; by its last tenth if none are left out."""
    store = cv.Store.of(texts, cv.load_space("en"))
    return ranked(dataclasses.replace(store, info={"figures": figures_of(store, left, NOTHING)}))


def mixed(texts: Sequence[str]) -> cv.Store:
    """Return a store of these texts in a random order, so that its last tenth is like the others."""
    order = np.random.default_rng(0).permutation(len(texts))
    return measured(pa.array([texts[at] for at in order], pa.large_string()))


def released(release: cv.PassageRelease, texts: Sequence[str], name: str = "") -> list[str]:
    """Return the released rows of a set of this name; without a run's check that the store does not have the texts."""
    documents = Documents(pa.array(texts, pa.large_string()), [f"{name} {row}" for row in range(len(texts))])
    out: list[str] = dataclasses.replace(release, accept_overlap=True).kernel().privatize(documents)[0].to_pylist()
    return out

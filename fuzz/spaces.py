"""Spaces."""

from __future__ import annotations

import functools
import io
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from corpusveil.spaces.build import build_space
from corpusveil.spaces.space import LISTS, VECTORS, VOCABULARY, Space, content_digest, load_space
from corpusveil.spaces.vectors import Vectors
from corpusveil.spaces.vocabulary import read_vocabulary, write_vocabulary
from fuzz.invariant import CANARY, RAW, Reader, changed, need, refused

WORDS = [f"{CANARY}a", "b_c", "é", "der", "17", f"{CANARY}"]
MATRIX = ((np.arange(12).reshape(6, 2) - 3.5) / 7).astype(np.float32)


def npy(array: np.ndarray) -> bytes:
    sink = io.BytesIO()
    np.save(sink, array)
    return sink.getvalue()


def check_space(data: bytes, folder: Path) -> None:
    """Open a space with one changed file; if it opens, it is valid and, after saving, opens as the same space."""
    parts = _parts()
    names = list(parts)
    choice, content = data[0] if data else 0, data[1:]
    name = names[(choice & 0x1F) % len(names)]
    parts[name] = content if choice & RAW else changed(parts[name], content)
    where = folder / "space"
    where.mkdir(exist_ok=True)
    for one_name, part in parts.items():
        (where / one_name).write_bytes(part)
    if choice & 0x40:
        _sign(where)
    space = refused(lambda: load_space(str(where), verify=not choice & 0x20), where)
    if space is None:
        return
    words = space.vocabulary.words
    need(space.vectors.dtype == np.float32, "vectors of another type")
    need(len(space.vectors) == len(space) == len(set(words)), "words that are not as many as vectors")
    need(choice & 0x20 or np.isfinite(space.vectors).all(), "a vector that is not finite")
    need(all(word and not set(" \t\n\r\v\f\0") & set(word) for word in words), "a word that is empty or has a blank")
    need((np.sort(space.lists, axis=1) == np.arange(len(space))).all(), "a list with gaps")
    space.positions  # noqa: B018 - computed
    if not choice & 0x20:
        need(choice & 0x40 or space.digest == _space().digest, "another space under the same digest")
        again = folder / f"again-{os.getpid()}"
        space.save(str(again))
        need(load_space(str(again)) == space, "another space when it is opened again")
        for path in again.iterdir():
            path.unlink()


@functools.cache
def _space() -> Space:
    return build_space(Vectors(list(WORDS), MATRIX), lists=2, counts=np.arange(6))


def _parts() -> dict[str, bytes]:
    space = _space()
    return {
        "_artifact.json": json.dumps(space.info).encode(),
        VECTORS: npy(space.vectors),
        LISTS: npy(space.lists),
        VOCABULARY: _vocabulary_file(),
    }


@functools.cache
def _vocabulary_file() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        write_vocabulary(_space().vocabulary, f"{folder}/v.parquet")
        return Path(folder, "v.parquet").read_bytes()


def _sign(where: Path) -> None:
    """Give a changed space the matching digest and sizes, as an attacker would."""
    try:
        told = json.loads((where / "_artifact.json").read_bytes())
        vocabulary = read_vocabulary(str(where / VOCABULARY))
        vectors, lists = np.load(where / VECTORS), np.load(where / LISTS)
        told |= {"words": len(vocabulary), "dimensions": vectors.shape[1], "lists": len(lists)}
        told["digest"] = content_digest(vocabulary, vectors, lists)
        (where / "_artifact.json").write_text(json.dumps(told))
    except Exception:  # noqa: BLE001 - what can't be signed stays as it is
        pass


def space_seeds() -> Iterator[bytes]:
    for number, part in enumerate(_parts().values()):
        for bits in (0, 0x20, 0x40):
            yield bytes([RAW | bits | number]) + part
            yield bytes([bits | number]) + bytes(6)


def readers() -> Iterator[Reader]:
    yield Reader("space", space_seeds, check_space)

"""Make the store ``en`` of the texts in ``spaces/en/store``, one kind a file and one piece a line.

    python -m spaces.en.make_store WORK

What the filters refuse, or is near to another piece (``NEAR_TWIN``), is printed by file and left out; so the shipped
store has no two pieces that say the same.

The vector of a piece lies between the sum of its words, which a text of a release has, too, and what all-MiniLM-L6-v2
says of it (``teacher.py``), in the coordinates of the sums: the least squares of both say what of a sentence sums can
show. The weight of the two was chosen on left-out pieces, by the teacher. Equal texts and numbers of the teacher make
an equal archive; its last bits depend on the processor.
"""

from __future__ import annotations

import argparse
import dataclasses
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import numpy as np
import orjson
import pyarrow as pa

import corpusveil as cv
from corpusveil.arrays import Float32
from corpusveil.passages.build import PublicPieces, build_store
from corpusveil.passages.encoder import LENGTH, mean_vectors
from corpusveil.passages.figures import NEAR_TWIN, figures_of
from corpusveil.passages.store import content_digest
from corpusveil.search.inner_products import ProductSearch
from corpusveil.spaces.installed import ARCHIVE, SCHEME, excluded_words
from spaces.en.make import HERE, PACKAGE, archive
from spaces.en.sentences import PYTHON

SALT = "6a2697f28516de79ae04d9dba46cec6d"
"""Drawn when the texts had been written."""
TEXTS = HERE / "store"
FINDERS = ("rules", "names")
RIDGE, WEIGHT = np.float32(30), np.float32(4)
"""Of the least squares, and of the teacher where the sum of words has the weight 1."""


def fit(space: cv.Space) -> dict[str, list[str]]:
    """Return the fit lines of each file, and print what is left out."""
    pieces = PublicPieces(space, None, tuple(sorted(excluded_words(space.url))), FINDERS, suspect=False)
    lines: list[tuple[str, str]] = []
    for path in sorted(TEXTS.glob("*.txt")):
        refused: Counter[str] = Counter()
        texts = path.read_text("utf-8").splitlines()
        lines += [(path.stem, line) for line in pieces.fit_pieces(pa.array(texts, pa.large_string()), refused)]
        print(f"{path.stem}: {len(texts)} lines; left out for {dict(refused)}")
    vectors = mean_vectors(space).encode(pa.array([line for _, line in lines], pa.large_string()))
    ids, products = ProductSearch(vectors).several(vectors, 8)
    near = (products * 100 > NEAR_TWIN * LENGTH**2) & (ids < np.arange(len(lines))[:, None])
    kept: dict[str, list[str]] = {}
    for (kind, line), twins in zip(lines, near, strict=True):
        if twins.any():
            print(f"{kind}: near to an earlier piece: {line}")
        else:
            kept.setdefault(kind, []).append(line)
    return kept


def placed(store: cv.Store, said: Float32) -> cv.Store:
    """Return the store with vectors between sums and ``said``, the teacher's of its pieces, float32 [N, 384]."""
    said = _unit(said)
    sums = _unit(store.vectors[:, :-1].astype(np.float32))
    normal = said.T @ said + RIDGE * np.eye(said.shape[1], dtype=np.float32)
    between = _unit(sums + WEIGHT * _unit(said @ np.linalg.solve(normal, said.T @ sums)))
    topic = float(np.sqrt(LENGTH**2 - int(store.vectors[0, -1]) ** 2))
    vectors = np.array(store.vectors)
    vectors[:, :-1] = np.rint(between * topic)
    digest = content_digest(store.texts, vectors, store.encoder.name)
    made = dataclasses.replace(store, vectors=vectors, digest=digest, url=None)
    nothing = pa.array([], pa.large_string())
    return dataclasses.replace(made, info={**store.info, "digest": digest, "figures": figures_of(made, nothing)})


def _unit(rows: Float32) -> Float32:
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.float32(1e-6))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path)
    work = parser.parse_args().work
    shutil.rmtree(work, ignore_errors=True)
    (work / "texts").mkdir(parents=True)
    space = cv.load_space(SCHEME + "en")
    for kind, lines in fit(space).items():
        (work / "texts" / f"{kind}.txt").write_text("\n".join([*lines, ""]), "utf-8")
    store = build_store(work / "texts", work / "sums", space, "CC0 1.0", None, salt=SALT, refuse=FINDERS, suspect=False)
    pieces, teacher = work / "pieces.json", work / "teacher.npy"
    pieces.write_bytes(orjson.dumps([store.texts.to_pylist()]))
    subprocess.run([str(PYTHON), str(HERE / "teacher.py"), str(pieces), str(teacher)], check=True)
    store = placed(store, np.load(teacher).astype(np.float32)).save(str(work / "store"))
    archive(work, PACKAGE / "store" / ARCHIVE, {"store": "store"})
    print(store, store.info["figures"]["like"])


if __name__ == "__main__":
    main()

"""Make the store ``en`` of the texts in ``spaces/en/store``, one kind a file and one piece a line.

    python -m spaces.en.make_store WORK

What the filters refuse, or is near to another piece (``NEAR_TWIN``), is printed by file and left out; so the shipped
store has no two pieces that say the same. Equal texts make an equal archive.
"""

from __future__ import annotations

import argparse
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa

import corpusveil as cv
from corpusveil.passages.build import PublicPieces, build_store
from corpusveil.passages.encoder import LENGTH, mean_vectors
from corpusveil.passages.figures import NEAR_TWIN
from corpusveil.search.inner_products import ProductSearch
from corpusveil.spaces.installed import ARCHIVE, SCHEME, excluded_words
from spaces.en.make import HERE, PACKAGE, archive

SALT = "6a2697f28516de79ae04d9dba46cec6d"
"""Drawn when the texts had been written."""
TEXTS = HERE / "store"
FINDERS = ("rules", "names")


def fit(space: cv.Space) -> dict[str, list[str]]:
    """Return the fit lines of each file, and print what is left out."""
    pieces = PublicPieces(space, None, tuple(sorted(excluded_words(space.url))), FINDERS, suspect=False)
    lines: list[tuple[str, str]] = []
    for path in sorted(TEXTS.glob("*.txt")):
        refused: Counter[str] = Counter()
        texts = path.read_text("utf-8").splitlines()
        lines += [(path.stem, line) for line in pieces.of(pa.array(texts, pa.large_string()), refused)]
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path)
    work = parser.parse_args().work
    shutil.rmtree(work, ignore_errors=True)
    (work / "texts").mkdir(parents=True)
    space = cv.load_space(SCHEME + "en")
    for kind, lines in fit(space).items():
        (work / "texts" / f"{kind}.txt").write_text("\n".join([*lines, ""]), "utf-8")
    store = build_store(
        work / "texts", work / "store", space, "CC0 1.0", None, salt=SALT, refuse=FINDERS, suspect=False
    )
    archive(work, PACKAGE / "store" / ARCHIVE, {"store": "store"})
    print(store, store.info["figures"]["like"])


if __name__ == "__main__":
    main()

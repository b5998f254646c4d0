"""Compile the inner loops beside this checkout once, which each process of tests would do at the same time.

numba keeps what it compiles in ``__pycache__``, and compiles again where a function's own file changed, or the types of
its arguments, numba's version or the processor. It does not see that a function of another file changed, so machine
code that is older than any file with loops is removed first.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import corpusveil
from corpusveil import mechanisms
from corpusveil.budget import Budget
from corpusveil.collocations.count import CountOptions, count_corpus
from corpusveil.collocations.public_texts import news
from corpusveil.collocations.score import score_counts
from corpusveil.collocations.tokenize import tokenize_corpus
from corpusveil.errors import UserError
from corpusveil.jobs.local import Local
from corpusveil.sampling.keys import Key
from corpusveil.search.neighbors import nearest
from corpusveil.spaces import load_space
from corpusveil.spaces.build import build_space
from corpusveil.spaces.vectors import Vectors
from corpusveil.storage.parquet import read_table
from corpusveil.text.policy import TextPolicy
from corpusveil.transforms.release.corpus import privatize_corpus
from corpusveil.transforms.release.release import Release

ARTICLES, SHARDS, DIMENSIONS = 40, 3, 16


def forget_old() -> None:
    """Remove machine code that was made before the last change of a file with loops."""
    package = Path(corpusveil.__file__).parent
    loops = [path for path in package.rglob("*.py") if "corpusveil.compiled" in path.read_text()]
    newest = max(path.stat().st_mtime for path in loops)
    for kept in package.rglob("__pycache__/*.nb[ci]"):
        if kept.stat().st_mtime < newest:
            kept.unlink()


def do_a_little() -> None:
    """Do each kind of work on a little bundled text, in the folder that this process is in.

    Types decide what is compiled, not sizes, so arrays come from files, as they do at work.
    """
    texts = news()[:ARTICLES]
    corpus = Path("texts")
    corpus.mkdir()
    for number in range(SHARDS):
        lines = (json.dumps({"text": text}) + "\n" for text in texts[number::SHARDS])
        corpus.joinpath(f"{number}.jsonl").write_text("".join(lines))
    count_corpus([str(corpus)], "counts", Local(), CountOptions(3, 2))
    score_counts("counts", "collocations", Local())
    tokenize_corpus([str(corpus)], "words", Local(), "word")
    tokenize_corpus([str(corpus)], "tokens", Local(), "gst", "collocations")
    ngrams = pa.concat_tables(read_table(str(path)) for path in sorted(Path("counts/ngrams").glob("*.parquet")))
    words = ngrams.filter(pc.equal(ngrams["n"], 1))
    drawn = np.random.default_rng(0).standard_normal((words.num_rows, DIMENSIONS)).astype(np.float32)
    vectors = Vectors(words["ngram"].to_pylist(), drawn, counts=words["count"].to_numpy())
    build_space(vectors).save("space")
    nearest(vectors.vectors, 0, 8)  # of which a space seldom has need
    space = load_space("space")
    for name in mechanisms.names():
        with contextlib.suppress(UserError):
            release = Release(mechanisms.make(name, space), Budget(1.0), TextPolicy(), key=Key.generate())
            privatize_corpus(release, [str(corpus)], name, Local())


if __name__ == "__main__":
    forget_old()
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        do_a_little()

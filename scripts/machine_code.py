"""Machine code of the inner loops beside a copy of the package, so that a fresh machine does not compile them.

``make loops`` writes the wheel with it into a folder; ``make compiled``, without one, compiles beside this checkout.

numba keeps what it compiles in ``__pycache__`` beside the code, by a stamp of what it is made from, the types of the
arguments, its own version, and the processor; it compiles again where one of them is another. Compiling takes a minute
of a core, the search of denoising a fifth of it, and each machine of a cluster would do it before its first shard.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusveil import mechanisms
from corpusveil.budget import Budget
from corpusveil.collocations.count import CountOptions, count_corpus
from corpusveil.collocations.public_texts import news
from corpusveil.collocations.score import score_counts
from corpusveil.collocations.tokenize import tokenize_corpus
from corpusveil.compiled import LOCK, PORTABLE
from corpusveil.deployment.wheel import ENDINGS, build_wheel
from corpusveil.errors import InstallationError, UserError
from corpusveil.jobs.local import Local
from corpusveil.language.model import load_model
from corpusveil.language.modelling import build_model
from corpusveil.sampling.keys import Key
from corpusveil.search.neighbors import nearest
from corpusveil.spaces import load_space
from corpusveil.spaces.build import build_space
from corpusveil.spaces.vectors import Vectors
from corpusveil.storage.parquet import read_table
from corpusveil.text.policy import TextPolicy
from corpusveil.text.spans import SpanPolicy
from corpusveil.transforms.release.corpus import privatize_corpus
from corpusveil.transforms.release.denoise_corpus import denoise
from corpusveil.transforms.release.release import Release

ARTICLES, SHARDS, DIMENSIONS = 40, 3, 16
PROGRAM = [__file__]
"""What the copy runs: the arguments of Python."""


def compile_beside(root: Path) -> None:
    """Let the copy of corpusveil in the folder ``root`` compile its loops there, for every processor that can run them.

    Raises WorkError when it fails.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "PYTHON"))}
    if PORTABLE:
        kept |= {"NUMBA_CPU_NAME": PORTABLE, "NUMBA_CPU_FEATURES": ""}
    with tempfile.TemporaryDirectory() as scratch:
        done = subprocess.run(
            [sys.executable, *PROGRAM],
            cwd=scratch, env={**kept, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it says nothing"])[-1]
        raise InstallationError(f"corpusveil could not compile its loops: {last}")
    for lock in root.rglob(LOCK):
        lock.unlink()
    if not any(path.suffix in ENDINGS for path in root.rglob("__pycache__/*")):
        raise InstallationError(f"corpusveil compiled its loops, but left no machine code in {root}.")


def do_a_little() -> None:
    """Do each kind of work that a cluster is given, on a little bundled text, in the folder that this process is in.

    Types decide what is compiled, not sizes, so arrays come from files, as they do at work. What a mechanism refuses is
    left out.
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
    build_model("counts", "model", Local())
    ring = mechanisms.make("ring-geometric", build_space(vectors, order="improved"))
    spans = SpanPolicy(find=["rules", "names"], treat={"name": "resample"})
    privatize_corpus(
        Release(ring, Budget(1.0), TextPolicy(), key=Key.generate(), spans=spans), [str(corpus)], "out", Local()
    )
    denoise("out", "readable", space=ring.space, model=load_model("model"))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(build_wheel(Path(sys.argv[1]), machine_code=compile_beside))  # noqa: T201 - for make
    else:
        with tempfile.TemporaryDirectory() as scratch:
            os.chdir(scratch)
            do_a_little()

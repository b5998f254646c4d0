"""Compile the inner loops beside this checkout once, which each process of tests would do at the same time.

numba keeps what it compiles in ``__pycache__``, and compiles again where a function's own file changed, or the types of
its arguments, numba's version or the processor. It does not see that a function of another file changed, so machine
code that is older than any file with loops is removed first.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numba
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusveil import mechanisms
from corpusveil.budget import Budget
from corpusveil.collocations.count import CountOptions, count_corpus
from corpusveil.collocations.public_texts import news
from corpusveil.collocations.score import score_counts
from corpusveil.collocations.tokenize import tokenize_corpus
from corpusveil.errors import UserError
from corpusveil.jobs.local import Local
from corpusveil.passages.build import build_store
from corpusveil.passages.passage_exchange import PassageExchange
from corpusveil.pipelines.python_calls import privatize_corpus
from corpusveil.sampling.keys import Key
from corpusveil.search.neighbors import nearest
from corpusveil.spaces import load_space
from corpusveil.spaces.build import build_space
from corpusveil.spaces.vectors import Vectors
from corpusveil.storage.parquet import read_table
from corpusveil.text.policy import TextPolicy
from corpusveil.text.spans import SpanPolicy
from corpusveil.transforms.release.passage_release import PassageRelease
from corpusveil.transforms.release.release import Release

ARTICLES, SHARDS, DIMENSIONS = 40, 3, 16


ROOT = Path(__file__).parents[1]
ROOMS = [ROOT / name for name in ("corpusveil", "evaluate/corpusveil_evaluate", "spans/corpusveil_spans")]
DONE = ROOT / ".tools" / "loops-compiled"
"""Says of what the loops were compiled last."""


def forget_old() -> str:
    """Remove machine code that was made before the last change of a file with loops; return what this is made of."""
    loops = [path for room in ROOMS for path in room.rglob("*.py") if "corpusveil.compiled" in path.read_text()]
    newest, kept = max(path.stat().st_mtime for path in loops), 0
    for code in (path for room in ROOMS for path in room.rglob("__pycache__/*.nb[ci]")):
        if code.stat().st_mtime < newest:
            code.unlink()
        else:
            kept += 1
    return f"{numba.__version__} {newest} {bool(kept)}"


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
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as two:
        for done in [two.submit(each) for each in (of_readers, of_mechanisms, of_passages)]:
            done.result()


def of_mechanisms() -> None:
    """Release the texts by every mechanism."""
    space = load_space("space")
    for name in mechanisms.names():
        with contextlib.suppress(UserError):
            release = Release(mechanisms.make_mechanism(name, space), Budget(1.0), TextPolicy(), key=Key.generate())
            privatize_corpus("texts", name, release)


def of_passages() -> None:
    """Make a space as it is made with care, release by passages, and with spans where their package is installed."""
    space = load_space("space")
    nearest(space.vectors, 0, 8)  # of which a space seldom has need
    improved = build_space(Vectors(list(space.vocabulary.words), space.vectors, counts=space.counts), order="improved")
    exchange = PassageExchange(build_store(["texts"], "store", space, "as news"))
    for per in ("sentence", "document"):
        release = PassageRelease(exchange, 10.0, per, key=Key.generate(), accept_overlap=True)
        privatize_corpus("texts", per, release)
    with contextlib.suppress(UserError):
        found = SpanPolicy(find=["rules", "names"])
        by_words = Release(
            mechanisms.make_mechanism("ring-geometric", improved), Budget(1.0), key=Key.generate(), spans=found
        )
        privatize_corpus("texts", "spans", by_words)


def of_readers() -> None:
    """Read a release by the model of an evaluation, where that is installed: of a file, and of texts."""
    with contextlib.suppress(ImportError):
        from corpusveil_evaluate.readers.ngrams.denoise import Denoiser, Search
        from corpusveil_evaluate.readers.ngrams.modelling import build_model, load_model
        from corpusveil_evaluate.statistics.perplexity import KneserNey

        build_model("counts", "model")
        space, texts = load_space("space"), news()[:ARTICLES]
        for model in (load_model("model"), KneserNey.of_texts(texts).model):
            law = mechanisms.make_mechanism("ring-geometric", space)
            Denoiser(law, Budget(1.0), TextPolicy(), model, Search()).readable(texts)


if __name__ == "__main__":
    if not DONE.exists() or DONE.read_text() != forget_old():
        with tempfile.TemporaryDirectory() as scratch:
            os.chdir(scratch)
            do_a_little()
            os.chdir(ROOT)
        DONE.parent.mkdir(exist_ok=True)
        DONE.write_text(forget_old())

"""Counting 1- to 3-grams: ours on Spark and locally, compared with plain PySpark and gensim; tokenizing; training."""

import gzip
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from benchmarks import inputs, peers
from benchmarks.report import Skipped, Table
from corpusveil.collocations.collocation_table import load_collocations
from corpusveil.collocations.count import CountOptions, count_corpus
from corpusveil.collocations.measures import Scoring, connector_words
from corpusveil.collocations.score import score_counts
from corpusveil.collocations.tokenize import tokenize_corpus
from corpusveil.collocations.tokenizers import METHODS, segment
from corpusveil.collocations.training import find_tokens, read_token_counts
from corpusveil.collocations.word2vec import Checkpoint, Training, train
from corpusveil.jobs.local import Local
from corpusveil.jobs.spark import Spark, spark_session
from corpusveil.storage import formats
from corpusveil.storage.rows import Columns
from corpusveil.text.sentences import sentence_ends
from corpusveil.text.tokens import Tokenizer

REPEATS = 3
SHARDS = 3
MIN_COUNT = 5
TOKENS_PER_SECOND, BY_SPARK, BY_GENSIM, BY_NLTK, SEGMENT, TRAIN = 1.5e6, 3, 3, 8, 5e6, 1.1


def run() -> list[Table]:
    shards = inputs.shards()[:SHARDS]
    return [counting(shards), beside_nltk(), tokenising(shards), training(shards)]


def timed(work: Callable[[str], Any]) -> float:
    with tempfile.TemporaryDirectory(dir=inputs.work()) as folder:
        began = time.perf_counter()
        work(folder)
        return time.perf_counter() - began


def plain_spark(session: Any, shards: list[str], folder: str) -> None:
    """Count directly in PySpark: split, explode, group."""
    from pyspark.sql import functions as f

    lines = session.read.json(shards).select(f.explode(f.split(f.lower("text"), r"[.!?\n]+")).alias("line"))
    words = lines.select(f.expr(r"filter(split(line, '[^\\p{L}\']+'), w -> w != '')").alias("w")).where("size(w) > 0")
    grams = [
        words.where(f"size(w) >= {n}").select(
            f.expr(f"explode(transform(sequence(1, size(w) - {n - 1}), i -> concat_ws(' ', slice(w, i, {n}))))")
        )
        for n in (1, 2, 3)
    ]
    counted = grams[0].union(grams[1]).union(grams[2]).groupBy("col").count().where(f"count >= {MIN_COUNT}")
    counted.write.parquet(f"{folder}/out")


def gensim_bigrams(sentences: list[list[str]]) -> None:
    from gensim.models.phrases import Phrases

    Phrases(sentences, min_count=MIN_COUNT, threshold=1e-9, max_vocab_size=1 << 31)


def counting(shards: list[str]) -> Table:
    options = CountOptions(3, MIN_COUNT)
    words = inputs.words(shards)
    with tempfile.TemporaryDirectory(dir=inputs.work()) as folder:
        told = count_corpus([shards[0]], f"{folder}/warm", Local(), options)
    session = spark_session("local[2]")
    with tempfile.TemporaryDirectory(dir=inputs.work()) as folder:
        count_corpus([shards[0]], f"{folder}/warm", Spark(), options)
        plain_spark(session, shards[:1], folder)
    with gzip.open(shards[0], "rb") as file:
        texts = [orjson.loads(line)["text"] for line in file]
    sentences = [line.lower().split() for text in texts for line in text.replace("! ", ". ").split(". ")]
    works: dict[str, Callable[[str], Any]] = {
        "ours, Spark local[2]": lambda folder: count_corpus(shards, f"{folder}/o", Spark(), options),
        "ours, 2 local processes": lambda folder: count_corpus(shards, f"{folder}/o", Local(2), options),
        "ours, 1 local process": lambda folder: count_corpus(shards, f"{folder}/o", Local(), options),
        "plain PySpark, explode and groupBy, local[2]": lambda folder: plain_spark(session, shards, folder),
        "gensim Phrases, bigrams only, 1 shard in memory": lambda _: gensim_bigrams(sentences),
    }
    sizes = dict.fromkeys(works, words) | {list(works)[-1]: sum(map(len, sentences))}
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(REPEATS):
        for name, work in works.items():
            times[name].append(timed(work))
    session.stop()
    rates = {name: sizes[name] / statistics.median(seconds) for name, seconds in times.items()}
    table = Table(
        f"1- to 3-grams of {SHARDS} shards, medians of {REPEATS}, Spark already running; {inputs.origin()}",
        ("what", "seconds", "words/s", "ours on Spark by this"),
    )
    ours = rates["ours, Spark local[2]"]
    for name, seconds in times.items():
        table.rows.append((name, statistics.median(seconds), rates[name], f"{ours / rates[name]:.2f}"))
    spark, phrases = list(rates)[3], list(rates)[4]
    table.target(f"{ours / 1e6:.2f} M words/s on Spark, 1.5 M wanted", met=ours >= TOKENS_PER_SECOND)
    table.target(
        f"{ours / rates[spark]:.1f} times plain PySpark, {BY_SPARK} wanted", met=ours >= BY_SPARK * rates[spark]
    )
    by_gensim = ours / rates[phrases]
    table.target(f"{by_gensim:.1f} times gensim Phrases, {BY_GENSIM} wanted", met=by_gensim >= BY_GENSIM)
    table.notes.append(
        f"First shard alone: {told['words']:,} words, {told['ngrams']:,} n-grams of {MIN_COUNT} and more."
    )
    return table


def beside_nltk() -> Table:
    """Count the peers' text by nltk's finders and by ours, in one run; the finders count one length each."""
    table = Table("1- to 3-grams of the peers' generated text, ours on Spark local[2]", ("what", "words/s", "ratio"))
    try:
        lines = (peers.folder() / "big.txt").read_bytes().splitlines(keepends=True)
        rows = peers.drive("run_collocations.py", "nltk")
    except Skipped as reason:
        table.notes.append(f"Skipped: {reason}")
        return table
    words = sum(len(line.split()) for line in lines)
    with tempfile.TemporaryDirectory(dir=inputs.work()) as folder:
        for number in range(4):
            Path(folder, f"{number}.txt").write_bytes(b"".join(lines[number::4]))
        session = spark_session("local[2]")
        options = CountOptions(3, MIN_COUNT)
        texts = f"{folder}/*.txt"
        count_corpus([texts], f"{folder}/warm", Spark(), options)
        seconds = [timed(lambda made: count_corpus([texts], f"{made}/o", Spark(), options)) for _ in range(REPEATS)]
        session.stop()
        alone = [timed(lambda made: count_corpus([texts], f"{made}/o", Local(), options)) for _ in range(REPEATS)]
    ours = words / statistics.median(seconds)
    table.rows.append(("ours, 1- to 3-grams together", ours, "1.0"))
    one = words / statistics.median(alone)
    table.rows.append(("ours, one local process", one, f"{ours / one:.1f}"))
    for row in rows:
        rate = row["tokens_per_s"]["median"]
        table.rows.append((f"nltk {row['mechanism']}", rate, f"{ours / rate:.1f}"))
        if "Trigram" in row["mechanism"]:
            table.target(f"{ours / rate:.1f} times nltk's trigrams, {BY_NLTK} wanted", met=ours >= BY_NLTK * rate)
    return table


def tokenising(shards: list[str]) -> Table:
    table = Table(
        f"Text to collocations, one core, 1 shard; {inputs.origin()}",
        ("method", "M tokens/s, segmenting", "with tokenising and sentence ends", "units a token"),
    )
    form = formats.find(formats.form_of(shards[0]))
    with tempfile.TemporaryDirectory(dir=inputs.work()) as folder:
        count_corpus(shards, f"{folder}/counts", Local(2), CountOptions(3, 20))
        scoring = Scoring(connectors=connector_words())
        score_counts(f"{folder}/counts", f"{folder}/table", Local(), scoring)
        collocations = load_collocations(f"{folder}/table")
    with open(shards[0], "rb") as file:
        batches = [batch.texts for batch in form.batches(file, shards[0], Columns())]
    tokenizer = Tokenizer.of_words(collocations.words)
    tokenizer.tokenize(batches[0].slice(0, 10))
    for method in METHODS:
        whole, bare, units, tokens = [], [], 0, 0
        for _ in range(REPEATS):
            began = time.perf_counter()
            parsed = [tokenizer.tokenize(texts) for texts in batches]
            ends = [sentence_ends(one) for one in parsed]
            middle = time.perf_counter()
            found = [segment(one.ids, end, collocations, method) for one, end in zip(parsed, ends, strict=True)]
            bare.append(time.perf_counter() - middle)
            whole.append(time.perf_counter() - began)
            tokens = sum(map(len, parsed))
            units = sum(int(np.count_nonzero(one.lengths)) for one in found)
        rate = tokens / statistics.median(bare)
        table.rows.append((method, rate / 1e6, tokens / statistics.median(whole) / 1e6, units / tokens))
        if method != "optimal":
            table.target(f"{method}: {rate / 1e6:.1f} M tokens/s, 5 M wanted", met=rate >= SEGMENT)
    table.notes.append(f"{len(collocations):,} collocations of {len(collocations.words):,} words.")
    return table


def training(shards: list[str]) -> Table:
    from gensim.models import Word2Vec

    options = Training(dimensions=300, epochs=5, workers=2)
    table = Table("word2vec, 300 dimensions, five epochs, 2 threads, 1 shard", ("what", "seconds", "words/s"))
    with tempfile.TemporaryDirectory(dir=inputs.work()) as folder:
        tokenize_corpus(shards[:1], f"{folder}/tokens", Local())
        found = find_tokens(f"{folder}/tokens")
        counts = read_token_counts(str(found.counts))
        path = Path(folder, "ready.txt")
        path.write_bytes(b"".join(gzip.decompress(Path(shard).read_bytes()) for shard in found.shards))
        total, lines = sum(counts.values()), path.read_bytes().count(b"\n")
        ours, bare = [], []
        for number in range(REPEATS):
            began = time.perf_counter()
            train(found.shards, options, Checkpoint(f"{folder}/state{number}", "x"), counts=counts)
            ours.append(time.perf_counter() - began)
            began = time.perf_counter()
            model = Word2Vec(vector_size=300, epochs=5, workers=2)
            model.build_vocab_from_freq(counts)
            model.train(corpus_file=str(path), total_examples=lines, total_words=total, epochs=5)
            bare.append(time.perf_counter() - began)
    for name, seconds in (("ours: spooling, training, checkpoint", ours), ("bare gensim on a ready file", bare)):
        table.rows.append((name, statistics.median(seconds), 5 * total / statistics.median(seconds)))
    ratio = statistics.median(ours) / statistics.median(bare)
    table.target(f"{ratio:.2f} times bare gensim, {TRAIN} allowed", met=ratio <= TRAIN)
    return table

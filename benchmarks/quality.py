"""The collocation flow on real text: measures that find multiword entries, neighbors, trainers, strategies S1 to S4.

It takes about an hour on two cores the first time; its artefacts are kept in the work folder.
"""

import difflib
import gzip
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset
import pyarrow.parquet as pq

import corpusveil as cv
from benchmarks import inputs
from benchmarks.report import Skipped, Table
from corpusveil.choices import STRATEGIES as PUBLISHED
from corpusveil.collocations.artifact import read_artifact
from corpusveil.collocations.collocation_table import load_collocations
from corpusveil.collocations.count import count_corpus
from corpusveil.collocations.measures import MEASURES, Scoring, Unigrams, connector_words, ordered, scored
from corpusveil.collocations.score import score_counts
from corpusveil.collocations.tokenize import tokenize_corpus
from corpusveil.collocations.training import train_vectors
from corpusveil.collocations.word2vec import Training
from corpusveil.jobs.local import Local
from corpusveil.jobs.mllib import train_on_spark
from corpusveil.jobs.spark import spark_session
from corpusveil.storage.artifacts import is_artifact
from corpusveil.text.tokens import Tokenizer

TOP, LEAST = 1000, 20
DOCUMENTS, AVERAGE_WORDS = 500, 44.48
"""Texts of RTE, and the average words of one as the study gives it."""
EPSILONS = (1.0, 10.0, 25.0)
SHOWN = (
    "new_york", "white_house", "high_school", "prime_minister", "credit_card", "global_warming", "ice_cream",
    "los_angeles", "health_care", "united_states",
)  # fmt: skip
MODELS = {"word": "word", "gst": "gst", "mst": "mst"}
COMPARED_SHARDS = 3


def run() -> list[Table]:
    shared = inputs.data()
    if shared is None:
        raise Skipped("the shared data is not on this machine.")
    flow = made_flow()
    return [measures(flow, shared), trainers(flow), neighbours(flow), strategies(flow, shared)]


def made_flow() -> Path:
    """Make counts, a collocation table and, of words, GST and MST, tokens, vectors and a space, where they are not."""
    folder, engine = inputs.work() / "flow", Local(2)
    shards = inputs.shards()
    if not is_artifact(f"{folder}/counts"):
        count_corpus(shards, f"{folder}/counts", engine)
    if not is_artifact(f"{folder}/table"):
        scoring = Scoring(min_count=LEAST, connectors=connector_words())
        score_counts(f"{folder}/counts", f"{folder}/table", Local(), scoring)
    for name, method in MODELS.items():
        table = None if method == "word" else f"{folder}/table"
        if not is_artifact(f"{folder}/tokens-{name}"):
            tokenize_corpus(shards, f"{folder}/tokens-{name}", engine, method, table)
        if not is_artifact(f"{folder}/vectors-{name}"):
            training = Training(epochs=1, workers=2)
            train_vectors(f"{folder}/tokens-{name}", f"{folder}/vectors-{name}", Local(), training)
        if not is_artifact(f"{folder}/space-{name}"):
            vectors = cv.read_vectors(f"{folder}/vectors-{name}")
            cv.build_space(vectors, lists=0).save(f"{folder}/space-{name}")
    return folder


def measures(flow: Path, shared: Path) -> Table:
    """Of the bigrams that each measure puts first: how many are entries of half of Open English WordNet."""
    with gzip.open(shared / "collocations" / "oewn_multiword_half_a.tsv.gz", "rt", encoding="utf-8") as file:
        entries = {line.split("\t")[0].lower().replace("_", " ") for line in file}
    counts = pa.dataset.dataset(str(flow / "counts" / "ngrams")).to_table()
    single = counts.filter(pc.equal(counts["n"], 1)).combine_chunks()
    total = read_artifact(str(flow / "counts"), "counts")["words"]
    words = single["ngram"].cast(pa.large_string()).combine_chunks()
    unigrams = Unigrams(words, single["count"].to_numpy(), total)
    pairs = counts.filter(pc.equal(counts["n"], 2))
    table = Table(
        f"The {TOP:,} bigrams that score highest, occurring {LEAST} times or more, {total:,} words; c4-like",
        ("measure", "entries of half of OEWN", "first five"),
    )
    for measure in MEASURES:
        kept = scored([pairs], unigrams, Scoring(measure, -1e9, LEAST, connector_words()))
        top = ordered(pa.concat_tables(kept))["ngram"].to_pylist()[:TOP]
        table.rows.append((measure, sum(ngram in entries for ngram in top), ", ".join(top[:5])))
    return table


def neighbours(flow: Path) -> Table:
    space = cv.load_space(str(flow / "space-gst"))
    unit = space.vectors / np.linalg.norm(space.vectors, axis=1, keepdims=True)
    table = Table("Nearest neighbours by cosine, GST, one epoch", ("collocation", "five nearest"))
    for token in SHOWN:
        if token in space.vocabulary:
            near = np.argsort(-(unit @ unit[space.id(token)]), kind="stable")[1:6]
            table.rows.append((token, ", ".join(space.word(int(one)) for one in near)))
    return table


def trainers(flow: Path) -> Table:
    """gensim and MLlib on the same tokens: speed, and agreement with people on gensim's bundled test sets."""
    table = Table(
        f"Trainers, 300 dimensions, one epoch, two cores, words of {COMPARED_SHARDS} shards; c4-like",
        ("trainer", "seconds", "words/s", "WordSim-353", "SimLex-999", "analogies"),
    )
    tokens = flow / "tokens-three"
    if not is_artifact(str(tokens)):
        tokenize_corpus(inputs.shards()[:COMPARED_SHARDS], str(tokens), Local(2))
    total = read_artifact(str(tokens), "tokens")["tokens"]
    alike = {"sg": 1, "hs": 1, "negative": 0}
    works: dict[str, Any] = {
        "gensim, its defaults (CBOW, negative sampling)": Training(epochs=1, workers=2),
        "gensim, skip-gram with hierarchical softmax": Training(epochs=1, workers=2, **alike),
        "MLlib, skip-gram with hierarchical softmax, 1 partition": 1,
        "MLlib, the same, 2 partitions": 2,
    }
    spark_session("local[2]")
    for number, (name, how) in enumerate(works.items()):
        output = flow / f"trainer-{number}"
        if is_artifact(str(output)):
            told = read_artifact(str(output), "vectors")
        elif isinstance(how, Training):
            told = train_vectors(str(tokens), str(output), Local(), how)
        else:
            told = train_on_spark(str(tokens), str(output), Training(epochs=1), partitions=how)
        seconds = told["seconds"]
        table.rows.append((name, seconds, total / seconds, *quality(output)))
    whole = flow / "vectors-word"
    told = read_artifact(str(whole), "vectors")
    rate = told["tokens"] / told["seconds"]
    table.rows.append(("gensim, its defaults, all 12 shards", told["seconds"], rate, *quality(whole)))
    table.notes.append("Rank correlation (Spearman) with people's judgements of pairs; share of analogies answered.")
    return table


def quality(vectors: Path) -> tuple[float, float, float]:
    from gensim.models import KeyedVectors
    from gensim.test.utils import datapath

    read = cv.read_vectors(str(vectors))
    keyed = KeyedVectors(read.vectors.shape[1])
    keyed.add_vectors(list(read.words), read.vectors)
    pairs = [float(keyed.evaluate_word_pairs(datapath(name))[1][0]) for name in ("wordsim353.tsv", "simlex999.txt")]
    share, _ = keyed.evaluate_word_analogies(datapath("questions-words.txt"), restrict_vocab=30_000)
    return pairs[0], pairs[1], float(share)


def strategies(flow: Path, shared: Path) -> Table:
    """S1 to S4 with CMP: unchanged words, and how far the average of a text's words moves."""
    texts = pq.read_table(shared / "tasks" / "rte.parquet")["text"].to_pylist()[:DOCUMENTS]
    neutral = cv.read_vectors(inputs.vectors())
    lookup = {word: number for number, word in enumerate(neutral.words)}
    words = Tokenizer.of_words(list(neutral.words))
    collocations = load_collocations(f"{flow}/table")

    def average(text: str) -> Any:
        ids = [lookup[word] for word in spoken(words, text) if word in lookup]
        return neutral.vectors[ids].mean(axis=0) if ids else np.zeros(neutral.vectors.shape[1])

    table = Table(
        f"S1 to S4 with CMP, the first sentence of {DOCUMENTS} pairs of RTE, E = epsilon_base * {AVERAGE_WORDS}",
        ("strategy, space", "epsilon_base", "unchanged words", "cosine of averages", "words/s"),
    )
    originals = [(spoken(words, text), average(text)) for text in texts]
    for strategy, model in (("s1", "word"), ("s1", "gst"), ("s2", "gst"), ("s3", "gst"), ("s4", "mst")):
        space = cv.load_space(f"{flow}/space-{model}")
        for base in EPSILONS:
            options, budget = dict(PUBLISHED[strategy]), base * AVERAGE_WORDS
            release = cv.Release(
                cv.mechanism("cmp", space),
                cv.Budget(budget, options.pop("per"), options.pop("allocation")),
                cv.TextPolicy(**options),
                cv.Key.load(inputs.key()),
                None if options["tokenizer"] == "word" else collocations,
            )
            began = time.perf_counter()
            private = cv.privatize(texts, release, cv.RowNumbers("sentences"))
            seconds = time.perf_counter() - began
            same = total = 0
            cosines = []
            for (before, mean), text in zip(originals, private, strict=True):
                after = spoken(words, text)
                same += sum(one.size for one in difflib.SequenceMatcher(None, before, after, autojunk=False)
                            .get_matching_blocks())  # fmt: skip
                total += len(before)
                moved = average(text)
                size = np.linalg.norm(mean) * np.linalg.norm(moved)
                cosines.append(float(mean @ moved / size) if size else 0.0)
            table.rows.append(
                (f"{strategy.upper()}, {model}", base, same / total, float(np.mean(cosines)), total / seconds)
            )
    table.notes.append("Unchanged: words of the original in a longest match with the private text, share of all.")
    table.notes.append("The averages are of vectors that no space here is made of (minilm-words).")
    return table


def spoken(tokenizer: Tokenizer, text: str) -> list[str]:
    return list(_words(tokenizer, text))


def _words(tokenizer: Tokenizer, text: str) -> Iterator[str]:
    tokens = tokenizer.tokenize(pa.array([text], pa.large_string()))
    for first, last, kind in zip(tokens.starts, tokens.ends, tokens.classes, strict=True):
        if kind == 0:
            yield bytes(tokens.data[first:last]).decode().lower()

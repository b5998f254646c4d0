"""What a study stands on: its texts, and spaces and collocations made of public text or of given vectors.

Everything is public or thrown away: private versions of texts are made in memory under keys that anybody can compute,
measured, and never written. Prepared parts lie in the folder ``ground`` of a study's output and are made once.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import orjson
from isal import igzip

from corpusveil import __version__
from corpusveil.budget import Budget
from corpusveil.collocations.artifact import is_artifact, read_artifact
from corpusveil.collocations.connectors import connector_words
from corpusveil.collocations.count import CountOptions, count_corpus
from corpusveil.collocations.measures import Scoring
from corpusveil.collocations.score import score_counts
from corpusveil.collocations.stages import Engine, Watch, mark_of
from corpusveil.collocations.table import Collocations, load_collocations
from corpusveil.collocations.tokenize import tokenize_corpus
from corpusveil.collocations.training import train_vectors
from corpusveil.collocations.word2vec import Training
from corpusveil.errors import UserError
from corpusveil.evaluation.bundled import TASKS, bundled_task, public_texts, topics
from corpusveil.evaluation.finetuning import FineTuned
from corpusveil.evaluation.language import KneserNey
from corpusveil.evaluation.learning import Remembered
from corpusveil.evaluation.models import Model, model_of
from corpusveil.evaluation.recurrent import Recurrent
from corpusveil.evaluation.similarity import AveragedVectors, Encoder, SentenceEncoder
from corpusveil.evaluation.tasks import Task, read_task
from corpusveil.mechanisms import Mechanism, make
from corpusveil.sampling.keys import Key
from corpusveil.spaces import Space, Vectors, build_space, load_space, read_vectors
from corpusveil.storage import files
from corpusveil.storage.inputs import find_shards
from corpusveil.text.policy import TextPolicy
from corpusveil.transforms.identities import RowNumbers
from corpusveil.transforms.release import Release
from corpusveil.transforms.table import privatize

PAIRS = dict.fromkeys(("rte", "mrpc", "qqp", "mnli", "qnli", "wnli", "snli"), "text2")
"""Data sets of pairs, and the column of their second text."""
FORMS = (".parquet", ".csv", ".jsonl", ".jsonl.gz", ".json.gz")
BUNDLED_SHARDS = 2
CLASSIFIERS = 4
"""So many are remembered in each process."""
MADE_OF = "made-of.sha256"
ONE_LIST = "words"
"""The space that every study has: one embedding, one list."""


@dataclass(frozen=True, slots=True)
class Sources:
    """What the user gives. Without ``data`` tasks are bundled ones; without ``vectors`` they are trained on ``corpus``.

    ``corpus`` are files of public text, without them what the dependencies ship. ``encoder`` and ``model`` may be
    folders of models on this machine; ``collection``, ``queries`` and ``qrels`` are a judged retrieval set.
    """

    data: str | None = None
    vectors: tuple[str, ...] = ()
    corpus: tuple[str, ...] = ()
    text: str = "text"
    encoder: str | None = None
    model: str = "tfidf"
    collection: str | None = None
    queries: str | None = None
    qrels: str | None = None


@dataclass(frozen=True, slots=True)
class WordSpace:
    """A space of words that a study asks for.

    ``embeddings``: how many (the first of those given; 0 for all), ``lists`` an embedding, ``dimensions`` of the
    vectors where the study compares them.
    """

    name: str
    embeddings: int = 1
    lists: int = 1
    dimensions: int | None = None


@dataclass(frozen=True, slots=True)
class Needs:
    """What is prepared: spaces of words, and of the corpus by tokenizer (``word``, ``gst``, ``mst``).

    ``dimensions``, ``epochs`` and ``min_count`` are those of vectors that are trained.
    """

    words: tuple[WordSpace, ...] = (WordSpace(ONE_LIST),)
    tokenizers: tuple[str, ...] = ()
    dimensions: int = 300
    epochs: int = 5
    min_count: int = 5
    variants: int = 3
    """Embeddings that are trained where a space takes all."""


@dataclass(frozen=True)
class Ground:
    """Texts, spaces and measures for the cells of a study; opened anew in every process."""

    folder: str
    sources: Sources
    needs: Needs
    _spaces: dict[str, Space] = field(default_factory=dict, repr=False, compare=False)
    _tasks: dict[Any, Task] = field(default_factory=dict, repr=False, compare=False)

    def address(self, *parts: str) -> str:
        """Return an address in the ground's folder."""
        return files.join(self.folder, "ground", *parts)

    def space(self, name: str = ONE_LIST) -> Space:
        """Return a prepared space: a ``WordSpace`` by its name, or ``corpus-word``, ``corpus-gst``, ``corpus-mst``."""
        if name not in self._spaces:
            self._spaces[name] = load_space(self.address("spaces", name), verify=False)
        return self._spaces[name]

    @property
    def bundled(self) -> bool:
        """Whether the tasks are those of the dependencies' text."""
        return self.sources.data is None

    def has(self, name: str) -> bool:
        """Say whether ``--data`` has a file of this data set."""
        return not self.bundled and self._file(name) is not None

    def names(self, tasks: Sequence[str], bundled: Sequence[str], *, needed: bool = True) -> list[str]:
        """Return the tasks that are here: of ``--data`` those with a file, else the bundled ones.

        Raises UserError where ``--data`` has none of them and they are ``needed``.
        """
        if self.bundled:
            return list(bundled)
        found = [name for name in tasks if self.has(name)]
        if tasks and needed and not found:
            raise UserError(
                f"--data {self.sources.data}: it has none of {', '.join(f'{name}.parquet' for name in tasks)}; "
                "csv and jsonl will do."
            )
        return found

    def _file(self, name: str) -> str | None:
        assert self.sources.data is not None  # noqa: S101 - asked only then
        known = set(files.listing(self.sources.data))
        form = next((form for form in FORMS if f"{name}{form}" in known), None)
        return None if form is None else files.join(self.sources.data, f"{name}{form}")

    def task(self, name: str, train_rows: int, test_rows: int) -> Task:
        """Return a task with so many rows to train on and to test on at most, drawn by a fixed seed.

        Files have the columns ``text``, ``label`` and ``split``, those of pairs ``text2`` as well.
        """
        which = (name, train_rows, test_rows)
        if which not in self._tasks:
            whole = bundled_task(name) if name in TASKS else self._read(name)
            rng = np.random.default_rng(0)
            parts = zip(whole.train_and_test(0), (train_rows, test_rows), strict=True)
            rows = np.concatenate([np.sort(rng.permutation(part)[:most]) for part, most in parts])
            self._tasks[which] = whole.take(rows)
        return self._tasks[which]

    def _read(self, name: str) -> Task:
        file = None if self.bundled else self._file(name)
        if file is None:
            raise UserError(f"{name}: there is no such data set here; name its folder with --data.")
        return read_task(file, second=PAIRS.get(name), split="split", name=name)

    def with_topics(self, task: Task) -> Task:
        """Return a task with topics in the place of its labels: clusters of averaged vectors, a constructed label."""
        which = ("topics", task.name, len(task))
        if which not in self._tasks:
            self._tasks[which] = task.with_labels(topics(task.texts, self.space()))
        return self._tasks[which]

    def collocations(self) -> Collocations:
        """Return the collocations of the corpus."""
        return load_collocations(self.address("collocations"))

    @functools.cached_property
    def encoder(self) -> Encoder:
        """What similarity of meaning is measured by: the given sentence encoder, or averaged vectors."""
        if self.sources.encoder is not None:
            return SentenceEncoder(self.sources.encoder)
        return AveragedVectors(self.space(), centred=True)

    @functools.cached_property
    def model(self) -> Model:
        """The classifier: a built-in one by its name, or a folder that is fine-tuned; the last ones are remembered.

        Cells of a process share those of original texts so: they are trained on in many cells.
        """
        return Remembered(self._model(), most=CLASSIFIERS)

    def _model(self) -> Model:
        if self.sources.model in ("tfidf", "vectors"):
            return model_of(self.sources.model, self.space())
        if self.sources.model == "lstm":
            return Recurrent(self.space())
        return FineTuned(self.sources.model)

    @functools.cached_property
    def language(self) -> KneserNey:
        """The language model of the corpus' counts, smoothed; needs ``tokenizers`` among what is prepared."""
        return KneserNey.of_counts(self.address("counts"))

    def private(
        self,
        texts: Sequence[str],
        mechanism: Mechanism,
        budget: Budget,
        seed: int,
        policy: TextPolicy | None = None,
        collocations: Collocations | None = None,
        *,
        source: str,
    ) -> list[str]:
        """Return private versions of texts under a seed's key, which is public: they are measured, not released."""
        release = Release(
            mechanism, budget, policy or TextPolicy(), key_of(seed), collocations, accept_no_guarantee=True
        )
        return privatize(list(texts), release, RowNumbers(source))

    def mechanism(self, name: str, space: str = ONE_LIST, **parameters: Any) -> Mechanism:
        """Return a mechanism over a prepared space."""
        return make(name, self.space(space), **parameters)

    def digest(self) -> str:
        """Return what tells one ground from another: sources, and everything that was prepared."""
        made = {name: self.space(name).digest for name in self.prepared}
        return mark_of(dataclasses.asdict(self.sources), _stamps(self.sources), made, __version__)

    @property
    def prepared(self) -> list[str]:
        """The names of all spaces."""
        return [*(one.name for one in self.needs.words), *(f"corpus-{name}" for name in self.needs.tokenizers)]

    def lines(self) -> list[str]:
        """Say what the study stands on, for its notes."""
        where = "vectors given" if self.sources.vectors else "word2vec trained here"
        return [
            f"Space {name}: {len(one):,} words, {one.dimensions} dimensions, {len(one.lists)} lists; {where}."
            for name in self.prepared
            for one in [self.space(name)]
        ]

    def by_what(self) -> str:
        """Say what classifies and what measures similarity, for the notes of studies that ask for it."""
        return f"Classifier: {self.model.name}. Similarity: {self.encoder.label}."


def key_of(seed: int) -> Key:
    """Return the key of a seed. It is public: what is made under it must not be released."""
    return Key(hashlib.sha256(f"corpusveil study, seed {seed}".encode()).digest())


def _stamps(sources: Sources) -> list[Any]:
    """Return sizes and times of the given files: others mean other results."""
    named = [*sources.vectors]
    named += [one for one in (sources.collection, sources.queries, sources.qrels) if one is not None]
    folders = [one for one in (sources.encoder, sources.model) if one is not None and os.path.isdir(one)]
    named += [files.join(folder, name) for folder in folders for name in files.listing(folder)]
    if sources.data is not None:
        named += [files.join(sources.data, name) for name in sorted(files.listing(sources.data))]
    found: list[Any] = [[one.url, one.size, one.stamp] for one in find_shards(sources.corpus)] if sources.corpus else []
    for one in named:
        told = files.info(one) or {}
        found.append([one, told.get("size"), str(told.get("mtime") or told.get("ETag") or told.get("etag"))])
    return found


def prepare(ground: Ground, engine: Engine, watch: Watch | None = None) -> None:
    """Make what is not made yet. Raises UserError for vectors that can't be read or are too few."""
    needs, sources = ground.needs, ground.sources
    made = mark_of(dataclasses.asdict(sources), _stamps(sources), dataclasses.asdict(needs))
    there = files.read_if_there(ground.address(MADE_OF))
    if there is not None and there != made.encode() and _begun(ground):
        raise UserError(
            f"{ground.folder}: here lies a study of other data, options or another grid; choose another --output."
        )
    given: list[Vectors] = []
    if not all(is_artifact(ground.address("spaces", one.name)) for one in needs.words):
        given = [read_vectors(url) for url in sources.vectors]
        for one in needs.words:
            if given and one.dimensions is not None:
                _require_dimensions(_largest(given), one.dimensions)
    files.write_bytes(ground.address(MADE_OF), made.encode())
    trained = not sources.vectors or bool(needs.tokenizers)
    if trained:
        _learn(ground, engine, watch, 0 if sources.vectors else _variants(needs))
    for one in needs.words:
        where = ground.address("spaces", one.name)
        if not is_artifact(where):
            some = given or [read_vectors(url) for url in _trained(ground, one)]
            build_space(_chosen(some, one), lists=one.lists).save(where)
    for name in needs.tokenizers:
        where = ground.address("spaces", f"corpus-{name}")
        if not is_artifact(where):
            build_space(read_vectors(ground.address(f"vectors-{name}"))).save(where)


def _begun(ground: Ground) -> bool:
    """Say whether anything was made that another study could take for its own."""
    made = [*(("spaces", name) for name in ground.prepared), ("counts",), ("collocations",)]
    made += [(f"tokens-{name}",) for name in ("word", "gst", "mst")]
    return any(is_artifact(ground.address(*parts)) for parts in made)


def _variants(needs: Needs) -> int:
    return needs.variants if any(one.embeddings != 1 for one in needs.words) else 1


def _trained(ground: Ground, one: WordSpace) -> list[str]:
    if one.dimensions is not None:
        return [ground.address(f"vectors-word-{one.dimensions}")]
    count = one.embeddings or _variants(ground.needs)
    return [ground.address("vectors-word" if number == 0 else f"vectors-word.{number}") for number in range(count)]


def _chosen(vectors: Sequence[Vectors], one: WordSpace) -> list[Vectors]:
    if one.dimensions is not None:
        same = [some for some in vectors if some.vectors.shape[1] == one.dimensions]
        return [same[0] if same else reduced(_largest(vectors), one.dimensions)]
    return list(vectors[: one.embeddings or len(vectors)])


def _largest(vectors: Sequence[Vectors]) -> Vectors:
    return max(vectors, key=lambda some: some.vectors.shape[1])


def _require_dimensions(vectors: Vectors, dimensions: int) -> None:
    if dimensions > vectors.vectors.shape[1]:
        raise UserError(
            f"{vectors.source}: it has {vectors.vectors.shape[1]} dimensions and the grid asks for {dimensions}; give "
            "vectors that have so many, or leave them out of the grid."
        )


def reduced(vectors: Vectors, dimensions: int) -> Vectors:
    """Return vectors with fewer dimensions, by their principal components. Raises UserError for more of them."""
    _require_dimensions(vectors, dimensions)
    centred = vectors.vectors.astype(np.float64) - vectors.vectors.mean(axis=0, dtype=np.float64)
    _, axes = np.linalg.eigh(centred.T @ centred)
    made = (centred @ axes[:, ::-1][:, :dimensions]).astype(np.float32)
    return dataclasses.replace(vectors, vectors=made, source=f"{vectors.source}, {dimensions} principal components")


def _learn(ground: Ground, engine: Engine, watch: Watch | None, variants: int) -> None:
    """Count, score, tokenise and train on the public corpus; each artefact is made once."""
    needs, sources = ground.needs, ground.sources
    inputs = list(sources.corpus) or _bundled_corpus(ground)
    counts, table = ground.address("counts"), ground.address("collocations")
    text = sources.text if sources.corpus else "text"
    if needs.tokenizers:
        if not is_artifact(counts):
            count_corpus(inputs, counts, engine, CountOptions(3, needs.min_count, text), watch=watch)
        if not is_artifact(table):
            score_counts(counts, table, engine, Scoring(connectors=connector_words()), watch=watch)
    plain = Training(dimensions=needs.dimensions, min_count=needs.min_count, epochs=needs.epochs, sg=1)
    wanted = {name: {f"vectors-{name}": plain} for name in needs.tokenizers}
    for number in range(variants):
        name = "vectors-word" if number == 0 else f"vectors-word.{number}"
        other = dataclasses.replace(plain, sg=(number + 1) % 2, window=5 + 2 * number, seed=1 + number)
        wanted.setdefault("word", {})[name] = other
    for one in needs.words:
        if one.dimensions is not None and not sources.vectors:
            name = f"vectors-word-{one.dimensions}"
            wanted.setdefault("word", {})[name] = dataclasses.replace(plain, dimensions=one.dimensions)
    for name, trainings in wanted.items():
        tokens = ground.address(f"tokens-{name}")
        if not is_artifact(tokens):
            joined = None if name == "word" else table
            tokenize_corpus(inputs, tokens, engine, _how(name), joined, text=text, watch=watch)
        for where, training in trainings.items():
            if not is_artifact(ground.address(where)):
                train_vectors(tokens, ground.address(where), engine, training)


def _how(name: str) -> Any:
    if name not in ("word", "gst", "mst", "optimal"):
        raise UserError(f"tokenizer {name}: it may be word, gst, mst or optimal.")
    return name


def _bundled_corpus(ground: Ground) -> list[str]:
    names = [f"bundled-{shard:05d}-of-{BUNDLED_SHARDS:05d}.json.gz" for shard in range(BUNDLED_SHARDS)]
    urls = [ground.address("corpus", name) for name in names]
    if not all(files.exists(url) for url in urls):
        texts = list(public_texts())
        for shard, url in enumerate(urls):
            lines = b"".join(orjson.dumps({"text": text}) + b"\n" for text in texts[shard::BUNDLED_SHARDS])
            files.write_bytes(url, igzip.compress(lines))
    return urls


def counted(ground: Ground) -> dict[str, int]:
    """Return what was counted in the corpus: words, documents and sentences."""
    told = read_artifact(ground.address("counts"), "counts")
    return {name: told[name] for name in ("words", "documents", "sentences")}

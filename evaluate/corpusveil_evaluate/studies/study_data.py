"""The data of a study: its texts, and spaces and collocations made from public text or given vectors.

Everything is public or temporary: private versions of texts are made in memory under keys that anybody can compute,
measured, and never written. Prepared parts are in the folder ``ground`` of a study's output, and are made once.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from corpusveil import __version__
from corpusveil.budget import Budget
from corpusveil.collocations.artifact import read_artifact
from corpusveil.collocations.collocation_table import Collocations, load_collocations
from corpusveil.errors import DataError, MissingError, SettingError
from corpusveil.mechanisms import Mechanism, make_mechanism
from corpusveil.sampling.keys import Key
from corpusveil.spaces import Space, load_space
from corpusveil.spaces.build import in_common
from corpusveil.spaces.vectors import median_distance
from corpusveil.storage import files
from corpusveil.storage.durable import mark_of
from corpusveil.storage.inputs import find_shards
from corpusveil.text.policy import TextPolicy
from corpusveil.transforms.identities import RowNumbers
from corpusveil.transforms.release.release import Release
from corpusveil.transforms.table import privatize
from corpusveil_evaluate.readers.ngrams.denoise import Denoiser
from corpusveil_evaluate.statistics.encoders import AveragedVectors, Encoder, SentenceEncoder
from corpusveil_evaluate.statistics.perplexity import KneserNey
from corpusveil_evaluate.studies.bundled_text import TASKS, bundled_task, topics
from corpusveil_evaluate.utility.labelled_texts import LabelledTexts, read_task
from corpusveil_evaluate.utility.text_classifiers import Model, Remembered, model_of

PAIRS = dict.fromkeys(("rte", "mrpc", "qqp", "mnli", "qnli", "wnli", "snli", "stsb"), "text2")
"""Data sets of pairs, and the column of their second text."""
GRADED = ("stsb",)
"""Data sets whose labels are numbers on a scale."""
FORMS = (".parquet", ".csv", ".jsonl", ".jsonl.gz", ".json.gz")
CLASSIFIERS = 4
"""The number that each process keeps."""
OF_CORPUS = "corpus-"
"""What the name of a space of the corpus, by tokenizer, begins with."""
ONE_LIST = "words"
"""The space of every study: one embedding, one list."""


@dataclass(frozen=True, slots=True)
class Sources:
    """The user's inputs. Without ``data``, tasks are bundled; without ``vectors``, vectors are trained on ``corpus``.

    ``corpus`` are files of public text, by default the text that the dependencies ship. ``encoder`` and ``model`` may
    be folders of models on this machine; ``collection``, ``queries`` and ``qrels`` are a judged retrieval set.
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
    """A space of words that a study needs.

    ``embeddings``: their number (the first given; 0 for all), ``lists`` per embedding, ``dimensions`` of the vectors if
    the study compares them.
    """

    name: str
    embeddings: int = 1
    lists: int = 1
    dimensions: int | None = None


@dataclass(frozen=True, slots=True)
class Needs:
    """The artifacts to prepare: spaces of words, and of the corpus by tokenizer (``word``, ``gst``, ``mst``).

    ``dimensions``, ``epochs`` and ``min_count`` are those of trained vectors.
    """

    words: tuple[WordSpace, ...] = (WordSpace(ONE_LIST),)
    tokenizers: tuple[str, ...] = ()
    dimensions: int = 300
    epochs: int = 5
    min_count: int = 5
    scale: float | None = None
    """The median distance of two words to which vectors that are trained here are scaled; given ones never are."""
    joined_scale: float | None = None
    """That of the spaces with collocations, if it is another."""
    variants: int = 3
    """Embeddings that are trained where a space takes all."""
    language: bool = False
    """Whether n-grams of the corpus are counted for a language model even without tokenizers."""

    @property
    def counts(self) -> bool:
        """Whether n-grams of the corpus are counted."""
        return self.language or bool(self.tokenizers)


@dataclass(frozen=True)
class StudyData:
    """Texts, spaces and measures for the cells of a study; opened anew in every process."""

    folder: str
    sources: Sources
    needs: Needs
    _spaces: dict[str, Space] = field(default_factory=dict, repr=False, compare=False)
    _tasks: dict[Any, LabelledTexts] = field(default_factory=dict, repr=False, compare=False)

    def address(self, *parts: str) -> str:
        """Return an address in the folder of prepared artifacts."""
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

    def sets(self) -> list[str]:
        """Return the names of all data sets of ``--data``, sorted; none without it."""
        known = [] if self.sources.data is None else files.listing(self.sources.data, folders=True)
        found = ((name.removesuffix(form) for form in FORMS if name.endswith(form)) for name in known)
        return sorted({name for names in found for name in names})

    def names(self, tasks: Sequence[str], bundled: Sequence[str], *, needed: bool = True) -> list[str]:
        """Return the available tasks: those with a file in ``--data``, otherwise the bundled tasks.

        Raises UserError if ``--data`` has none of them and they are ``needed``.
        """
        if self.bundled:
            return list(bundled)
        present = [name for name in tasks if self.has(name)]
        if tasks and needed and not present:
            raise DataError(
                f"data {self.sources.data}: this folder has none of "
                f"{', '.join(f'{name}.parquet' for name in tasks)} (csv and jsonl also work); add them."
            )
        return present

    def _file(self, name: str) -> str | None:
        assert self.sources.data is not None  # noqa: S101 - asked only then
        known = set(files.listing(self.sources.data, folders=True))  # a link is no plain file
        form = next((form for form in FORMS if f"{name}{form}" in known), None)
        return None if form is None else files.join(self.sources.data, f"{name}{form}")

    def task(self, name: str, train_rows: int, test_rows: int) -> LabelledTexts:
        """Return a task with at most this many rows for training and testing, drawn by a fixed seed.

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

    def _read(self, name: str) -> LabelledTexts:
        file = None if self.bundled else self._file(name)
        if file is None:
            raise MissingError(f"{name}: there is no such data set here; name its folder (data).")
        return read_task(file, name, second=PAIRS.get(name), split="split", graded=name in GRADED)

    def with_topics(self, task: LabelledTexts) -> LabelledTexts:
        """Return a task with topics in place of its labels: clusters of averaged vectors, a constructed label."""
        which = ("topics", task.name, len(task))
        if which not in self._tasks:
            self._tasks[which] = task.with_labels(topics(task.texts, self.space()))
        return self._tasks[which]

    def collocations(self) -> Collocations:
        """Return the collocations of the corpus."""
        return load_collocations(self.address("collocations"))

    @functools.cached_property
    def encoder(self) -> Encoder:
        """The encoder for similarity of meaning: the given sentence encoder, or averaged vectors."""
        if self.sources.encoder is not None:
            return SentenceEncoder(self.sources.encoder)
        return AveragedVectors(self.space(), centered=True)

    @functools.cached_property
    def model(self) -> Model:
        """The classifier of a name; the last fitted ones are cached.

        So the cells of a process share classifiers of original texts, which many cells use.
        """
        return Remembered(model_of(self.sources.model, self.space()), most=CLASSIFIERS)

    @functools.cached_property
    def language(self) -> KneserNey:
        """The language model of the corpus' counts, smoothed; needs prepared ``counts``."""
        return KneserNey.of_counts(self.address("counts"))

    def denoiser(
        self,
        mechanism: Mechanism,
        budget: Budget,
        policy: TextPolicy,
        collocations: Collocations | None = None,
    ) -> Denoiser | None:
        """Return the denoiser of private versions by the language model, which an attacker uses first.

        None if a reader cannot know the epsilon at which a word was replaced.
        """
        try:
            return Denoiser(mechanism, budget, policy, self.language.model, collocations=collocations)
        except SettingError:
            return None

    def private(
        self,
        texts: Sequence[str],
        mechanism: Mechanism,
        budget: Budget,
        seed: int,
        policy: TextPolicy,
        collocations: Collocations | None = None,
        *,
        source: str,
    ) -> list[str]:
        """Return private versions of texts under a seed's key, which is public: they are measured, not released."""
        release = Release(
            mechanism, budget, policy, key=key_of(seed), collocations=collocations, accept_no_guarantee=True
        )
        return privatize(list(texts), release, RowNumbers(source))

    def mechanism(self, name: str, space: str = ONE_LIST, **parameters: Any) -> Mechanism:
        """Return a mechanism over a prepared space."""
        return make_mechanism(name, self.space(space), **parameters)

    def digest(self) -> str:
        """Return the fields that distinguish these data: sources, and all prepared artifacts."""
        made = {name: self.space(name).digest for name in self.prepared}
        return mark_of(dataclasses.asdict(self.sources), stamps(self.sources), made, __version__)

    @property
    def prepared(self) -> list[str]:
        """The names of all spaces."""
        return [*(word.name for word in self.needs.words), *(f"corpus-{name}" for name in self.needs.tokenizers)]

    def scale(self, name: str) -> str:
        """Return the median distance of two words of a space, in figures."""
        return f"{median_distance(self.space(name).vectors):.3g}"

    def lines(self) -> Iterator[str]:
        """Yield what describes the study's data, for its notes."""
        where = "vectors given" if self.sources.vectors else "word2vec trained here"
        for name in self.prepared:
            space = self.space(name)
            yield (
                f"Space {name}: {len(space):,} words, {space.dimensions} dimensions, {len(space.lists)} lists, median "
                f"distance {self.scale(name)}; {'word2vec trained here' if name.startswith(OF_CORPUS) else where}."
            )
            if common := in_common(space):
                yield f"Space {name}: {common}; every list has every word, which the guarantee needs."

    def by_what(self) -> str:
        """Describe classifier and similarity encoder, for the notes of studies that use them."""
        return f"Classifier: {self.model.name}. Similarity: {self.encoder.label}."


def key_of(seed: int) -> Key:
    """Return the key of a seed. It is public: texts made under it must not be released."""
    return Key(hashlib.sha256(f"corpusveil study, seed {seed}".encode()).digest())


def stamps(sources: Sources) -> list[Any]:
    """Return sizes and times of the given files, which identify the results."""
    named = [*sources.vectors]
    named += [source for source in (sources.collection, sources.queries, sources.qrels) if source is not None]
    if sources.encoder is not None and os.path.isdir(sources.encoder):
        named += [files.join(sources.encoder, name) for name in files.listing(sources.encoder)]
    if sources.data is not None:
        named += [files.join(sources.data, name) for name in files.listing(sources.data, folders=True)]
    stamps: list[Any] = (
        [[find_shard.url, find_shard.size, find_shard.stamp] for find_shard in find_shards(sources.corpus)]
        if sources.corpus
        else []
    )
    for url in named:
        info = files.info(url) or {}
        stamps.append([url, info.get("size"), str(info.get("mtime") or info.get("ETag") or info.get("etag"))])
    return stamps


def counted(data: StudyData) -> dict[str, int]:
    """Return the counts of the corpus: words, documents and sentences."""
    description = read_artifact(data.address("counts"), "counts")
    return {name: description[name] for name in ("words", "documents", "sentences")}

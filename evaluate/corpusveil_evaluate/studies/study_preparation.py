"""The artifacts made once for a study: spaces of given vectors, or counts, collocations and vectors of public text."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import orjson
from isal import igzip

from corpusveil.collocations.count import CountOptions, count_corpus
from corpusveil.collocations.measures import Scoring, connector_words
from corpusveil.collocations.public_texts import public_texts
from corpusveil.collocations.score import score_counts
from corpusveil.collocations.tokenize import tokenize_corpus
from corpusveil.collocations.training import train_vectors
from corpusveil.collocations.word2vec import Training
from corpusveil.errors import AddressError, SettingError
from corpusveil.spaces.build import build_space
from corpusveil.spaces.vectors import Vectors, read_vectors
from corpusveil.storage import files
from corpusveil.storage.artifacts import is_artifact
from corpusveil.storage.durable import mark_of
from corpusveil.storage.engine import Engine
from corpusveil_evaluate.studies.study_data import Needs, StudyData, WordSpace, stamps

BUNDLED_SHARDS = 2
MADE_OF = "made-of.sha256"


def prepare_data(data: StudyData, engine: Engine) -> None:
    """Make missing artifacts. Raises UserError for vectors that are unreadable or too few."""
    needs, sources = data.needs, data.sources
    made = mark_of(dataclasses.asdict(sources), stamps(sources), dataclasses.asdict(needs))
    there = files.read_if_there(data.address(MADE_OF))
    if there is not None and there != made.encode() and _begun(data):
        raise AddressError(
            f"{data.folder}: this folder has a study of other data, options or another grid; choose another output."
        )
    vectors: list[Vectors] = []
    if not all(is_artifact(data.address("spaces", word.name)) for word in needs.words):
        vectors = [read_vectors(url) for url in sources.vectors]
        for space in needs.words:
            if vectors and space.dimensions is not None:
                _require_dimensions(_largest(vectors), space.dimensions)
    files.write_bytes(data.address(MADE_OF), made.encode())
    if needs.counts or (needs.words and not sources.vectors):
        _learn(data, engine, 0 if sources.vectors else _variants(needs))
    for space in needs.words:
        where = data.address("spaces", space.name)
        if not is_artifact(where):
            some = vectors or [read_vectors(url) for url in _trained(data, space)]
            build_space(_chosen(some, space), lists=space.lists, scale=None if vectors else needs.scale).save(where)
    for name in needs.tokenizers:
        where = data.address("spaces", f"corpus-{name}")
        if not is_artifact(where):
            scale = needs.scale if name == "word" else needs.joined_scale or needs.scale
            build_space(read_vectors(data.address(f"vectors-{name}")), scale=scale).save(where)


def _begun(data: StudyData) -> bool:
    """Say whether artifacts exist that another study could mistake for its own."""
    made = [*(("spaces", name) for name in data.prepared), ("counts",), ("collocations",)]
    made += [(f"tokens-{name}",) for name in ("word", "gst", "mst")]
    return any(is_artifact(data.address(*parts)) for parts in made)


def _variants(needs: Needs) -> int:
    return needs.variants if any(word.embeddings != 1 for word in needs.words) else 1


def _trained(data: StudyData, space: WordSpace) -> list[str]:
    if space.dimensions is not None:
        return [data.address(f"vectors-word-{space.dimensions}")]
    count = space.embeddings or _variants(data.needs)
    return [data.address("vectors-word" if number == 0 else f"vectors-word.{number}") for number in range(count)]


def _chosen(vectors: Sequence[Vectors], space: WordSpace) -> list[Vectors]:
    if space.dimensions is not None:
        same = [some for some in vectors if some.vectors.shape[1] == space.dimensions]
        return [same[0] if same else reduced(_largest(vectors), space.dimensions)]
    return list(vectors[: space.embeddings or len(vectors)])


def _largest(vectors: Sequence[Vectors]) -> Vectors:
    return max(vectors, key=lambda some: some.vectors.shape[1])


def _require_dimensions(vectors: Vectors, dimensions: int) -> None:
    if dimensions > vectors.vectors.shape[1]:
        raise SettingError(
            f"{vectors.source}: the vectors have {vectors.vectors.shape[1]} dimensions, and the grid needs "
            f"{dimensions}; give other vectors, or take these dimensions out of the grid."
        )


def reduced(vectors: Vectors, dimensions: int) -> Vectors:
    """Return vectors with fewer dimensions, by their principal components.

    Raises UserError for more dimensions than the vectors have.
    """
    _require_dimensions(vectors, dimensions)
    centered = vectors.vectors.astype(np.float64) - vectors.vectors.mean(axis=0, dtype=np.float64)
    _, axes = np.linalg.eigh(centered.T @ centered)
    made = (centered @ axes[:, ::-1][:, :dimensions]).astype(np.float32)
    return dataclasses.replace(vectors, vectors=made, source=f"{vectors.source}, {dimensions} principal components")


def _learn(data: StudyData, engine: Engine, variants: int) -> None:
    """Count, score, tokenize and train on the public corpus; each artifact is made once."""
    needs, sources = data.needs, data.sources
    inputs = list(sources.corpus) or _bundled_corpus(data)
    counts, table = data.address("counts"), data.address("collocations")
    text = sources.text if sources.corpus else "text"
    if needs.counts and not is_artifact(counts):
        count_corpus(inputs, counts, engine, CountOptions(3, needs.min_count, text))
    if needs.tokenizers and not is_artifact(table):
        score_counts(counts, table, engine, Scoring(connectors=connector_words()))
    plain = Training(dimensions=needs.dimensions, min_count=needs.min_count, epochs=needs.epochs, sg=1)
    wanted = {name: {f"vectors-{name}": plain} for name in needs.tokenizers}
    for number in range(variants):
        name = "vectors-word" if number == 0 else f"vectors-word.{number}"
        other = dataclasses.replace(plain, sg=(number + 1) % 2, window=5 + 2 * number, seed=1 + number)
        wanted.setdefault("word", {})[name] = other
    for word in needs.words:
        if word.dimensions is not None and not sources.vectors:
            name = f"vectors-word-{word.dimensions}"
            wanted.setdefault("word", {})[name] = dataclasses.replace(plain, dimensions=word.dimensions)
    for name, trainings in wanted.items():
        tokens = data.address(f"tokens-{name}")
        if not is_artifact(tokens):
            joined = None if name == "word" else table
            tokenize_corpus(inputs, tokens, engine, name, joined, text=text)  # type: ignore[arg-type]
        for where, training in trainings.items():
            if not is_artifact(data.address(where)):
                train_vectors(tokens, data.address(where), engine, training)


def _bundled_corpus(data: StudyData) -> list[str]:
    names = [f"bundled-{shard:05d}-of-{BUNDLED_SHARDS:05d}.json.gz" for shard in range(BUNDLED_SHARDS)]
    urls = [data.address("corpus", name) for name in names]
    if not all(files.exists(url) for url in urls):
        texts = list(public_texts())
        for shard, url in enumerate(urls):
            lines = b"".join(orjson.dumps({"text": text}) + b"\n" for text in texts[shard::BUNDLED_SHARDS])
            files.write_bytes(url, igzip.compress(lines))
    return urls

"""A check of a study's inputs before any slow work: faults are reported within seconds."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Sequence
from typing import Any

from corpusveil.errors import (
    AddressError,
    MissingError,
    SettingError,
)
from corpusveil.storage import files
from corpusveil.storage.inputs import find_shards
from corpusveil_evaluate.output_folders import lies_in_input
from corpusveil_evaluate.studies.cells import Cell
from corpusveil_evaluate.studies.retrieval.trec import NO_JUDGMENTS, read_qrels, read_queries
from corpusveil_evaluate.studies.search_collections import BUNDLED, JUDGED, is_judged
from corpusveil_evaluate.studies.study import Grid, Study
from corpusveil_evaluate.studies.study_data import Sources, StudyData
from corpusveil_evaluate.utility.text_classifiers import sklearn

SETS = ("tasks", "attacks", "searched")
"""Keys of grids that name data sets."""


def absolute(sources: Sources) -> Sources:
    """Return sources with absolute paths: the same folder is the same study, and workers have other working folders."""

    def absolute_path(path: str | None) -> str | None:
        return None if path is None else files.absolute(path)

    def folder(name: str) -> str:
        return os.path.abspath(name) if os.path.isdir(name) else name

    return dataclasses.replace(
        sources,
        data=absolute_path(sources.data),
        vectors=tuple(files.absolute(url) for url in sources.vectors),
        corpus=tuple(files.absolute(shard) for shard in sources.corpus),
        encoder=None if sources.encoder is None else folder(sources.encoder),
        collection=absolute_path(sources.collection),
        queries=absolute_path(sources.queries),
        qrels=absolute_path(sources.qrels),
    )


def check_sources(study: Study, data: StudyData) -> None:
    """Raise UserError for a source that the study does not use, that is missing, or that contains the output."""
    sources, needs = data.sources, data.needs
    for name in study.no_use_for:
        if getattr(sources, name) != getattr(Sources(), name):
            raise SettingError(f"{name}: the study {study.name} does not use it; leave it out.")
    if sources.corpus and sources.vectors and not needs.counts:
        raise SettingError("corpus: vectors are given, so this study learns nothing from a corpus; leave either out.")
    if len(sources.vectors) > 1 and all(word.embeddings == 1 and word.dimensions is None for word in needs.words):
        raise SettingError(f"vectors: the study {study.name} has a single embedding; give one file.")
    for name in ("data", "collection", "queries", "qrels"):
        url = getattr(sources, name)
        if url is not None and not files.exists(url):
            raise MissingError(f"{name} {url}: there is nothing here.")
    if sources.data is not None and (files.info(sources.data) or {}).get("type") != "directory":
        raise AddressError(f"data {sources.data}: this is a file; name the folder that contains it.")
    if sources.corpus:
        find_shards(sources.corpus)
    _refuse_inside(data.folder, [*sources.corpus, *([] if sources.data is None else [sources.data])])
    if is_judged(data):
        assert sources.queries is not None  # noqa: S101 - is_judged
        assert sources.qrels is not None  # noqa: S101 - is_judged
        if not read_queries(sources.queries).keys() & read_qrels(sources.qrels).keys():
            raise SettingError(NO_JUDGMENTS)
    if "model" not in study.no_use_for:
        if sources.model not in ("tfidf", "vectors"):
            raise SettingError(f"model {sources.model}: choose tfidf or vectors.")
        sklearn()
    if sources.encoder is not None:
        _ = data.encoder  # reads the model


def _refuse_inside(output: str, inputs: Sequence[str]) -> None:
    """Raise UserError if the output would be read as an input: it is inside the input, or a glob matches it."""
    for url in inputs:
        if lies_in_input(output, url, ("study.json",)):
            raise AddressError(f"output {output}: this is in {url}, which is read; choose another folder.")


def check_sets(cells: Sequence[Cell], grid: Grid, data: StudyData) -> None:
    """Read the data sets of all cells once. Raises UserError for an invalid data set."""
    names = [*(cell.get("task") for cell in cells), *(cell.get("collection") for cell in cells)]
    for name in dict.fromkeys(names):
        if name not in (None, JUDGED, BUNDLED):
            data.task(name, grid.train_rows, grid.test_rows)


def missing_sets(grid: Any, data: StudyData) -> Iterator[str]:
    """Yield which of the study's data sets are not in ``--data``."""
    wanted = [name for key in SETS if key != "searched" or not is_judged(data) for name in getattr(grid, key, ())]
    missing = [name for name in dict.fromkeys(wanted) if not data.has(name)]
    if missing and not data.bundled:
        yield f"Not in data, and left out: {', '.join(missing)}."

"""What the user gives a study, looked at before anything takes long: what is wrong is told within seconds."""

from __future__ import annotations

import dataclasses
import importlib.util
import os
from collections.abc import Iterator, Sequence
from typing import Any

from corpusveil.errors import UserError
from corpusveil.evaluation.models import require_sklearn
from corpusveil.evaluation.retrieval.trec import read_qrels, read_queries
from corpusveil.evaluation.studies.cells import Cell
from corpusveil.evaluation.studies.ground import Ground, Sources
from corpusveil.evaluation.studies.searched import BUNDLED, JUDGED, is_judged
from corpusveil.evaluation.studies.study import Grid, Study
from corpusveil.storage import files
from corpusveil.storage.inputs import find_shards, lies_in_input

SETS = ("tasks", "attacks", "searched")
"""Keys of grids that name data sets."""
NEEDS_TORCH = "needs PyTorch and transformers: pip install 'corpusveil[transformers]'."


def absolute(sources: Sources) -> Sources:
    """Return sources with absolute paths: the same folder is the same study, and workers have folders of their own."""

    def of(path: str | None) -> str | None:
        return None if path is None else files.absolute(path)

    def folder(name: str) -> str:
        return os.path.abspath(name) if os.path.isdir(name) else name

    return dataclasses.replace(
        sources,
        data=of(sources.data),
        vectors=tuple(files.absolute(one) for one in sources.vectors),
        corpus=tuple(files.absolute(one) for one in sources.corpus),
        encoder=None if sources.encoder is None else folder(sources.encoder),
        model=folder(sources.model),
        collection=of(sources.collection),
        queries=of(sources.queries),
        qrels=of(sources.qrels),
    )


def check_sources(study: Study, ground: Ground) -> None:
    """Raise UserError for a source that the study has no use for, that is not there, or that the output lies in."""
    sources, needs = ground.sources, ground.needs
    for name in study.no_use_for:
        if getattr(sources, name) != getattr(Sources(), name):
            raise UserError(f"--{name}: the study {study.name} has no use for it; leave it out.")
    if sources.corpus and sources.vectors and not needs.tokenizers:
        raise UserError(
            "--corpus: vectors are given, so this study learns nothing from a corpus; leave one of them out."
        )
    if len(sources.vectors) > 1 and all(one.embeddings == 1 and one.dimensions is None for one in needs.words):
        raise UserError(f"--vectors: the study {study.name} has one embedding; give one file.")
    for name in ("data", "collection", "queries", "qrels"):
        given = getattr(sources, name)
        if given is not None and not files.exists(given):
            raise UserError(f"--{name} {given}: there is nothing here.")
    if sources.data is not None and (files.info(sources.data) or {}).get("type") != "directory":
        raise UserError(f"--data {sources.data}: this is a file; name the folder that it is in.")
    if sources.corpus:
        find_shards(sources.corpus)
    _refuse_inside(ground.folder, [*sources.corpus, *([] if sources.data is None else [sources.data])])
    if is_judged(ground):
        assert sources.queries is not None  # noqa: S101 - is_judged
        assert sources.qrels is not None  # noqa: S101 - is_judged
        if not read_queries(sources.queries).keys() & read_qrels(sources.qrels).keys():
            raise UserError("No query has a judgement: the ids of queries and judgements are not of one set.")
    if "model" not in study.no_use_for:
        _check_model(sources.model)
    if sources.encoder is not None:
        _ = ground.encoder  # reads the model


def _refuse_inside(output: str, inputs: Sequence[str]) -> None:
    """Raise UserError where the output would be read as an input: it lies in it, or a glob fits what is written."""
    for one in inputs:
        if lies_in_input(output, one, ("study.json",)):
            raise UserError(f"--output {output}: this is in {one}, which is read; name another folder.")


def _check_model(name: str) -> None:
    if name in ("tfidf", "vectors"):
        require_sklearn()
        return
    if name != "lstm" and not os.path.isfile(os.path.join(name, "config.json")):
        raise UserError(
            f"--model {name}: it may be tfidf, vectors, lstm, or the folder of a transformers model (with config.json)."
        )
    if any(
        importlib.util.find_spec(one) is None for one in (("torch",) if name == "lstm" else ("torch", "transformers"))
    ):
        raise UserError(f"--model {name} {NEEDS_TORCH}")


def check_sets(cells: Sequence[Cell], grid: Grid, ground: Ground) -> None:
    """Read the data sets of all cells once. Raises UserError for what is no data set."""
    names = [*(cell.get("task") for cell in cells), *(cell.get("collection") for cell in cells)]
    for name in dict.fromkeys(names):
        if name not in (None, JUDGED, BUNDLED):
            ground.task(name, grid.train_rows, grid.test_rows)


def absent(grid: Any, ground: Ground) -> Iterator[str]:
    """Yield which of the study's data sets are not in ``--data``."""
    asked = [name for key in SETS if key != "searched" or not is_judged(ground) for name in getattr(grid, key, ())]
    missing = [name for name in dict.fromkeys(asked) if not ground.has(name)]
    if missing and not ground.bundled:
        yield f"Not in --data, and left out: {', '.join(missing)}."

"""A space and a language model of bundled public text: made once, kept in the user's cache, good enough to try with."""

from __future__ import annotations

import dataclasses
import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from corpusveil.collocations.model import LanguageModel, load_model
from corpusveil.collocations.public_texts import public_texts
from corpusveil.ownership import refuse_others
from corpusveil.pipelines import collocations, model, space
from corpusveil.pipelines.settings import Settings
from corpusveil.pipelines.settings.toml import DEMO, Document
from corpusveil.pipelines.watch import Watch
from corpusveil.spaces import load_space
from corpusveil.storage import home

if TYPE_CHECKING:
    from corpusveil.spaces import Space

NAME = DEMO
"""What stands for their addresses on the command line and in a file."""
RECIPE = "2"
"""Goes up when another space or model would be made; earlier ones stay in the cache under their own number."""
MADE_OF = "bundled text (once, up to a minute)"


def demo_space() -> Space:
    """Return a space of 14,424 words of news and encyclopedia articles that gensim ships.

    The first call makes it (10 s, or half a minute where loops are compiled for the first time) and keeps it in the
    user's cache folder; later calls open it. It has 50 dimensions, public counts and one balanced list, so every
    mechanism works on it. It is small: for work that counts, build a space of more text, or of published vectors.

    Raises UserError where other users may write to the cache folder.
    """
    return load_space(space_path())


def demo_model() -> LanguageModel:
    """Return a language model of the same text, for denoising; made and kept as the space is."""
    return load_model(model_path())


def space_path(watch: Watch | None = None) -> str:
    """Return the folder of the space, which is made where it is missing."""
    return _made("space", _make_space, watch or Watch())


def model_path(watch: Watch | None = None) -> str:
    """Return the folder of the language model, which is made where it is missing."""
    return _made("model", _make_model, watch or Watch())


def opened_space(url: str, watch: Watch) -> Space:
    """Open the space at an address, or the demo space where that is what it is called."""
    return load_space(space_path(watch) if is_demo(url) else url)


def is_demo(url: str | None) -> bool:
    """Say whether an address is the name of the demo's artefacts; a folder of that name goes before it."""
    return url == NAME and not os.path.exists(NAME)


def located_document(document: Document, watch: Watch) -> Document:
    """Return a document whose space and model are folders: its paths are whole, so ``demo`` can be nothing else."""
    return dataclasses.replace(document, settings=located(document.settings, watch, lambda path: path == NAME))


def located(settings: Settings, watch: Watch, is_named: Callable[[str | None], bool] = is_demo) -> Settings:
    """Return settings whose space and model are folders, where they are called ``demo``."""
    models = ("model.path", "denoise.model", "budget.model")
    for place, path in (("space.path", space_path), *((one, model_path) for one in models)):
        section, _, key = place.partition(".")
        if is_named(settings.value(place)):
            settings = settings.changed(**{section: {key: path(watch)}})
    return settings


def _made(name: str, make: Callable[[Path], None], watch: Watch) -> str:
    """Return an artefact's folder in the cache; the first process makes it, and the others wait."""
    target = home.cache_folder(f"demo-{RECIPE}") / name
    if not target.exists():
        with open(target.with_suffix(".lock"), "w") as lock, watch.working(f"making the demo {name} from {MADE_OF}"):
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not target.exists():
                scratch = target.with_suffix(".part")
                shutil.rmtree(scratch, ignore_errors=True)  # left by a process that was killed
                scratch.mkdir(mode=0o700)
                make(scratch)
                (scratch / name).rename(target)
                shutil.rmtree(scratch)
    refuse_others(target)
    return str(target)


def _make_space(scratch: Path) -> None:
    settings, quiet = _settings(scratch, longest=1), Watch()
    collocations.count(settings, quiet)
    collocations.tokenize(settings, quiet)
    collocations.train(settings, quiet)
    space.build(settings, quiet)


def _make_model(scratch: Path) -> None:
    settings, quiet = _settings(scratch, longest=3), Watch()
    collocations.count(settings, quiet)
    model.build(settings, quiet)


def _settings(scratch: Path, longest: int) -> Settings:
    """Write the text; return the settings of both flows."""
    corpus = scratch / "public.jsonl"
    with corpus.open("wb") as out:
        out.writelines(orjson.dumps({"text": text}) + b"\n" for text in public_texts())
    at = {name: str(scratch / name) for name in ("counts", "tokens", "vectors", "space", "model")}
    return Settings.model_validate({
        "collocations": {
            "input": [str(corpus)], "counts": at["counts"], "tokens": at["tokens"], "tokenizer": "word",
            "max_n": longest, "min_count": 2,
        },
        "embeddings": {"vectors": at["vectors"], "dimensions": 50, "min_count": 3, "epochs": 4, "alpha": 0.15},
        "space": {"path": at["space"], "counts": at["counts"]},
        "model": {"path": at["model"]},
    })  # fmt: skip

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
from corpusveil.pipelines.settings.toml import Document
from corpusveil.pipelines.watch import Watch
from corpusveil.spaces import load_space
from corpusveil.storage import home

if TYPE_CHECKING:
    from corpusveil.spaces import Space

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


def located(settings: Settings, watch: Watch, folder: str = "") -> Settings:
    """Return settings with the folders of the demo's space and model, where they name these.

    Relative paths begin at ``folder``.
    """
    for place, which in settings.demos(folder).items():
        section, _, key = place.partition(".")
        settings = settings.changed(**{section: {key: (space_path if which == "space" else model_path)(watch)}})
    return settings


def located_document(document: Document, watch: Watch) -> Document:
    """Return a document with these folders."""
    folder = os.path.dirname(os.path.abspath(document.file))
    return dataclasses.replace(document, settings=located(document.settings, watch, folder))


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

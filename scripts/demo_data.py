"""Make ``spaces/en/corpusveil_space_en/space.zip``: the space and language model of ``--space en``, of public text.

Run it after a change of the tokenizer, of counting, or of an artefact's format, and ``scripts/readme_output.py`` after
it: ``python -m scripts.demo_data``; another archive is another major version of its package. The archive is shipped
because vectors that each machine trains for itself differ in their last bits, and with them the list and every figure
of the README; and because a first call took a minute.
"""

from __future__ import annotations

import hashlib
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import orjson

from corpusveil.collocations.public_texts import public_texts
from corpusveil.pipelines import collocations, language, space
from corpusveil.pipelines.settings import Settings
from corpusveil.pipelines.watch import Watch
from corpusveil.spaces.installed import ARCHIVE

STEPS = 31
"""Vectors are rounded to this many steps on each side of 0, which changes no cosine with the original by .001 and makes
the archive two thirds as large."""
BEFORE_ZIP = (1980, 1, 1, 0, 0, 0)
PACKAGE = Path(__file__).parents[1] / "spaces/en/corpusveil_space_en"


def settings_of(folder: Path, longest: int) -> Settings:
    """Write the text; return the settings of both flows."""
    corpus = folder / "public.jsonl"
    with corpus.open("wb") as out:
        out.writelines(orjson.dumps({"text": text}) + b"\n" for text in public_texts())
    at = {name: str(folder / name) for name in ("counts", "tokens", "vectors", "space", "model")}
    return Settings.model_validate({
        "collocations": {
            "input": [str(corpus)], "counts": at["counts"], "tokens": at["tokens"], "tokenizer": "word",
            "max_n": longest, "min_count": 2,
        },
        "embeddings": {"vectors": at["vectors"], "dimensions": 50, "min_count": 3, "epochs": 4, "alpha": 0.15},
        "space": {"path": at["space"], "counts": at["counts"]},
        "model": {"path": at["model"]},
    })  # fmt: skip


def rounded(vectors: Path) -> None:
    """Round the trained vectors in place."""
    (path,) = vectors.glob("*.npy")
    exact = np.load(path)
    largest = np.abs(exact).max(axis=1, keepdims=True)
    np.save(path, np.round(exact / largest * STEPS).astype(np.float32))


def make(archive: Path) -> None:
    """Make both artefacts, and write them with fixed times, so that equal files make an equal archive; and its hash."""
    with tempfile.TemporaryDirectory() as scratch:
        of_space, of_model = Path(scratch, "of-space"), Path(scratch, "of-model")
        for folder in (of_space, of_model):
            folder.mkdir()
        settings, quiet = settings_of(of_space, longest=1), Watch()
        collocations.count(settings, quiet)
        collocations.tokenize(settings, quiet)
        collocations.train(settings, quiet)
        rounded(of_space / "vectors")
        space.build(settings, quiet)
        settings = settings_of(of_model, longest=3)
        collocations.count(settings, quiet)
        language.build_model(settings, quiet)
        with zipfile.ZipFile(archive, "w") as out:
            for folder in (of_space / "space", of_model / "model"):
                for path in sorted(one for one in folder.iterdir() if one.is_file()):
                    entry = zipfile.ZipInfo(f"{folder.name}/{path.name}", BEFORE_ZIP)
                    out.writestr(entry, path.read_bytes(), zipfile.ZIP_LZMA)
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    archive.with_name(f"{archive.name}.sha256").write_text(f"{digest}  {archive.name}\n")


if __name__ == "__main__":
    make(PACKAGE / ARCHIVE)

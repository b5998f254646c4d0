"""Measure what a reader with SmolLM2-135M gains on the sample of ``en``, and put the gains beside its figures.

    python -m spaces.en.neural TEXT WORK [--texts 21 14] [--epsilons 0.0884 1 0.0156] [--install]

TEXT is the folder of which the archives were made (``make.py``); the sample made of it must be the one whose figures
the archive has. The first texts like the model's are released and read, and of those unlike it (``neural.py`` of
``corpusveil-evaluate``, whose extra ``neural`` this needs): an epsilon takes MINUTES minutes of a processor. WORK keeps
each epsilon, so a call goes on where another stopped. ``--install`` writes the figures into the archive of
``spaces/en``.
"""

from __future__ import annotations

import argparse
import hashlib
import zipfile
from pathlib import Path

import corpusveil as cv
from corpusveil.language.sample import NAME as SAMPLE
from corpusveil.language.sample import EveryFigures, Stronger, read_sample
from corpusveil.mechanisms.risk import basis_of
from corpusveil.spaces.installed import ARCHIVE, FIGURES
from corpusveil.text.policy import DEFAULT
from corpusveil_evaluate.readers.causal_model import DIGEST, load_causal
from corpusveil_evaluate.readers.neural import READER, NeuralReader, measured_gains
from spaces.en.make import BEFORE_ZIP, PACKAGE, Recipe

EPSILONS = [2.0**-3.5, 1.0, 2.0**-6]
"""Near the risks 0.5, 0.7 and 0.3."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--texts", type=int, nargs=2, default=[21, 14])
    parser.add_argument("--epsilons", type=float, nargs="+", default=EPSILONS)
    parser.add_argument("--install", action="store_true")
    call = parser.parse_args()
    recipe = Recipe(call.text, call.work, "en", {"name": "local", "workers": 1})
    recipe.sampled()
    sample = read_sample((recipe.work / SAMPLE).read_bytes(), SAMPLE)
    law, model = cv.RingGeometric(cv.load_space("space://en")), cv.load_model("space://en")
    every = EveryFigures.model_validate_json(Path(f"{model.url}/{FIGURES}").read_bytes()).by_basis
    figures = every[basis_of(law, DEFAULT)]
    if figures.text != sample.digest:
        raise SystemExit(f"{call.text}: the figures of the archive are of another sample.")
    causal = load_causal()
    readers = [
        NeuralReader(causal, law, model, texts[:count], DEFAULT, registers[:count])
        for count, texts, registers in zip(
            call.texts, (sample.like, sample.unlike), (sample.registers, ()), strict=True
        )
    ]
    gains = {}
    for epsilon in call.epsilons:
        gains[epsilon] = measured_gains(
            readers, epsilon, recipe.work / f"neural-{call.texts[0]}-{call.texts[1]}-{epsilon:.6f}.json"
        )
        print(f"{epsilon:.4f}: {gains[epsilon]}", flush=True)
    epsilons = sorted(call.epsilons)
    like, unlike = ([gains[epsilon][kind] for epsilon in epsilons] for kind in (0, 1))
    highest = max(set(figures.registers), key=figures.registers.count)
    stronger = Stronger(
        reader=READER, model=DIGEST, words=(like[0]["words"], unlike[0]["words"]), epsilons=epsilons,
        like=[[gain["every"][1][0], *gain["content"][1]] for gain in like],
        unlike=[[gain["every"][1][0], *gain["content"][1]] for gain in unlike],
        highest=tuple(gain[f"content of {highest}"] for gain in like),
    )  # fmt: skip
    every[basis_of(law, DEFAULT)] = figures.model_copy(update={"stronger": (stronger,)})
    (recipe.work / FIGURES).write_bytes(EveryFigures(by_basis=every).data())
    if call.install:
        install((recipe.work / FIGURES).read_bytes())


def install(figures: bytes) -> None:
    """Write other figures into the archive of words; everything else in it stays as it is."""
    path = PACKAGE / ARCHIVE
    with zipfile.ZipFile(path) as old:
        kept = [(info.filename, info.compress_type, old.read(info)) for info in old.infolist()]
    with zipfile.ZipFile(path, "w") as new:
        for name, method, content in kept:
            new.writestr(zipfile.ZipInfo(name, BEFORE_ZIP), figures if name == FIGURES else content, method)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    path.with_name(f"{path.name}.sha256").write_text(f"{digest}  {path.name}\n")


if __name__ == "__main__":
    main()

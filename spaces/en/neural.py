"""Measure what a reader with SmolLM2-135M gains on the sample of ``en``, and put the gains beside its figures.

    python -m spaces.en.neural TEXT WORK [--texts 21 14] [--skip 0 0] [--epsilons 0.25 1 0.0884 0.0156] [--install]

TEXT is the folder of which the archives were made (``make.py``); the sample made of it must be the one whose figures
the archive has. The first texts like the model's are released and read, and of those unlike it (``neural.py`` of
``corpusveil-evaluate``, whose extra ``neural`` this needs): an epsilon takes three minutes of a processor. WORK keeps
each epsilon, so a call goes on where another stopped, and one that skips the first texts adds others. ``--install``
writes the figures into ``figures.json``, and the table of them into the archive of ``spaces/en``.
"""

from __future__ import annotations

import argparse
import itertools
import re
from pathlib import Path
from typing import Any

import orjson

import corpusveil as cv
from corpusveil.text.policy import DEFAULT
from corpusveil_evaluate.readers.causal_model import DIGEST, load_causal
from corpusveil_evaluate.readers.neural import READER, NeuralReader, gained, measured_gains
from corpusveil_evaluate.readers.ngrams.modelling import load_model
from corpusveil_evaluate.readers.ngrams.sample import NAME as SAMPLE
from corpusveil_evaluate.readers.ngrams.sample import read_sample
from spaces.en import figures as of_en
from spaces.en.make import UNCOUNTED, Recipe

EPSILONS = [0.25, 1.0, 2.0**-3.5, 2.0**-6]
"""Near the risks 0.5, 0.7 and 0.3."""
LONGEST = 120
BASIS = "ring-geometric privatize"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--texts", type=int, nargs=2, default=[21, 14])
    parser.add_argument("--skip", type=int, nargs=2, default=[0, 0])
    parser.add_argument("--epsilons", type=float, nargs="+", default=EPSILONS)
    parser.add_argument("--install", action="store_true")
    call = parser.parse_args()
    recipe = Recipe(call.text, call.work, "en", {"name": "local", "workers": 1})
    recipe.sampled()
    sample = read_sample((recipe.work / SAMPLE).read_bytes(), SAMPLE)
    law, model = cv.RingGeometric(cv.load_space("space://en")), load_model("space://en")
    every = of_en.read_figures(of_en.FIGURES.read_bytes())
    figures = every[BASIS]
    if figures.text != sample.digest:
        raise SystemExit(f"{call.text}: the figures of the archive are of another sample.")
    causal, readers = load_causal(), []
    registers = sample.registers, UNCOUNTED * len(sample.unlike)
    for first, count, texts, names in zip(call.skip, call.texts, (sample.like, sample.unlike), registers, strict=True):
        some = slice(first, first + count)
        readers.append(NeuralReader(causal, law, model, [*map(shortened, texts[some])], DEFAULT, names[some]))
    for epsilon in call.epsilons:
        measured_gains(readers, epsilon, recipe.work / f"neural-{epsilon!r}-{call.skip[0]}-{call.skip[1]}.json")
    records: dict[float, list[list[list[dict[str, Any]]]]] = {}
    for path in sorted(recipe.work.glob("neural-*.json")):
        records.setdefault(float(path.stem.split("-")[1]), []).append(orjson.loads(path.read_bytes()))
    highest, rows = max(set(figures.registers), key=figures.registers.count), []
    for epsilon, record in records.items():
        parts = [[*itertools.chain(*kind)] for kind in zip(*record, strict=True)]
        gains = [[gained(some, kind) for kind in ("every", "content")] for some in parts]
        of_highest = gained([part for part in parts[0] if part["register"] == highest], "content")
        words = [int(sum(part["content"][0] for part in some)) for some in parts]
        rows.append((epsilon, *([every[0], *content] for every, content in gains), of_highest, words))
        print(rows[-1], flush=True)
    epsilons, like, unlike, highest_gains, words_read = zip(*sorted(rows), strict=True)
    stronger = of_en.Stronger(
        reader=READER, model=DIGEST, words=list(words_read), epsilons=list(epsilons), like=list(like),
        unlike=list(unlike), highest=highest_gains,
    )  # fmt: skip
    every[BASIS] = figures.model_copy(update={"stronger": (stronger,)})
    of_en.write_figures(every, of_en.FIGURES if call.install else recipe.work / of_en.FIGURES.name)
    if call.install:
        of_en.main()


def shortened(text: str) -> str:
    """Return the first ``LONGEST`` words of a text: a few long ones would be read alone, at half the speed."""
    found = re.match(rf"(?:\s*\S+){{1,{LONGEST}}}", text)
    return "" if found is None else found[0]


if __name__ == "__main__":
    main()

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
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson

import corpusveil as cv
from corpusveil.arrays import Bool
from corpusveil.text.policy import DEFAULT
from corpusveil_evaluate.readers.causal_model import DIGEST, load_causal
from corpusveil_evaluate.readers.neural import READER, NeuralReader, masses
from corpusveil_evaluate.readers.ngrams.context_risk import hits_of
from corpusveil_evaluate.readers.ngrams.modelling import load_model
from spaces.en import figures as of_en
from spaces.en.make import UNCOUNTED, Recipe
from spaces.en.sample import NAME as SAMPLE
from spaces.en.sample import read_sample

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
    sample = read_sample((recipe.work / SAMPLE).read_bytes())
    law, model = cv.RingGeometric(cv.load_space("space://en")), load_model("space://en")
    every = of_en.read_figures(of_en.FIGURES.read_bytes())
    figures = every[BASIS]
    if figures.text != sample.digest:
        raise SystemExit(f"{call.text}: the figures of the archive are of another sample.")
    causal, readers = load_causal(), []
    registers = sample.registers, UNCOUNTED * len(sample.unlike)
    for first, count, texts, names in zip(call.skip, call.texts, (sample.like, sample.unlike), registers, strict=True):
        some = slice(first, first + count)
        readers.append(GainReader(causal, law, model, [*map(shortened, texts[some])], DEFAULT, names[some]))
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


class GainReader(NeuralReader):
    """A reader whose gain on the trigrams is measured, text by text."""

    def gain(self, epsilon: float, right: Bool) -> list[dict[str, Any]]:
        """Return what was read of each part of a text.

        Its register, and of all words (``every``) and of ``content`` words how many there are, and how many of them the
        trigrams and this reader recover.
        """
        known = self._truth >= 0
        alone = (self.guesses(epsilon, self.released(epsilon)) == self._truth)[:, known]
        part, register = self._part[known], self._register[known]
        kinds = {"every": np.ones(part.size), "content": self._weights[self._truth[known]]}
        out: list[dict[str, Any]] = [{"register": str(register[part == at][0])} for at in np.unique(part)]
        for at, (kind, weight) in enumerate(kinds.items()):
            hits = hits_of(alone[2 * at : 2 * at + 2], weight, part)
            for each, some in zip(out, (part == at for at in np.unique(part)), strict=True):
                each |= {kind: [float((weight * read)[some].sum()) for read in (1, hits, right[at, known])]}
        return out


def measured_gains(readers: Sequence[GainReader], epsilon: float, record: Path) -> list[list[dict[str, Any]]]:
    """Return the parts that each of several readers read, from the file ``record`` if an earlier call wrote it."""
    if not record.exists():
        texts = [reader.places(epsilon, reader.released(epsilon)) for reader in readers]
        found = masses(readers[0].forms, [text for some in texts for text in some])  # together, as that is quicker
        gains = [
            reader.gain(epsilon, reader.right(some, itertools.islice(found, len(some))))
            for reader, some in zip(readers, texts, strict=True)
        ]  # fmt: skip
        part = record.with_suffix(".part")
        part.write_bytes(orjson.dumps(gains))
        part.replace(record)
    return list(orjson.loads(record.read_bytes()))


def gained(parts: Sequence[dict[str, Any]], kind: str) -> tuple[float, float]:
    """Return what the reader gains on the trigrams, and its standard error: texts are drawn by registers in turn."""
    counts = np.array([part[kind] for part in parts])
    words, more = counts[:, 0], counts[:, 2] - counts[:, 1]
    registers = np.unique([part["register"] for part in parts], return_inverse=True)[1]
    of_each = np.bincount(registers, more) / np.bincount(registers, words)
    residues = more - of_each[registers] * words
    freedom = len(parts) / max(len(parts) - of_each.size, 1)
    return float(more.sum() / words.sum()), float(np.sqrt(freedom * (residues**2).sum()) / words.sum())


def shortened(text: str) -> str:
    """Return the first ``LONGEST`` words of a text: a few long ones would be read alone, at half the speed."""
    found = re.match(rf"(?:\s*\S+){{1,{LONGEST}}}", text)
    return "" if found is None else found[0]


if __name__ == "__main__":
    main()

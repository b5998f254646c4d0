"""Twelve texts, original, drawn and denoised, chosen by a seed: writes ``docs/examples.md``.

    python -m benchmarks examples

The texts are of gensim's package, since the task sets may not be published. Space and model are those of ``utility``.
"""

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import corpusveil as cv
from benchmarks import contextual, inputs, utility
from benchmarks.report import Skipped, Table
from corpusveil.collocations.public_texts import encyclopedia, news
from corpusveil.language.denoise import MARGIN, Denoiser, Search

FILE = (inputs.work() if inputs.SMALLEST else inputs.ROOT / "docs") / "examples.md"
RISK, SEED, EACH, WORDS = 0.5, 0, 3, range(15, 41)
"""How many sentences of each kind, and of how many words."""
HEAD = """# Twelve texts

Sentences chosen by a seed among those of {first} to {last} words that gensim's package ships, as they were written,
drawn, and denoised, at content risk {risk:g} from context (ε = {epsilon:.3g}, `ring-geometric`, {words:,} words,
balanced). The task sets of the [figures](evaluation-figures.md) may not be published. The language model is of 11
shards of C4-like text, half of which is blogs; it has read none of these texts. A replacement can be any word of the
vocabulary (swear words are written with asterisks here). `python -m benchmarks examples` writes this page.

**More than half of the content words of a denoised text are wrong, and nothing shows which.**
"""


def run() -> list[Table]:
    if inputs.data() is None and not inputs.SMALLEST:
        raise Skipped("the shared data are not on this machine.")
    law, way = utility.mechanism(utility.OURS, "balanced", "quick"), utility.WAYS["balanced"]
    epsilon = 1.0 if inputs.SMALLEST else utility.epsilon_of("quick", utility.OURS, "balanced", RISK)["epsilon"]
    budget, key = cv.Budget(epsilon), cv.Key(hashlib.sha256(b"examples").digest())
    denoiser = Denoiser(law, budget, way.policy, contextual.model(), Search(margin=MARGIN))
    page = [HEAD.format(first=WORDS[0], last=WORDS[-1], risk=RISK, epsilon=epsilon, words=len(law.space))]
    for kind, texts in kinds().items():
        release = cv.Release(law, budget, way.policy, key)
        drawn = cv.privatize(texts, release, cv.RowNumbers(kind))
        readable = denoiser.readable(drawn)
        page.append(f"## {kind}\n")
        for three in zip(texts, drawn, readable, strict=True):
            mild = (re.sub(r"(?<=\bfu)ck", "**", text).replace("*", "\\*") for text in three)
            lines = zip(("original", "drawn", "denoised"), mild, strict=True)
            page.append("\n".join(["| | |", "|---|---|", *(f"| {name} | {text} |" for name, text in lines)]) + "\n")
    FILE.write_text("\n".join(page), encoding="utf-8")
    return [Table(f"{FILE.name} is written", ())]


def kinds() -> dict[str, list[str]]:
    """Return some sentences of each kind."""
    from gensim.test.utils import datapath

    def lines(name: str) -> str:
        return re.sub(r"__label__\w+", "", Path(datapath(name)).read_text(encoding="utf-8", errors="replace"))

    rng = np.random.default_rng(SEED)
    return {
        "News": some(news(), rng),
        "Encyclopedia": some(encyclopedia()[:200], rng),
        "Film reviews": some(lines("pang_lee_polarity.cor").splitlines(), rng),
        "A novel": some([lines("crime-and-punishment.txt")], rng),
    }


def some(texts: Sequence[str], rng: np.random.Generator) -> list[str]:
    """Return some sentences of plain ASCII, drawn by the generator."""
    sentences = [
        " ".join(sentence.split())
        for text in texts
        for sentence in re.split(r"(?<=[.!?])\s+", text)
        if len(sentence.split()) in WORDS and sentence.isascii() and "|" not in sentence
    ]
    return [sentences[at] for at in np.sort(rng.permutation(len(sentences))[:EACH])]


__all__ = ["run"]

"""The printed content risk against attackers on real text: unseen texts of four kinds, at content risk .5 from context.

    python -m benchmarks rungs [RISK]

The attackers read a release as any reader can. *search* is ``denoise`` without a margin; *content* guesses the content
word that is likeliest, with twice as many candidates. Epsilons are those that ``utility`` keeps.
"""

import hashlib
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow.parquet as pq

import corpusveil as cv
from benchmarks import contextual, inputs, utility
from benchmarks.report import Skipped, Table
from corpusveil.language import denoise
from corpusveil.language.denoise import Denoiser, Search
from corpusveil.mechanisms.content import content_weights
from corpusveil_evaluate.attacks.word_attacks import THOROUGH

TEXTS = {"sst2": 872, "ag_news": 500, "blogs": 150, "films": 150}
"""How many texts of each kind; blogs and films are whole, since a document tells of itself."""
WAYS = (
    (utility.OURS, "balanced"),
    (utility.OURS, "kept"),
    ("santext", "plain"),
    ("vickrey-cmp", "plain"),
)
SIMULATED = 0.0035
"""The standard error of a printed risk (``context_risk.RUNS``)."""


def run(arguments: Sequence[str] = ()) -> list[Table]:
    if inputs.data() is None:
        raise Skipped("the shared data are not on this machine.")
    risk = float(arguments[0]) if arguments else 0.5
    shown = Table(
        f"Content words recovered at content risk {risk:g}, of unseen text",
        ("mechanism", "way", "texts", "printed", "unchanged", "search", "content", "best - printed", "error"),
    )
    for row in rows(risk):
        shown.rows.append(row)
        print(*row, flush=True)
    return [shown]


def rows(risk: float) -> Iterator[tuple[Any, ...]]:
    for name, way in WAYS:
        chosen = utility.epsilon_of("quick", name, way, risk)
        if "refused" in chosen:
            continue
        law, policy = utility.mechanism(name, way, "quick"), utility.WAYS[way].policy
        budget = cv.Budget(chosen["epsilon"])
        among = utility.content_words(law.space)
        key = cv.Key(hashlib.sha256(b"rungs").digest())
        for kind in TEXTS:
            texts = texts_of(kind)
            release = cv.Release(law, budget, policy, key, accept_no_guarantee=True)
            drawn = cv.privatize(texts, release, cv.RowNumbers(kind))
            guesses = [drawn, Denoiser(law, budget, policy, contextual.model(), Search()).readable(drawn)]
            with ContentOnly(law):
                guesses.append(Denoiser(law, budget, policy, contextual.model(), THOROUGH).readable(drawn))
            shares = [contextual.share(*contextual.right_words(texts, some, among)) for some in guesses]
            best, error = max(shares)
            printed, error = chosen["measured"], math.hypot(error, SIMULATED)
            yield name, way, kind, printed, *(share for share, _ in shares), best - printed, error


def texts_of(kind: str) -> list[str]:
    """Return unseen texts: of task sets, or of the shard that no model has read."""
    if kind == "films":
        return utility.held_out("imdb")[: TEXTS[kind]]
    shared, name = inputs.data(), "blog_gender" if kind == "blogs" else kind
    table = pq.read_table(f"{shared}/tasks/{name}.parquet")  # type: ignore[no-untyped-call]
    parts = np.array(table["split"].to_pylist())
    unseen = np.flatnonzero(parts == ("test" if "test" in parts else "dev"))
    some = np.random.default_rng(1).permutation(unseen)[: TEXTS[kind]]
    return list(table["text"].take(some).to_pylist())


class ContentOnly:
    """While it is open, searches guess the content word that is likeliest, where any is a candidate."""

    def __init__(self, law: Any) -> None:
        self.weights, self.usual = content_weights(law.space), denoise.search_runs

    def __enter__(self) -> None:
        def search(*given: Any) -> None:
            *before, out, _, _ = given
            weighed = np.empty_like(out)
            self.usual(*before, out, self.weights, weighed)
            out[:] = np.where(weighed >= 0, weighed, out)

        denoise.search_runs = search

    def __exit__(self, *_: object) -> None:
        denoise.search_runs = self.usual

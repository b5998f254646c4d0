"""What the studies weigh together, of figures that a report has: relative gain, N_w : S_w, and PUC."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from corpusveil.evaluation.attribute import relative_gain
from corpusveil.evaluation.findings import Measure
from corpusveil.evaluation.learning import BY
from corpusveil.evaluation.puc import puc
from corpusveil.evaluation.statistics import relative

PARTS = (
    "retention of a word (N_w)",
    "distinct outputs of 100 (S_w)",
    "words changed (PP)",
    "similarity of meaning",
    "rarest words that survive (LOW)",
)
ALPHAS = (0.75, 0.5, 0.25)


def composites(measures: Sequence[Measure]) -> Iterator[Measure]:
    """Yield each where all its parts are there, as released; of several models the first one's."""
    found: dict[str, Measure] = {}
    for one in measures:
        if one.epsilon is None:
            found.setdefault(one.name, one)
    n_w, s_w = (found.get(name) for name in PARTS[:2])
    if n_w and s_w and s_w.value > 0:
        yield Measure(
            "privacy", "N_w : S_w", float(relative(100 * n_w.value, s_w.value)), "number", model=n_w.model,
            note="both in percent", of_input=n_w.of_input or s_w.of_input,
        )  # fmt: skip
    for useful, attack in BY.values():
        yield from _gain(found, useful, attack)
    yield from _puc(found)


def _gain(found: dict[str, Measure], useful: str, attack: str) -> Iterator[Measure]:
    kept, whole = (found.get(f"{useful}, {name} to {name}") for name in ("private", "original"))
    told, known = (found.get(f"{attack}, {name}") for name in ("adaptive", "from original texts"))
    if not (kept and whole and told and known and whole.value > 0 and known.value > 0):
        return
    floors = relative_gain(kept.floor or 0.0, whole.value, told.floor or 0.0, known.value)
    yield Measure(
        "attack", "relative gain" if useful == "accuracy" else f"relative gain ({useful})",
        relative_gain(kept.value, whole.value, told.value, known.value), "number", model=kept.model,
        note=f"utility kept less attack kept, by {useful}; constant classifiers have {floors:.3g}", of_input=True,
    )  # fmt: skip


def _puc(found: dict[str, Measure]) -> Iterator[Measure]:
    kept, whole = (found.get(f"accuracy, {name} to {name}") for name in ("private", "original"))
    parts = [found.get(name) for name in PARTS]
    if not (kept and whole and whole.value > 0 and all(parts)):
        return
    n_w, s_w, pp, cs, low = (part.value for part in parts if part)
    if cs < 0:
        return
    for alpha in ALPHAS:
        score = puc(100 * kept.value, 100 * whole.value, 100 * n_w, s_w, 100 * pp, 100 * cs, 100 * low, alpha)
        yield Measure("privacy", f"PUC, alpha {alpha:g}", score, "number", note="of 100", of_input=True)

"""N_w and S_w: the effect of a mechanism on single words, from draws and exactly; and their ratio.

The definitions are those of Feyisetan, Balle, Drake, Diethe (2020), of Xu et al. (2021) and of Meisenbacher,
Nandakumar, Klymenko, Matthes (2024).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from corpusveil.errors import NoClosedForm, SettingError
from corpusveil.mechanisms import Mechanism
from corpusveil.sampling.draws import DrawKey, Draws
from corpusveil.sampling.keys import Key
from corpusveil.sampling.weights import check_epsilon
from corpusveil_evaluate.statistics.statistic import KNOWN_WORDS, register

RUNS = 100
"""Replacements of a word, as in most studies; Xu et al. (2021) take 1,000."""
AT_ONCE = 1 << 18
"""Tokens that are privatized at once."""
_DRAWS = "5e" * 32


@dataclass(frozen=True, slots=True)
class WordStatistics:
    """The effect of a mechanism on single words: means and standard deviations over ``words`` words.

    ``retention`` is N_w, the share (0 to 1) of ``runs`` replacements that are the word itself; ``distinct`` is S_w, the
    number (1 to ``runs``) of different words among them. Deviations divide by the number of words, not one less.
    ``retention_exact`` and ``distinct_exact`` are the expectations by the law, None where it has no closed form.
    """

    retention: float
    retention_deviation: float
    distinct: float
    distinct_deviation: float
    retention_exact: float | None
    distinct_exact: float | None
    runs: int
    words: int

    @property
    def n_w(self) -> float:
        """The exact share, or that of the samples where there is no law."""
        return self.retention if self.retention_exact is None else self.retention_exact

    @property
    def s_w(self) -> float:
        """The exact number, likewise."""
        return self.distinct if self.distinct_exact is None else self.distinct_exact


def word_statistics(
    mechanism: Mechanism,
    epsilon: float,
    words: npt.NDArray[np.integer[Any]],
    runs: int = RUNS,
    key: Key | None = None,
    *,
    exact: bool = True,
) -> WordStatistics:
    """Return N_w and S_w of ``words``, ids int [N], at one epsilon: from ``runs`` replacements of each, and exactly.

    Exactly, N_w is ``P[w, w]`` and S_w is ``sum_v 1 - (1 - P[w, v])^runs``. ``key`` is the key of the draws (default: a
    fresh key); ``exact=False`` leaves out the law, which takes some mechanisms seconds per word. Raises UserError for
    ids that are not words, and for numbers out of range.
    """
    epsilon = check_epsilon(epsilon)
    if runs < 1 or np.ndim(words) != 1 or not np.size(words):
        raise SettingError(f"runs = {runs}, {np.size(words)} words: give at least one of each, and words in one row.")
    ids = np.asarray(words)
    for end in (ids.min(), ids.max()):
        mechanism.check_id(int(end))
    draw_key = DrawKey.derive(key or Key.generate(), _DRAWS)
    stays, different = np.empty(ids.size), np.empty(ids.size)
    each = max(1, AT_ONCE // runs)
    for start in range(0, ids.size, each):
        some = ids[start : start + each].astype(np.int32)
        draws = Draws.of_tokens(draw_key, some.size * runs, document=f"statistics {start}")
        out = mechanism.privatize(np.repeat(some, runs), epsilon, draws).reshape(-1, runs)
        stays[start : start + each] = (out == some[:, None]).mean(axis=1)
        out.sort(axis=1)
        different[start : start + each] = 1 + (out[:, 1:] != out[:, :-1]).sum(axis=1)
    law = _exact(mechanism, epsilon, ids, runs) if exact else (None, None)
    return WordStatistics(
        float(stays.mean()), float(stays.std()), float(different.mean()), float(different.std()), *law, runs, ids.size
    )


def _exact(
    mechanism: Mechanism, epsilon: float, ids: npt.NDArray[np.integer[Any]], runs: int
) -> tuple[float | None, float | None]:
    once, times = np.unique(ids, return_counts=True)
    stays, different = np.empty(once.size), np.empty(once.size)
    try:
        for row, word in enumerate(once.tolist()):
            law = np.minimum(mechanism.distribution(word, epsilon), 1.0)
            stays[row] = law[word]
            with np.errstate(divide="ignore"):
                different[row] = -np.expm1(runs * np.log1p(-law)).sum()
    except NoClosedForm:
        return None, None
    return float(stays @ times / ids.size), float(different @ times / ids.size)


N_W = register("retention of a word (N_w)", group="privacy", of=KNOWN_WORDS)
S_W = register(f"distinct outputs of {RUNS} (S_w)", group="privacy", unit="number")

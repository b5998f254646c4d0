"""Association measures: the formulas, the filters and the order of the table."""

from __future__ import annotations

import decimal
import math
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from corpusveil.collocations.measures import MEASURES, Scoring, Unigrams, connector_words, score, scored
from corpusveil.errors import ArtifactError
from tests.calls import refused


def plain(measure: str, count: int, words: list[int], total: int) -> float:
    """Return a score by the formula, in plain floats."""
    k = len(words)
    if measure in ("pmi", "npmi"):
        pmi = math.log2(count * total ** (k - 1) / math.prod(words))
        return pmi if measure == "pmi" else pmi / (-(k - 1) * math.log2(count / total))
    if measure == "jaccard":
        return count / (sum(words) - (k - 1) * count)
    if measure == "log-dice":
        return 14 + math.log2(k * count / sum(words))
    with decimal.localcontext(prec=60):  # the cells of the log-likelihood ratio cancel in floats
        c, size = decimal.Decimal(count), decimal.Decimal(total)
        expected = decimal.Decimal(math.prod(words)) / size ** (k - 1)
        if measure == "t":
            return float((c - expected) / c.sqrt())
        cells = [(c, expected), (size - c, size - expected)]
        if k == 2:
            x, y = map(decimal.Decimal, words)
            cells = [(c, expected), (x - c, x - expected), (y - c, y - expected)]
            cells.append((size - x - y + c, size - x - y + expected))
        if measure == "chi2":
            squares = sum((o - e) ** 2 / e for o, e in cells)
            return float(-squares if c < expected else squares)
        whole = 2 * sum(o * (o / e).ln() for o, e in cells if o > 0)
        return float(-whole if c < expected else whole)


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("k", [2, 3, 4])
def test_is_its_formula(measure: Any, k: int) -> None:
    """To 1e-9 of the plain formula, for rare and frequent words of large and small corpora."""
    rng = random.Random(k)
    for total in (1000, 33_020_516, 250_000_000_000):
        words = [[rng.randint(1, max(2, int(total ** rng.random() / 3))) for _ in range(k)] for _ in range(300)]
        counts = [rng.randint(1, min(row)) for row in words]
        got = score(counts, np.array(words).T, total, measure)
        for one, count, row in zip(got, counts, words, strict=True):
            want = plain(measure, count, row, total)
            assert one == pytest.approx(want, rel=2**-26, abs=1e-9)


def table(rows: dict[str, int]) -> pa.Table:
    numbers = [ngram.count(" ") + 1 for ngram in rows]
    return pa.table({"ngram": list(rows), "n": pa.array(numbers, pa.int8()), "count": list(rows.values())})


ROWS = {"a": 50, "b": 40, "of": 200, "c": 10, "a b": 20, "a of": 45, "a of b": 15, "of c": 9, "b c": 1, "a b c": 1}
UNIGRAMS = Unigrams(pa.array(["of", "b", "a", "c"], pa.large_string()), np.array([200, 40, 50, 10]), 300)


def kept(**options: Any) -> set[str]:
    found = pa.concat_tables(scored([table(ROWS)], UNIGRAMS, Scoring(**{"threshold": -99.0, **options})))
    return set(found["ngram"].to_pylist())


class TestWhatIsKept:
    def test_connectors_nowhere_or_not_at_the_edges(self) -> None:
        """``strict`` is the study's text, ``edges`` its printed examples ("chain of events")."""
        of = frozenset({"of"})
        assert kept(connectors=of) == {"a b", "b c", "a b c"}
        assert kept(connectors=of, rule="edges") == {"a b", "b c", "a b c", "a of b"}

    def test_counts_and_scores_below_are_left_out(self) -> None:
        assert kept(min_count=9) == {"a b", "a of", "a of b", "of c"}
        scores = {ngram: plain("pmi", ROWS[ngram], [ROWS[word] for word in ngram.split()], 300) for ngram in kept()}
        assert kept(threshold=1.0) == {ngram for ngram, value in scores.items() if value >= 1.0} != kept()

    @pytest.mark.parametrize("ngram", ["a x", "a b"])
    def test_unsound_counts_are_refused(self, ngram: str) -> None:
        """A word that was not counted, or a count of another length, scores nothing."""
        rows = pa.table({"ngram": [ngram], "n": pa.array([2 if "x" in ngram else 3], pa.int8()), "count": [1]})
        with pytest.raises(ArtifactError):
            list(scored([rows], UNIGRAMS, Scoring(threshold=-99)))

    def test_connector_words(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """gensim's by default, or a sentence as on Python 3.14, which it has no wheel for; a file needs none."""
        assert {"of", "the", "and"} <= connector_words()
        monkeypatch.setitem(sys.modules, "gensim", None)
        monkeypatch.delitem(sys.modules, "gensim.models.phrases", raising=False)
        with refused("missing-package", "gensim", "corpusveil[train]"):
            connector_words()
        (tmp_path / "words").write_text("Und\noder\n")
        assert connector_words(str(tmp_path / "words")) == {"und", "oder"}

"""``cv.evaluate_release`` takes frames and lists as it takes files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import corpusveil as cv
from corpusveil.spaces import Space
from corpusveil_evaluate.report.beside_original import Asked
from corpusveil_evaluate.settings import EvaluateSettings
from evaluate.tests.releases import texts


@pytest.fixture
def release(space: Space) -> cv.Release:
    return cv.Release(cv.RingGeometric(space), cv.Budget(1.0), key=cv.Key(bytes(range(100, 132))))


class TestEvaluateRelease:
    @pytest.mark.parametrize("kind", [pd.DataFrame, pa.table])
    def test_frames_are_held_against_each_other(self, kind: Any, release: cv.Release, tmp_path: Path) -> None:
        """What a model still learns and what came back, without a file."""
        rows = texts(120)
        original = kind({name: [row[name] for row in rows] for name in ("url", "text", "topic")})
        private = cv.privatize(original, release, ids="url", keep="url")
        found = cv.evaluate_release(original, private, release, id="url", label="topic", seeds=2)
        assert 0 < found.at("words unchanged").value < found.at("accuracy, original to original").value
        assert found.guarantee == release.guarantee().notes
        page = cv.write_report(found, str(tmp_path / "report"), publishable=True)
        assert rows[0]["text"] not in Path(page).read_text()

    def test_what_does_not_fit_is_a_sentence(self) -> None:
        frame = pd.DataFrame({"text": ["aaaa"]})
        for original, private, named, said in (
            (["aaaa"], "out", {}, "only one of them is an address"),
            (["aaaa"], ["aaab", "aaac"], {}, "there are 1 and 2 texts"),
            ([None], ["aaab"], {}, "no document is in both"),
            (frame, ["aaab"], {"label": "label"}, "label: there is no such column"),
        ):  # fmt: skip
            with pytest.raises(cv.UserError, match=said):
                cv.evaluate_release(original, private, **named)  # type: ignore[arg-type]

    def test_editors_know_every_key(self) -> None:
        """All but those that name what a call is given opened, or where a command reads and writes."""
        opened = {"original", "private", "path", "collocations", "encoder", "vectors", "publishable"}
        assert Asked.__annotations__.keys() == EvaluateSettings.model_fields.keys() - opened

"""What public texts with their own labels teach without any release.

    python -m benchmarks labels

Some thousand conversations of multiDoGO (of the shared open-en) are public, the others private, but for those that are
near to a public one. A classifier learns the service from public conversations, and predicts it for all private ones.
"""

import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import orjson
import pyarrow as pa
import zstandard

import corpusveil as cv
from benchmarks import inputs
from benchmarks.report import Skipped, Table
from corpusveil.passages.encoder import LENGTH
from corpusveil.passages.figures import NEAR_TWIN
from corpusveil.search.inner_products import ProductSearch
from corpusveil_evaluate.utility.labelled_texts import LabelledTexts
from corpusveil_evaluate.utility.text_classifiers import Tfidf

PUBLIC = (100, 500, 3736)
"""Numbers of public conversations; those near to one of the most are left out."""


def run(arguments: Sequence[str] = ()) -> list[Table]:
    if arguments or (shared := inputs.data()) is None or not (shared / "open-en").is_dir():
        raise Skipped("it has no options, and needs the shared data with open-en.")
    rows = [*_conversations(sorted((shared / "open-en").glob("*.zst")))]
    order = np.random.default_rng(0).permutation(len(rows)).tolist()
    public, private = ([rows[at] for at in some] for some in (order[: PUBLIC[-1]], order[PUBLIC[-1] :]))
    encode = cv.load_store("en").encoder.encode
    vectors, points = (encode(pa.array([text for text, _ in some], pa.large_string())) for some in (public, private))
    near = ProductSearch(vectors).several(points, 1)[1][:, 0] * 100 > NEAR_TWIN * LENGTH**2
    test = _labelled([row for row, twin in zip(private, near, strict=True) if not twin])
    shown = Table("The service of private conversations, learned from public ones", ("public", "right"))
    for size in PUBLIC:
        guesses = Tfidf().fit(_labelled(public[:size]), 0)(test)
        shown.rows.append((size, float(np.mean([a == b for a, b in zip(guesses, test.labels, strict=True)]))))
    shown.notes.append(f"{len(test):,} private conversations; {int(near.sum())} near to a public one are left out.")
    return [shown]


def _conversations(paths: Sequence[Path]) -> Iterator[tuple[str, str]]:
    """Yield the conversations and their services."""
    for path in paths:
        with path.open("rb") as file:
            for line in io.BufferedReader(zstandard.ZstdDecompressor().stream_reader(file)):
                row = orjson.loads(line) if b"multidogo" in line else {}
                if row.get("source") == "multidogo" and (service := re.search(r"_level/([a-z]+)/", row["url"])):
                    yield row["text"], service.group(1)


def _labelled(rows: Sequence[tuple[str, str]]) -> LabelledTexts:
    texts, services = zip(*rows, strict=True)
    return LabelledTexts(list(texts), list(services), None, "service", ["train"] * len(rows))

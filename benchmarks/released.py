"""``evaluate release`` on text that the dependencies ship: its cost for 10,000 documents, and its findings.

Documents are 10,000 passages of 50 words of news and of an encyclopedia. A model should still predict which of the two
a passage comes from; no attacker should infer which of the ten longest articles. The space is made of the same text,
which is public. Anyone can repeat it: nothing is downloaded.
"""

import hashlib
import time
from collections import Counter
from pathlib import Path
from typing import Any

import orjson

import corpusveil as cv
from benchmarks import inputs
from benchmarks.report import Table
from corpusveil.collocations.public_texts import public_texts
from corpusveil.collocations.tokenize import tokenize_corpus
from corpusveil.collocations.training import train_vectors
from corpusveil.collocations.word2vec import Training
from corpusveil.jobs.local import Local
from corpusveil.spaces import Space
from corpusveil.storage.artifacts import is_artifact
from corpusveil.transforms.release.corpus import privatize_corpus
from corpusveil.transforms.release.manifest import read_manifest
from corpusveil_evaluate.matching import match
from corpusveil_evaluate.report.evaluate_release import evaluate_release
from corpusveil_evaluate.report.findings import Findings
from corpusveil_evaluate.report.question import Question
from corpusveil_evaluate.report.release_page import write_report

DOCUMENTS, WORDS, NEWS, LONGEST = 10_000, 50, 300, 10
SEEDS = 5
SECONDS = 120.0
"""The target time of the page for 10,000 documents on two cores."""


def run() -> list[Table]:
    folder = inputs.work() / "released"
    source, space = made(folder)
    key = cv.Key(hashlib.sha256(b"benchmark released").digest())
    release = cv.Release(cv.mechanism("ring-geometric", space), cv.Budget(1.0), key=key)
    out = str(folder / "release")
    privatize_corpus(release, [str(source)], out, Local())
    began = time.perf_counter()
    matched = match([str(source)], [out], columns=("source", "article"))
    asked = {"label": "source", "attribute": "article", "seeds": SEEDS, "space": space}
    found = evaluate_release(matched, read_manifest(out), Question.of(**asked, keys=(key,)))
    page = write_report(found, str(folder / "report"))
    taken = time.perf_counter() - began
    cost = Table("The report of a release, from files to page", ("documents", "words", "space", "seconds"))
    cost.rows.append((len(matched.originals), DOCUMENTS * WORDS, len(space), taken))
    cost.target(f"{DOCUMENTS:,} documents within {SECONDS:.0f} s", met=taken < SECONDS)
    cost.notes.append(f"{Path(page).stat().st_size / 1000:.0f} kB of HTML; {SEEDS} seeds, with a key.")
    return [cost, as_released(found)]


def made(folder: Path) -> tuple[Path, Space]:
    """Write the passages and train a space on them, where these are not yet."""
    source, engine = folder / "in", Local()
    if not is_artifact(f"{folder}/space"):
        source.mkdir(parents=True, exist_ok=True)
        (source / "passages.jsonl").write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in passages()))
        tokenize_corpus([str(source)], f"{folder}/tokens", engine, "word", None)
        train_vectors(f"{folder}/tokens", f"{folder}/vectors", engine, Training(100, min_count=3, epochs=8, sg=1))
        cv.build_space(cv.read_vectors(f"{folder}/vectors")).save(f"{folder}/space")
    return source, cv.load_space(f"{folder}/space")


def passages() -> list[dict[str, Any]]:
    """Return the first passages of every text in turn, so many of each that there are enough in all."""
    texts = [text.split() for text in public_texts()]
    parts = [[text[at : at + WORDS] for at in range(0, len(text) - WORDS + 1, WORDS)] for text in texts]
    most = Counter({number: len(some) for number, some in enumerate(parts) if number >= NEWS}).most_common(LONGEST)
    longest = {number for number, _ in most}
    rows = [
        {
            "text": " ".join(words),
            "source": "news" if number < NEWS else "encyclopedia",
            "article": f"article {number}" if number in longest else None,
        }
        for number, some in enumerate(parts)
        for words in some
    ]
    keep = [at * len(rows) // min(len(rows), DOCUMENTS) for at in range(min(len(rows), DOCUMENTS))]
    return [rows[at] for at in keep]


def as_released(found: Findings) -> Table:
    table = Table(
        "As released, ring-geometric at epsilon 1",
        ("figure", "value", "floor", "difference from original, points", "by"),
    )
    for one in found.measures:
        floor = "" if one.floor is None else f"{one.floor:.1%}"
        table.rows.append((one.name, str(one), floor, one.less, one.model))
    return table

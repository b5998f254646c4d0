"""A cost model: CPU seconds by words, fitted at 1, 2, 4 and 8 times the data, and checked with another run.

Its estimate for C4 is a multiplication; ``docs/scale.md`` says what it ignores.
"""

import gzip
import itertools
import pickle
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import corpusveil as cv
from benchmarks import inputs, measured
from benchmarks.report import Skipped, Table

TIMES, UNSEEN = (1, 2, 4, 8), 12
WITHIN = 0.25
C4_WORDS, C4_DOCUMENTS = 156e9, 365e6
DOLLARS = 0.05
"""Dollars per core-hour with about 4 GB: a round figure for a rented machine; replace it by yours."""
WHOLE, FAST, SLOW = 3_000_000, 120_000, 2_000
"""Words of the unit of data: enough that start-up does not hide them.

The cost of mechanisms that build rows when words first occur (santext, tem) is not linear in words; ``benchmarks
mechanisms`` has their tables and rates.
"""
MECHANISMS = {
    "ring-geometric": WHOLE,
    "diffractor-geometric": WHOLE,
    "diffractor-exponential": WHOLE,
    "custext": WHOLE,
    "cmp": SLOW * 4,
    "mahalanobis": SLOW * 4,
    "vickrey-cmp": SLOW * 4,
    "syntf": FAST,
}


@dataclass(frozen=True)
class Line:
    """CPU seconds as a straight line of words."""

    start: float
    each: float

    def at(self, words: float) -> float:
        return self.start + self.each * words


def fit(points: list[tuple[int, float]]) -> Line:
    """Return the line with the least squared relative errors."""
    words, seconds = np.array(points, dtype=float).T
    matrix = np.stack([np.ones_like(words), words], axis=1) / seconds[:, None]
    (start, each), *_ = np.linalg.lstsq(matrix, np.ones_like(words), rcond=None)
    return Line(float(start), float(each))


def run() -> list[Table]:
    table = Table(
        f"CPU seconds by words, one process; ε = 1; {inputs.origin()}",
        ("work", "start s", "words/s a core", f"{UNSEEN} times: said s", "was s", "off", "bytes out/in", "peak MiB"),
    )
    scale = Table(
        "C4 en by that: 365 M documents, 156 G words",
        ("work", "core-hours", f"dollars at {DOLLARS} a core-hour", "MiB a process", "TB written"),
    )
    off: dict[str, float] = {}
    with tempfile.TemporaryDirectory(dir=inputs.work()) as name:
        folder = Path(name)
        works = {mechanism: (unit, privatizing) for mechanism, unit in MECHANISMS.items()}
        works |= {
            "count": (WHOLE, counting),
            "tokenize gst": (WHOLE, tokenizing),
            "train, an epoch": (FAST * 5, training),
        }
        for number, (work, (unit, how)) in enumerate(works.items()):
            points, peak, ratio = [], 0.0, 0.0
            for times in (*TIMES, UNSEEN):
                place = folder / f"{number}-{times}"
                place.mkdir()
                words, read = corpus(place / "in.json.gz", unit * times)
                try:
                    took, written = how(place, work)
                except Skipped as reason:
                    table.notes.append(f"{work}: {reason}")
                    break
                points.append((words, took.cpu))
                peak, ratio = max(peak, took.largest), written / read
            if len(points) <= len(TIMES):
                continue
            line, (words, was) = fit(points[:-1]), points[-1]
            off[work] = line.at(words) / was - 1
            told = f"{off[work]:+.0%}"
            table.rows.append((work, line.start, 1 / line.each, line.at(words), was, told, ratio, peak))
            hours = line.each * C4_WORDS / 3600
            scale.rows.append((work, hours, hours * DOLLARS, peak, ratio * C4_WORDS * read / words / 1e12))
    table.target(
        f"each is said within {WITHIN:.0%} (the worst: {max(off.values(), key=abs):+.0%})",
        met=max(map(abs, off.values())) <= WITHIN,
    )
    table.notes.append(f"What a worker is sent, without the space, which it opens itself: {sent():,} bytes.")
    return [table, scale]


def corpus(path: Path, words: int) -> tuple[int, int]:
    """Write the first documents of the input with this many words in total; return their words and bytes read."""
    written = 0
    with gzip.open(path, "wb", 1) as out:
        for shard in itertools.cycle(inputs.shards()):
            with gzip.open(shard) as source:
                for line in source:
                    out.write(line)
                    written += line.count(b" ") + 1
                    if written >= words:
                        break
            if written >= words:
                break
    return written, path.stat().st_size


def privatizing(place: Path, mechanism: str) -> tuple[measured.Measured, int]:
    fixed = ["--space", inputs.space(), "--key", inputs.key(), "--mechanism", mechanism, "--epsilon", 1]
    fixed += ["--output", place / "out", "--progress", "none", "--accept-no-guarantee"]
    took = measured.command("privatize", place / "in.json.gz", *fixed)
    return took, measured.size_of(place / "out")


def counting(place: Path, _: str) -> tuple[measured.Measured, int]:
    took = measured.command("count", place / "in.json.gz", "--output", place / "counts", "--progress", "none")
    return took, measured.size_of(place / "counts")


def tokenizing(place: Path, _: str) -> tuple[measured.Measured, int]:
    counting(place, "")
    measured.command("score", "--counts", place / "counts", "--output", place / "table", "--progress", "none")
    took = measured.command(
        "tokenize", place / "in.json.gz", "--collocations", place / "table", "--tokenizer", "gst", "--output",
        place / "tokens", "--progress", "none",
    )  # fmt: skip
    return took, measured.size_of(place / "tokens")


def training(place: Path, _: str) -> tuple[measured.Measured, int]:
    measured.command("tokenize", place / "in.json.gz", "--tokenizer", "word", "--output", place / "tokens")
    took = measured.command("train", "--tokens", place / "tokens", "--output", place / "vectors", "--epochs", 1)
    return took, measured.size_of(place / "vectors")


def sent() -> int:
    """Return the bytes that are sent to a worker."""
    space = cv.load_space(inputs.space())
    release = cv.Release(cv.mechanism("ring-geometric", space), cv.Budget(1.0), cv.TextPolicy(), cv.Key.for_tests())
    return len(pickle.dumps(release.kernel(whole_corpus=True)))

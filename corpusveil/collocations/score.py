"""From counts to a collocation table: score, filter, order."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from corpusveil.collocations.artifact import WORK, make_once, read_artifact, reading_of
from corpusveil.collocations.measures import SCHEMA, Scoring, Unigrams, ordered, scored
from corpusveil.errors import ArtifactError, DataError, SettingError, missing_parts
from corpusveil.storage import files
from corpusveil.storage.durable import Done, PartTask, Stage, mark_of, run, stem
from corpusveil.storage.engine import Engine
from corpusveil.storage.parquet import opened, read_table, sound, write_table

VERSION = 1
TABLE = "collocations.parquet"


@functools.lru_cache(maxsize=1)
def _unigrams(counts: str, total: int, digest: str) -> Unigrams:  # noqa: ARG001 - of which counts
    folder = files.join(counts, "ngrams")
    table = pa.concat_tables(_tables(files.join(folder, files.listing(folder)[0])))
    return Unigrams(table["ngram"].cast(pa.large_string()).combine_chunks(), table["count"].to_numpy(), total)


def _tables(url: str) -> Iterator[pa.Table]:
    with files.open_read(url) as file, sound(f"{url}: these counts are damaged; count again.", ArtifactError):
        parquet = opened(file)
        for group in range(parquet.num_row_groups):
            yield parquet.read_row_group(group, columns=["ngram", "n", "count"], use_threads=False)


class Scored(Done):
    """A scored part of the counts, and its address."""

    made: str


@dataclass(frozen=True, slots=True)
class ScorePart(Stage[Scored]):
    """Score one part of the counts."""

    name: ClassVar[str] = "scores"

    counts: str
    total: int
    scoring: Scoring

    def do_task(self, task: PartTask) -> dict[str, Any]:
        unigrams = _unigrams(self.counts, self.total, self.mark)
        folder = files.join(self.counts, "ngrams")
        tables = _tables(files.join(folder, files.listing(folder)[task.part]))
        kept = [SCHEMA.empty_table(), *scored(tables, unigrams, self.scoring)]
        url = self.address("made", f"{stem(task)}.parquet")
        write_table(pa.concat_tables(kept), url)
        return {"made": url}


def score_counts(counts: str, output: str, engine: Engine, scoring: Scoring | None = None) -> dict[str, Any]:
    """Score counts into the collocation table ``output/collocations.parquet``; return its description.

    Rows are sorted by falling score, then n, then n-gram. A repeated call does nothing when all is done. Raises
    UserError if there are no counts, they are of another tokenizer, or nothing is left; WorkError if another run is in
    progress.

    >>> scored = cv.score_counts("counts", "table", cv.Local(), cv.Scoring(threshold=1.0))
    """
    output = files.absolute(output)
    scoring = scoring or Scoring()
    counts = files.absolute(counts)
    description = read_artifact(counts, "counts")
    if description["options"]["max_n"] < 2:
        raise SettingError(f"{counts}: these are counts of single words; count again with max_n 2 or more.")
    parts = len(files.listing(files.join(counts, "ngrams")))
    if parts != description["parts"] + 1:
        raise missing_parts(counts, parts, description["parts"] + 1)
    settings = [scoring.measure, scoring.threshold, scoring.min_count, sorted(scoring.connectors), scoring.rule]
    stage = ScorePart(
        files.join(output, WORK),
        mark_of(VERSION, description["digest"], settings),
        counts,
        description["words"],
        scoring,
    )

    def make_artifact() -> dict[str, Any]:
        reading = reading_of(counts, description)
        records = run(stage, [PartTask(part, parts) for part in range(parts)], engine)
        table = ordered(pa.concat_tables([read_table(record.made) for record in records]))
        if not table.num_rows:
            raise DataError(
                f"No n-gram has {scoring.measure} {scoring.threshold:g} or more and occurs {scoring.min_count} times; "
                "lower the threshold or the least count."
            )
        write_table(table, files.join(output, TABLE))
        lengths = np.bincount(table["n"].to_numpy(), minlength=3)
        return {
            "counts": description["digest"],
            **reading.fields(),
            "measure": scoring.measure,
            "threshold": scoring.threshold,
            "min_count": scoring.min_count,
            "connectors": len(scoring.connectors),
            "connectors_rule": scoring.rule,
            "collocations": {str(n): int(lengths[n]) for n in range(2, len(lengths))},
        }

    return make_once(output, "collocations", stage.mark, make_artifact)

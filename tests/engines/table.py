"""The table of engines: which promise was checked on which engine, and how it was kept.

``python -m tests.engines.table CELLS`` prints the page of the documentation from the cells that ``make engines`` ran.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

from tests.cells import read_cells

ENGINES = {"prism": "Prism", "flink-cluster": "Flink, two task managers", "yarn": "Spark on YARN, two nodes"}
"""Each row of the table, by the name that its tests use."""
PROMISES = ("equal bytes", "killed worker", "cap", "error sentence", "stream")
NOTES = {
    "prism": "the killed processes were workers of Beam's worker pool.",
    "flink-cluster": "the killed process is the task manager, and Flink starts the job again on the other.",
}
"""What a row does not say: a sentence for an engine, also for one that could not be made to run."""
HEAD = """# Engines: what was run on which

This page lists the engines that wrote the same bytes as one local process. `make engines` installs each on this machine,
without root, and runs a release of five shards, one of them split into pieces, with a ledger.

| promise | what is checked |
|---|---|
| equal bytes | files and ledger are those of one local process |
| killed worker | `kill -9` of a worker that is about to write a shard. **went on**: the engine tried again. **again**: the same command completed the run |
| cap | a cap that the corpus exceeds is refused with one sentence and status 2, and nothing was drawn |
| error sentence | a wrong row is one sentence with status 2 that quotes nothing; on YARN, in the driver's log |
| stream | an unbounded collection has the texts of `cv.privatize` |

"""


@dataclass(frozen=True)
class Cell:
    """One promise that an engine kept."""

    engine: str
    version: str
    promise: str
    outcome: str


def page(cells: list[Cell]) -> str:
    """Return the page: a row for each engine, a column for each promise."""
    kept = {(cell.engine, cell.promise): cell for cell in cells}
    lines = [f"| engine | version | {' | '.join(PROMISES)} |", "|---|---|" + "---|" * len(PROMISES)]
    for engine, title in ENGINES.items():
        row = [kept.get((engine, promise)) for promise in PROMISES]
        version = next((cell.version for cell in row if cell is not None), "")
        outcomes = ["" if cell is None else cell.outcome for cell in row]
        lines.append(f"| {title} | {version} | {' | '.join(outcomes)} |")
    notes = [f"* **{ENGINES[engine]}**: {sentence}" for engine, sentence in NOTES.items()]
    return HEAD + "\n".join([*lines, "", "An empty cell was not run.", *([""] if notes else []), *notes]) + "\n"


if __name__ == "__main__":
    sys.stdout.write(page(read_cells(sys.argv[1], Cell)))

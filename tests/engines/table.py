"""The table of engines: which promise was checked on which engine, and how it was kept.

``python -m tests.engines.table CELLS`` prints the page of the documentation from the cells that ``make engines`` ran.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

from tests.cells import read_cells

ENGINES = {
    "prism": "Prism",
    "flink-cluster": "Flink, two task managers",
    "yarn": "Spark on YARN, two nodes",
}
"""Each row of the table, by the name that its tests use."""
PROMISES = ("equal bytes", "killed worker", "cap", "error sentence", "stream")
NOTES = {
    "prism": "its workers are threads of the command; those that were killed were processes of Beam's worker pool.",
    "flink-cluster": "the killed process is the task manager; Flink starts the job again on the other, while the worker of the lost one still writes the same bytes. The mirror of Maven that this was run on has the job server of no newer Beam, and none for Flink 2, as a whole; `scripts/engines.sh` tries the version of `apache-beam` first. Every job is a Flink job of its own, so a run takes minutes on two cores.",
}
"""What a row does not say: a sentence for an engine, also for one that could not be made to run."""
HEAD = """# Engines: what was run on which

`make engines` installs each engine on this machine, without root, and checks these promises on it. Every engine gets
the same release: five shards, one of them split into pieces, with a ledger.

| promise | what is checked |
|---|---|
| equal bytes | every file of the release, and what the ledger counts, are those of one local process |
| killed worker | `kill -9` of a worker that is about to write a shard. **went on**: the engine tried again. **again**: the run ended with one sentence and status 1, and the same command, run again, completed it. In both cases the bytes are equal and each document is counted once |
| cap | a cap that the corpus exceeds is refused with one sentence and status 2; nothing was drawn, and the ledger is as it was |
| error sentence | a wrong row is one sentence with status 2 that names the shard and quotes nothing; on YARN, in the driver's log |
| stream | an unbounded collection, written by windows: its texts are those of `cv.privatize` |

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

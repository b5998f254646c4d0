"""The table of faults: which harm at which moment, on which engine, and what became of the run.

``python -m tests.faults.matrix CELLS`` prints the page of the documentation from the cells that ``make faults`` ran.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

from tests.cells import read_cells

ENGINES = {
    "local": "local, two processes",
    "spark": "Spark, local[2]",
    "cluster": "Spark cluster, two workers",
    "beam": "Beam",
}
MOMENTS = {
    "begin": "the run makes the folders its own",
    "looking": "a pass looks at a shard, for the ledger",
    "ledger": "what is spent is entered in the ledger",
    "piece": "a piece of a split shard appears",
    "writing": "an output shard appears",
    "recording": "a shard is recorded as done",
    "joining": "the pieces of a shard are joined",
    "manifest": "the manifest appears",
    "page": "the reports appear",
}
HEAD = """# Faults: runs that are killed, cut off or started twice

`make faults` ran each cell: a release with a ledger and five shards, one of them split into pieces. The run is stopped
at the moment that the row names, by holding the process that is about to make a file appear, and then harmed. In every
cell, the release is byte for byte that of an undisturbed run; before it was finished, it showed no manifest and no
incomplete or wrong file; the ledger counts each document once, and its entries agree with the records.

**went on**: the run succeeded without help. **again**: the run ended with one sentence and status 1, or was killed, and
the same command, run again, completed it. Seconds are the additional time, compared with an undisturbed run on the same
machine, including the start of a second Python, Java and cluster job. On two busy cores they vary by several seconds.

"""


@dataclass(frozen=True)
class Cell:
    """One fault that was tried."""

    engine: str
    fault: str
    moment: str
    outcome: str
    seconds: float


def page(cells: list[Cell]) -> str:
    """Return the page: one table for all faults, a row for each fault and moment, a column for each engine."""
    found = {(cell.fault, cell.moment, cell.engine): cell for cell in cells}
    rows = list(dict.fromkeys((cell.fault, cell.moment) for cell in cells))
    lines = [f"| fault | at the moment when | {' | '.join(ENGINES.values())} |", "|---|---|" + "---|" * len(ENGINES)]
    for fault, moment in rows:
        told = []
        for engine in ENGINES:
            cell = found.get((fault, moment, engine))
            told.append("" if cell is None else f"{cell.outcome}, {cell.seconds:+.0f} s")
        lines.append(f"| {fault} | {MOMENTS.get(moment, moment)} | {' | '.join(told)} |")
    return (
        HEAD
        + "\n".join(lines)
        + f"\n\n{len(found)} cells were run for this table. "
        + "An empty cell was not run, or the engine has no such process.\n"
    )


def main() -> None:
    """Print the page."""
    sys.stdout.write(page(read_cells(sys.argv[1], Cell)))


if __name__ == "__main__":
    main()

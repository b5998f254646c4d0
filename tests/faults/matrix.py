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
HEAD = """# Faults: runs that are killed, cut off or started twice

This page lists the faults that were tried on runs. None left a wrong file, and the same command completed each run.

`make faults` ran a release with a ledger and five shards, one of them split into pieces. It paused the process just
before a file appeared, and then caused the fault, at up to nine moments between the claim of the folders and the last
page.

In every case, the release is byte for byte that of an undisturbed run. Before it was finished, it showed no manifest and
no incomplete or wrong file. The ledger counts each document once, and its entries agree with the records.

**went on**: the run succeeded without help. **again**: the run ended with one sentence and status 1, or was killed, and
the same command completed it. Seconds are the largest additional time on two busy cores, with the start of a second
Python, Java and cluster job.

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
    """Return the page: a row for each fault, a column for each engine, and how it ended at all moments."""
    found = {(cell.fault, cell.moment, cell.engine): cell for cell in cells}
    lines = [f"| fault, at moments | {' | '.join(ENGINES.values())} |", "|---|" + "---|" * len(ENGINES)]
    for fault in dict.fromkeys(cell.fault for cell in found.values()):
        row = []
        for engine in ENGINES:
            tried = [cell for cell in found.values() if (cell.fault, cell.engine) == (fault, engine)]
            outcomes = ", ".join(dict.fromkeys(cell.outcome for cell in tried))
            row.append(f"{outcomes}, {max(cell.seconds for cell in tried):+.0f} s" if tried else "")
        moments = len({cell.moment for cell in found.values() if cell.fault == fault})
        lines.append(f"| {fault}, {moments} | {' | '.join(row)} |")
    ran = f"{len(found)} cases were run. An empty cell was not run, or the engine has no such process."
    return HEAD + "\n".join(lines) + f"\n\n{ran}\n"


def main() -> None:
    """Print the page."""
    sys.stdout.write(page(read_cells(sys.argv[1], Cell)))


if __name__ == "__main__":
    main()

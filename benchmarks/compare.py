"""What became slower from one run of the short table to another: ``python -m benchmarks compare OLD.json NEW.json``.

Times are compared as ratios to the baseline in the same turn, since load and machines differ from run to run. A row is
slower when its median grew by more than ``ALLOWED`` and half the range of the runs in either file, each as a share of
its median.
"""

import statistics
import sys
from pathlib import Path

from benchmarks.figures import FiguresError, Row, Run, read
from benchmarks.report import show

ALLOWED = 0.10


def main(arguments: list[str]) -> int:
    """Print each row's change; return 1 if any became slower, 2 for files that cannot be compared."""
    if len(arguments) != 2 or any(one.startswith("-") for one in arguments):
        print("compare takes two files: python -m benchmarks compare OLD.json NEW.json", file=sys.stderr)
        return 2
    try:
        old, new = (read(Path(one)) for one in arguments)
        lines, slower = compare(old, new)
    except FiguresError as error:
        print(error, file=sys.stderr)
        return 2
    print("\n".join(lines))
    return int(bool(slower))


def compare(old: Run, new: Run) -> tuple[list[str], list[str]]:
    """Return a line for each row, notes, and the names of rows that became slower. Raises FiguresError."""
    if old.data != new.data:
        raise FiguresError(f"The two files are of other texts, {old.data} and {new.data}; measure again on the same.")
    before, after = ({row.name: row for row in run.rows} for run in (old, new))
    both = [name for name in before if name in after]
    if not both:
        raise FiguresError("The two files have no row in common; measure both with the same rows.")
    lines, slower = [], []
    for name in both:
        words, worse = judged(before[name], after[name])
        lines.append(f"{name}: {words}")
        if worse:
            slower.append(name)
    for names, which in ((before.keys() - after, "old"), (after.keys() - before, "new")):
        lines += [f"{name}: only in the {which} file" for name in sorted(names)]
    if old.machine != new.machine:
        lines.append(f"Other machines: {old.machine}; and {new.machine}. Ratios differ by machine, too.")
    lines.append(f"Slower: {', '.join(slower) or 'none'}.")
    return lines, slower


def judged(old: Row, new: Row) -> tuple[str, bool]:
    """Return a row's change in words, and whether it became slower. Raises FiguresError."""
    if (old.unit, old.clock, old.baseline.what) != (new.unit, new.clock, new.baseline.what):
        raise FiguresError(f"Row {old.name} has another unit, clock or baseline in each file; measure again.")
    if (old.ours.items, old.baseline.items) != (new.ours.items, new.baseline.items):
        raise FiguresError(f"Row {old.name} was measured on inputs of other sizes in each file; measure again.")
    ratios = old.ratios(), new.ratios()
    before, after = map(statistics.median, ratios)
    spread = sum((max(runs) - min(runs)) / 2 / statistics.median(runs) for runs in ratios)
    grown, allowed = after / before - 1, ALLOWED + spread
    verdict = "slower" if grown > allowed else "faster" if 1 / (1 + grown) - 1 > allowed else "no change"
    ratio = f"{show(before)} to {show(after)} of the baseline's time"
    return f"{ratio}, {grown:+.0%} ({allowed:.0%} allowed): {verdict}", grown > allowed

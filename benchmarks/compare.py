"""What became slower from one run of the short table to another: ``python -m benchmarks compare OLD.json NEW.json``.

Times are compared as ratios to the baseline in the same turn, since load and machines differ from run to run. A row is
slower when its median grew by more than ``TIME`` and half the range of the runs in either file, each as a share of its
median. Instructions, if both files count them, are those of our work alone, compared with ``INSTRUCTIONS`` in the same
way. They hardly depend on load.
"""

import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.figures import FiguresError, Row, Run, read
from benchmarks.report import show

TIME, INSTRUCTIONS = 0.10, 0.03


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
        said = judged(before[name], after[name])
        lines.append(f"{name}: {'; '.join(words for words, _ in said)}")
        if any(worse for _, worse in said):
            slower.append(name)
    for names, which in ((before.keys() - after, "old"), (after.keys() - before, "new")):
        lines += [f"{name}: only in the {which} file" for name in sorted(names)]
    if old.machine.processor != new.machine.processor or old.machine.cores != new.machine.cores:
        lines.append(
            f"Other machines: {old.machine.cores} cores of {old.machine.processor}, {new.machine.cores} cores of "
            f"{new.machine.processor}; ratios differ by machine, too."
        )
    lines.append(f"Slower: {', '.join(slower) or 'none'}.")
    return lines, slower


def judged(old: Row, new: Row) -> list[tuple[str, bool]]:
    """Return the entries for time and instructions, and whether each became worse. Raises FiguresError."""
    if (old.unit, old.clock, old.baseline.what) != (new.unit, new.clock, new.baseline.what):
        raise FiguresError(f"Row {old.name} has another unit, clock or baseline in each file; measure again.")
    if (old.ours.items, old.baseline.items) != (new.ours.items, new.baseline.items):
        raise FiguresError(f"Row {old.name} was measured on inputs of other sizes in each file; measure again.")
    said = [change("time by the baseline's", old.ratios(), new.ratios(), TIME)]
    if old.ours.instructions and new.ours.instructions:
        said.append(change("instructions", [old.ours.instructions], [new.ours.instructions], INSTRUCTIONS))
    return said


def change(what: str, old: Sequence[float], new: Sequence[float], least: float) -> tuple[str, bool]:
    before, after = statistics.median(old), statistics.median(new)
    grown, allowed = after / before - 1, least + half_range(old) + half_range(new)
    verdict = "slower" if grown > allowed else "faster" if 1 / (1 + grown) - 1 > allowed else "no change"
    return f"{what} {show(before)} -> {show(after)}, {grown:+.0%} ({allowed:.0%} allowed): {verdict}", grown > allowed


def half_range(values: Sequence[float]) -> float:
    return (max(values) - min(values)) / 2 / statistics.median(values)

"""Run the named benchmarks, otherwise the short table; print tables, keep figures in ``benchmarks/results/``.

``bench [FILE]`` is the short table, ``compare OLD NEW`` lists what became slower between two of its files. With
``CORPUSVEIL_BENCH_SMALLEST=1`` each runs in seconds, on generated data: its figures mean nothing, but it runs.
"""

import sys
from collections.abc import Callable

from benchmarks import bench, compare, examples, ledger, opposites, passages, rehearsal, startup, tickets, utility
from benchmarks import names as people
from benchmarks.report import Skipped, Table, machine, save

BENCHMARKS: dict[str, Callable[..., list[Table]]] = {
    "startup": startup.run,
    "tiny": rehearsal.tiny,
    "rehearsal": rehearsal.run,
    "ledger": ledger.run,
    "names": people.run,
    "tickets": tickets.run,
    "utility": utility.run,
    "passages": passages.run,
    "examples": examples.run,
    "opposites": opposites.run,
}

COMMANDS = {"bench": bench.main, "compare": compare.main}
"""Benchmarks with their own arguments: a file to write; two to compare."""

WITH_OPTIONS = {"ledger", "names", "opposites", "passages", "tickets", "utility"}
"""Benchmarks that receive the arguments after the names, from the first option on."""


def main(arguments: list[str]) -> int:
    """Run the named benchmarks, else the short table; return 1 for a missed target, 2 for an unknown name."""
    command, *rest = arguments or ["bench"]
    if command in COMMANDS:
        return COMMANDS[command](rest)
    first = next((at for at, one in enumerate(arguments) if one.startswith("-")), len(arguments))
    names, options = arguments[:first], arguments[first:]
    if options and not (len(names) == 1 and WITH_OPTIONS.issuperset(names)):
        print(f"Options belong to one of {', '.join(sorted(WITH_OPTIONS))}, named alone.", file=sys.stderr)
        return 2
    if unknown := [name for name in names if name not in BENCHMARKS]:
        print(
            f"No benchmark is named {', '.join(unknown)}; there are {', '.join([*COMMANDS, *BENCHMARKS])}.",
            file=sys.stderr,
        )
        return 2
    print(machine(), flush=True)
    missed = False
    for name in names:
        try:
            tables = BENCHMARKS[name](options) if name in WITH_OPTIONS else BENCHMARKS[name]()
        except Skipped as reason:
            print(f"\n## {name}\n\nSkipped: {reason}", flush=True)
            continue
        for table in tables:
            print(f"\n{table}", flush=True)
        save(name, tables)
        missed |= any(not table.met for table in tables)
    return int(missed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

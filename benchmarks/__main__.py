"""Run the named benchmark, otherwise the short table; print tables.

With ``CORPUSVEIL_BENCH_SMALLEST=1`` each runs in seconds, on generated data: its figures mean nothing, but it runs.
"""

import sys
from collections.abc import Callable, Sequence

from benchmarks import bench, labels, ledger, names, startup, units
from benchmarks.report import Skipped, Table, machine

BENCHMARKS: dict[str, Callable[[Sequence[str]], list[Table]]] = {
    "bench": bench.run,
    "startup": startup.run,
    "ledger": ledger.run,
    "labels": labels.run,
    "names": names.run,
    "units": units.run,
}


def main(arguments: list[str]) -> int:
    """Run a benchmark with its options, else the short table; return 2 for an unknown name."""
    command, *rest = arguments or ["bench"]
    if command not in BENCHMARKS:
        print(f"No benchmark is named {command}; there are {', '.join(BENCHMARKS)}.", file=sys.stderr)
        return 2
    print(machine(), flush=True)
    try:
        tables = BENCHMARKS[command](rest)
    except Skipped as reason:
        print(f"Skipped: {reason}", flush=True)
        return 0
    for table in tables:
        print(f"\n{table}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

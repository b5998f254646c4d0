"""Run the named benchmarks, otherwise the short table; print tables, keep figures in ``benchmarks/results/``.

``bench [FILE]`` is the short table, ``compare OLD NEW`` lists what became slower between two of its files.
"""

import sys
from collections.abc import Callable

from benchmarks import (
    approximate,
    balance,
    bench,
    cmp,
    collocations,
    compare,
    corpus,
    cost,
    denoise,
    diffractor,
    engines,
    examples,
    expressions,
    formats,
    ledger,
    length,
    lists,
    mechanisms,
    model,
    nw,
    optimum,
    quality,
    released,
    rungs,
    scaling,
    space,
    startup,
    strategies,
    tiny,
    utility,
)  # fmt: skip
from benchmarks.report import Skipped, Table, machine, save

BENCHMARKS: dict[str, Callable[..., list[Table]]] = {
    "corpus": corpus.run,
    "engines": engines.run,
    "expressions": expressions.run,
    "formats": formats.run,
    "space": space.run,
    "lists": lists.run,
    "nw": nw.run,
    "diffractor": diffractor.run,
    "cmp": cmp.run,
    "mechanisms": mechanisms.run,
    "approximate": approximate.run,
    "collocations": collocations.run,
    "quality": quality.run,
    "cost": cost.run,
    "denoise": denoise.run,
    "model": model.run,
    "tiny": tiny.run,
    "scaling": scaling.run,
    "startup": startup.run,
    "strategies": strategies.run,
    "balance": balance.run,
    "optimum": optimum.run,
    "utility": utility.run,
    "rungs": rungs.run,
    "examples": examples.run,
    "released": released.run,
    "ledger": ledger.run,
    "length": length.run,
}

COMMANDS = {"bench": bench.main, "compare": compare.main}
"""Benchmarks with their own arguments: a file to write; two to compare."""

WITH_OPTIONS = {"ledger", "utility"}
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

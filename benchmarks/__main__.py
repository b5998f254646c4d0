"""Run benchmarks: those named, or all but the longest; print tables, keep figures in ``benchmarks/results/``."""

import sys
from collections.abc import Callable

from benchmarks import (
    approximate,
    balance,
    cmp,
    collocations,
    corpus,
    cost,
    denoise,
    diffractor,
    engines,
    formats,
    ledger,
    lists,
    mechanisms,
    model,
    nw,
    optimum,
    quality,
    released,
    scaling,
    space,
    strategies,
    tiny,
    utility,
)  # fmt: skip
from benchmarks.report import Skipped, Table, machine, save

BENCHMARKS: dict[str, Callable[..., list[Table]]] = {
    "corpus": corpus.run,
    "engines": engines.run,
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
    "strategies": strategies.run,
    "balance": balance.run,
    "optimum": optimum.run,
    "utility": utility.run,
    "released": released.run,
    "ledger": ledger.run,
}

ONLY_NAMED = {
    "denoise", "model", "quality", "scaling", "cost", "tiny", "strategies", "balance", "optimum", "utility", "released",
    "ledger",
}  # fmt: skip
"""Take between some minutes and an hour."""


WITH_OPTIONS = {"utility"}
"""Take what stands behind the names, from the first option on."""


def main(arguments: list[str]) -> int:
    """Run the named benchmarks, else all but the longest; return 1 for a missed target, 2 for an unknown name."""
    first = next((at for at, one in enumerate(arguments) if one.startswith("-")), len(arguments))
    names, options = arguments[:first], arguments[first:]
    if options and not (len(names) == 1 and WITH_OPTIONS.issuperset(names)):
        print(f"Options belong to one of {', '.join(sorted(WITH_OPTIONS))}, named alone.", file=sys.stderr)
        return 2
    if unknown := [name for name in names if name not in BENCHMARKS]:
        print(f"No benchmark is named {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}.", file=sys.stderr)
        return 2
    print(machine(), flush=True)
    missed = False
    for name in names or [name for name in BENCHMARKS if name not in ONLY_NAMED]:
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

"""``python -m attacks [NAME...] [--scale X] [--write SECURITY.md]``: attack; status 1 on a break."""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from attacks.attempt import Attempt

NAMES = ("matrices", "documents", "passages")
BEGIN, END = "<!-- attacks: written by make attacks -->", "<!-- end of attacks -->"


def table(attempts: Mapping[str, Attempt]) -> str:
    """Return a row for each count, as Markdown."""
    lines = ["| attack | tried | times | broke |", "|---|---|---|---|"]
    for name, attempt in attempts.items():
        for what, count in attempt.counts.items():
            lines.append(f"| {name} | {what} | {count:,} | {len(attempt.broken)} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m attacks", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(NAMES)}; all by default")
    parser.add_argument("--scale", type=float, default=1.0, help="below 1: fewer samples and epsilons")
    parser.add_argument("--write", type=Path, help="put the table between the marks of this file")
    given = parser.parse_args()
    attempts: dict[str, Attempt] = {}
    for name in given.names or NAMES:
        began = time.monotonic()
        attempts[name] = importlib.import_module(f"attacks.{name}").attack(given.scale)
        attempt = attempts[name]
        counts = ", ".join(f"{count:,} {what}" for what, count in attempt.counts.items())
        print(f"{name}: {counts}; {len(attempt.broken)} broke; {time.monotonic() - began:.0f} s", flush=True)
        for sentence in attempt.broken[:20]:
            print(f"  BROKEN: {sentence}")
    if given.write is not None:
        text = given.write.read_text(encoding="utf-8")
        before, _, rest = text.partition(BEGIN)
        _, _, after = rest.partition(END)
        given.write.write_text(f"{before}{BEGIN}\n{table(attempts)}\n{END}{after}", encoding="utf-8")
    return int(any(attempt.broken for attempt in attempts.values()))


if __name__ == "__main__":
    sys.exit(main())

"""Building a space: read, one exact greedy list, digest, save."""

from benchmarks import inputs
from benchmarks.job import fresh
from benchmarks.report import Table

SECONDS = 40


def run() -> list[Table]:
    table = Table(
        f"A space with one greedy list; {'minilm-words' if inputs.data() else 'generated vectors'}",
        ("words", "dimensions", "read s", "list, digest s", "whole s", "CPU s", "peak MiB"),
    )
    for _ in range(2):
        done = fresh("space", vectors=inputs.vectors())
        table.rows.append(
            (done["words"], done["dimensions"], done["read"], done["list and digest"], done["wall"], done["cpu"],
             round(done["peak_mb"]))
        )  # fmt: skip
    best = min(row[4] for row in table.rows)
    table.target(f"{best:.1f} s, {SECONDS} allowed", met=best <= SECONDS)
    return [table]

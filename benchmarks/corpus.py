"""The whole job, ``.json.gz`` to ``.json.gz``, compared with a plain copy by the same reader and writer."""

import statistics
from typing import Any

from benchmarks import inputs
from benchmarks.job import fresh
from benchmarks.report import Table

REPEATS = 1 if inputs.SMALLEST else 3


def run() -> list[Table]:
    shards = inputs.shards()
    table = Table(
        f"Whole job, one worker, start-up apart; ring-geometric, ε = 1; {inputs.origin()}",
        ("work", "shards", "runs", "M words", "words/s", "tokens/s", "CPU s", "words/CPU s", "peak MiB"),
    )
    runs: dict[tuple[str, int], list[dict[str, Any]]] = {
        (kind, n): [] for n in (1, 3, len(shards)) for kind in ("copy", "privatize")
    }
    for n, repeats in ((1, REPEATS), (3, REPEATS), (len(shards), 1)):
        for _ in range(repeats):  # in turns, so that other load affects both
            runs["copy", n].append(fresh("copy", shards=shards[:n]))
            runs["privatize", n].append(fresh("privatize", at=inputs.space(), shards=shards[:n]))
    for (kind, n), done in runs.items():
        words = inputs.words(shards[:n])
        wall, cpu = (statistics.median(one[name] for one in done) for name in ("wall", "cpu"))
        tokens = done[0].get("tokens", float("nan")) / wall
        peak = max(one["peak_mb"] for one in done)
        table.rows.append((kind, n, len(done), words / 1e6, words / wall, tokens, cpu, words / cpu, round(peak)))
    table.notes.append("Words are split at white space; tokens are ours, punctuation included.")
    return [table, stages(shards[:3])]


def stages(shards: list[str]) -> Table:
    """Profile the job once more, with a clock on each of its stages."""
    done = fresh("privatize", at=inputs.space(), shards=shards, profile=True)
    words = inputs.words(shards)
    table = Table("Where the time goes, 3 shards", ("stage", "share", "CPU s", "M words/s alone"))
    parts = {**done["stages"], "manifest, planning": done["cpu"] - sum(done["stages"].values())}
    for stage, seconds in sorted(parts.items(), key=lambda part: -part[1]):
        table.rows.append((stage, f"{seconds / done['cpu']:.1%}", seconds, words / seconds / 1e6))
    table.notes.append(f"{words / done['cpu'] / 1e6:.2f} M words a CPU second with the clocks on.")
    return table

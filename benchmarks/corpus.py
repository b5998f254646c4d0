"""The whole job, ``.json.gz`` to ``.json.gz``, compared with a plain copy by the same reader and writer."""

import statistics

from benchmarks import inputs
from benchmarks.job import fresh
from benchmarks.report import Table

REPEATS = 3
WORDS_PER_SECOND, COPIES, PEAK_MB, GROWTH = 3e6, 8, 1024, 1.1


def run() -> list[Table]:
    shards = inputs.shards()
    table = Table(
        f"Whole job, one worker, start-up apart; ring-geometric, ε = 1; {inputs.origin()}",
        ("work", "shards", "runs", "M words", "words/s", "tokens/s", "CPU s", "words/CPU s", "peak MiB"),
    )
    runs = {(kind, n): [] for n in (1, 3, len(shards)) for kind in ("copy", "privatize")}
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
    judge(table, runs, inputs.words(shards[:3]))
    return [table, stages(shards[:3])]


def judge(table: Table, runs: dict[tuple[str, int], list[dict[str, float]]], words: int) -> None:
    """Compare the medians on three shards, and the memory of all runs, with the targets."""

    def median(kind: str, name: str) -> float:
        return statistics.median(one[name] for one in runs[kind, 3])

    rate, ratio = words / median("privatize", "wall"), median("privatize", "wall") / median("copy", "wall")
    by_cpu = median("privatize", "cpu") / median("copy", "cpu")
    rates = [words / one["wall"] / 1e6 for one in runs["privatize", 3]]
    peaks = {n: max(one["peak_mb"] for one in done) for (kind, n), done in runs.items() if kind == "privatize"}
    few, many = peaks[min(peaks)], peaks[max(peaks)]
    table.target(f"{rate / 1e6:.2f} M words/s on 3 shards, 3 M wanted", met=rate >= WORDS_PER_SECOND)
    table.target(f"{ratio:.2f} times a plain copy (CPU seconds {by_cpu:.2f}), 8 allowed", met=ratio <= COPIES)
    table.target(f"peak memory {many:,.0f} MiB, 1,024 allowed", met=max(peaks.values()) <= PEAK_MB)
    table.target(f"memory flat: {many / few:.2f} times that of 1 shard on {max(peaks)}", met=many <= GROWTH * few)
    table.notes.append(f"Runs on 3 shards: {', '.join(f'{one:.2f}' for one in rates)} M words/s.")
    table.notes.append("Words are parted by white space; tokens are ours, punctuation included.")
    start_up = statistics.median(one["start_up"] for one in runs["privatize", 3])
    table.notes.append(f"Start-up, not counted above: {start_up:.1f} s (space, tables, machine code from its cache).")


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

"""The same shards on every engine, by the command line: wall time without start-up, and equal digests."""

import contextlib
import gzip
import hashlib
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import cluster, inputs
from benchmarks.report import Skipped, Table
from corpusveil.errors import UserError

COMMAND = [sys.executable, "-m", "corpusveil"]
ROUNDS = 2
"""The fastest run counts: engines differ by less than the time that other work on the machine adds."""
SUBMIT = str(inputs.ROOT / "corpusveil" / "jobs" / "submit.py")


def run() -> list[Table]:
    shards = inputs.shards()
    table = Table(
        f"{len(shards)} shards through every engine, ε = 1; {inputs.origin()}",
        ("engine", "wall s", "M words/s, start-up included", "of it start-up s", "release digest"),
    )
    digests: set[str] = set()
    with tempfile.TemporaryDirectory(dir=inputs.work()) as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        tiny = tiny_shards(folder / "tiny", len(shards))
        for engine, command, options in ways(folder, stack):
            start_up = min(privatize(command, options, tiny, folder / "tiny-out")[0] for _ in range(ROUNDS))
            done = [privatize(command, options, shards, folder / "out") for _ in range(ROUNDS)]
            wall, digest = min(done)
            digests |= {digest for _, digest in done}
            rate = inputs.words(shards) / 1e6 / wall
            table.rows.append((engine, wall, rate, start_up, digest[:16]))
    table.target(
        f"{len(table.rows)} engines, {len(digests)} digest of {len(shards)} shards over {ROUNDS} rounds",
        met=len(digests) == 1,
    )
    table.notes.append("Digest: SHA-256 over every file of the release, bytes as they lie there, and their names.")
    table.notes.append(
        f"Start-up: wall time of the same command on as many shards of one short document each. Best of {ROUNDS}."
    )
    return [table]


def ways(folder: Path, stack: contextlib.ExitStack) -> list[tuple[str, list[str], list[str]]]:
    """Return the engines that this machine has, as name, command and options; the cluster is started on the way."""
    found = [(f"local, {n} process{'es' * (n > 1)}", COMMAND, ["--workers", str(n)]) for n in (1, 2)]
    with contextlib.suppress(ImportError, UserError):  # no PySpark, no Java
        submit = [str(cluster.bin_folder() / "spark-submit"), "--master"]
        address = stack.enter_context(cluster.standalone(folder))
        found.append(("Spark local[2]", COMMAND, ["--engine", "spark", "--workers", "2"]))
        found.append(("Spark cluster, 2 workers", [*submit, address, SUBMIT], ["--engine", "spark"]))
    with contextlib.suppress(ImportError):
        import apache_beam  # noqa: F401 - is it here?

        for n in (1, 2):
            name = f"Beam FnApiRunner, {n} process{'es' * (n > 1)}"
            found.append((name, COMMAND, ["--engine", "beam", "--workers", str(n)]))
    return found


def tiny_shards(folder: Path, count: int) -> list[str]:
    folder.mkdir()
    for number in range(count):
        text = json.dumps({"text": f"The {number} rivers rise in June."}).encode() + b"\n"
        (folder / f"c4-train.{number:05d}-of-{count:05d}.json.gz").write_bytes(gzip.compress(text, mtime=0))
    return sorted(str(path) for path in folder.iterdir())


def privatize(command: list[str], options: list[str], shards: list[str], output: Path) -> tuple[float, str]:
    """Run one command line; return its wall time and the digest of the release, which is deleted again."""
    fixed = ["--space", inputs.space(), "--mechanism", "ring-geometric", "--epsilon", "1", "--key", inputs.key()]
    with tempfile.TemporaryDirectory(dir=output.parent) as records:
        began = time.perf_counter()
        done = subprocess.run(
            [*command, "privatize", *shards, *fixed, "--output", str(output), "--records", records, *options],
            cwd=inputs.ROOT, env=cluster.environment(), capture_output=True, text=True, check=False,
        )  # fmt: skip
        took = time.perf_counter() - began
    if done.returncode:
        raise Skipped(f"{' '.join(options)} ended with status {done.returncode}: {done.stderr.strip()[-300:]}")
    digest = digest_and_delete(output)
    return took, digest


def digest_and_delete(output: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(path for path in output.rglob("*") if path.is_file()):
        digest.update(f"{path.relative_to(output).as_posix()} {path.stat().st_size}\n".encode() + path.read_bytes())
        path.unlink()
    for path in sorted(output.rglob("*"), reverse=True):
        path.rmdir()
    output.rmdir()
    return digest.hexdigest()

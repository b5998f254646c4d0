"""The peers' own inputs and drivers, run unchanged, in a separate environment.

``CORPUSVEIL_BENCH_PEERS`` names the folder of drivers (default: ``../shared/bench/peers`` beside the project).
"""

import functools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import corpusveil as cv
from benchmarks import inputs
from benchmarks.report import Skipped

PACKAGES = ("dp-diffractor", "psutil", "nltk")
READY = "ready-2"


@functools.cache
def drivers() -> Path:
    folder = Path(os.environ.get("CORPUSVEIL_BENCH_PEERS", inputs.ROOT.parent / "shared" / "bench" / "peers"))
    if not (folder / "make_inputs.py").is_file():
        raise Skipped("the peers' drivers are not on this machine (CORPUSVEIL_BENCH_PEERS names their folder).")
    return folder.resolve()


@functools.cache
def python() -> str:
    """Return the interpreter of an environment with the peers from PyPI in it, made where there is none."""
    drivers()
    folder = inputs.work() / "peer"
    if not (folder / READY).exists():
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", *PACKAGES]
        for command in ([sys.executable, "-m", "venv", str(folder)], pip):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise Skipped(f"the peers could not be installed: {(done.stderr or done.stdout).strip()[-300:]}")
        (folder / READY).touch()
    return str(folder / "bin" / "python")


@functools.cache
def folder() -> Path:
    """Return the folder of the peers' inputs (620 MB, from fixed seeds), made where there is none."""
    made = inputs.work() / "peer-inputs"
    if not (made / "MANIFEST.json").exists():
        drive("make_inputs.py")
    return made


def drive(*arguments: str) -> list[dict[str, Any]]:
    """Run one of the peers' drivers; return the rows that it writes."""
    results = inputs.work() / "peer-results"
    written = results / f"{Path(arguments[0]).stem}.jsonl"
    written.unlink(missing_ok=True)
    interpreter = python()
    vocabulary = next((inputs.work() / "peer").rglob("diffractor/data/vocab.txt"))
    paths = {"BENCH_DATA": inputs.work() / "peer-inputs", "BENCH_OUT": results, "BENCH_VOCAB": vocabulary}
    quiet = {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [interpreter, *arguments], cwd=drivers(), env={**os.environ, **{k: str(v) for k, v in paths.items()}, **quiet},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise Skipped(f"the peers' {arguments[0]} failed: {done.stderr.strip()[-300:]}")
    return [json.loads(line) for line in written.read_text().splitlines()] if written.exists() else []


@functools.cache
def space(lists: int = 1) -> str:
    """Return where the space of the peers' embedding is saved; of five lists: that of its five variants."""
    made = inputs.work() / f"peer-space-{lists}"
    if not (made / "_artifact.json").exists():
        names = ["emb.w2v.txt"] if lists == 1 else [f"emb_v{k}.w2v.txt" for k in range(1, lists + 1)]
        cv.build_space([cv.read_vectors(str(folder() / name)) for name in names]).save(str(made))
    return str(made)


def results(peer: str, mechanism: str, lists: int = 1) -> dict[float, dict[str, Any]]:
    """Return the kept rows of one peer and mechanism by epsilon."""
    kept = json.loads((drivers() / "results.json").read_text(encoding="utf-8"))["measurements"]
    rows = [row for row in kept if row["peer"] == peer and row["mechanism"] == mechanism]
    return {row["epsilon"]: row for row in rows if row.get("lists", 1) == lists}

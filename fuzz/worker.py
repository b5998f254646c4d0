"""The fuzzing process: it records each finding once and continues; only a crash, a hang or a full memory ends it."""

from __future__ import annotations

import hashlib
import re
import sys
import tempfile
import traceback
from pathlib import Path

import atheris

HERE = Path(__file__).parents[1]
COMPILED = [
    ".".join(path.relative_to(HERE).with_suffix("").parts)
    for path in (HERE / "corpusveil").rglob("*.py")
    if {"numba", "compiled"} & set(re.findall(r"\w+", path.read_text(encoding="utf-8")))
]
"""Modules that numba compiles, which can't be instrumented."""

with atheris.instrument_imports(include=["corpusveil", "tomllib"], exclude=COMPILED):
    from fuzz.readers import READERS


def place(error: BaseException) -> str:
    """Return the identity of a finding: the kind of error, its text if it is ours, and where it was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "corpusveil" in frame.filename.split("/")[:-1] or "/fuzz/" in frame.filename]
    at = [f"{Path(frame.filename).name}:{frame.lineno}" for frame in ours[-3:]]
    text = str(error) if type(error).__name__ == "Finding" else ""
    return " ".join([type(error).__name__, text, *at])


def main(name: str, findings: str, *options: str) -> None:
    """Fuzz one reader; the options are libFuzzer's."""
    reader = READERS[name]
    known = {path.stem.rpartition("-")[2] for path in Path(findings).glob(f"{name}-*.txt")}
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as made:
        folder = Path(made)

        def check(data: bytes) -> None:
            try:
                reader.check(data, folder)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
                mark = hashlib.sha256(place(error).encode()).hexdigest()[:10]
                if mark not in known:
                    known.add(mark)
                    stem = Path(findings) / f"{name}-{mark}"
                    stem.with_suffix(".bin").write_bytes(data)
                    told = "".join(traceback.format_exception(error))
                    stem.with_suffix(".txt").write_text(f"{place(error)}\n\n{told}", errors="backslashreplace")

        atheris.Setup([sys.argv[0], *options], check)
        atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:])

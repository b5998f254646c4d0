"""``python -m fuzz READER... [--seconds N]``: fuzz readers, and report findings; ``--repeat FILE`` tries one input."""

from __future__ import annotations

import argparse
import contextlib
import re
import resource
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

from fuzz.invariant import SAID, need
from fuzz.readers import READERS, found

HOME = Path(".fuzz")
SECONDS_AN_INPUT = 10
SECONDS_TO_END = 180
"""For imports, and for the end: libFuzzer may end the process while Arrow waits for Python: neither goes on."""
MEGABYTES = 1024
LONGEST = 8192
MOST_MEMORY = 8 << 30
"""Of address space, on seeds: an input that asks for a terabyte is refused, and fills no memory."""
_DONE = re.compile(rb"#(\d+)\s")


def fuzz(name: str, seconds: int) -> int:
    """Fuzz one reader for this time; return the number of findings."""
    corpus, findings = HOME / "corpus" / name, HOME / "findings"
    for folder in (corpus, findings):
        folder.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(READERS[name].seeds()):
        (corpus / f"seed-{number:03d}").write_bytes(seed)
    before = set(findings.glob(f"{name}-*"))
    executions, began = 0, time.monotonic()
    while (left := int(seconds - (time.monotonic() - began))) > 0:
        options = [
            f"-max_total_time={left}", f"-timeout={SECONDS_AN_INPUT}", f"-rss_limit_mb={MEGABYTES}",
            f"-max_len={LONGEST}", "-print_final_stats=1", "-verbosity=1", f"-artifact_prefix={findings}/{name}-",
        ]  # fmt: skip
        command = [sys.executable, "-m", "fuzz.worker", name, str(findings), *options, str(corpus)]
        log = HOME / f"{name}.log"
        with log.open("wb") as sink, contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run(command, stdout=sink, stderr=sink, check=False, timeout=left + SECONDS_TO_END)
        said = log.read_bytes()
        executions += max((int(found) for found in _DONE.findall(said)), default=0)
        if b"INITED" not in said:
            print(f"{name}: could not begin: {log} says why", file=sys.stderr)
            return 1
    told = sorted(path for path in set(findings.glob(f"{name}-*")) - before if path.suffix != ".bin")
    print(f"{name}: {executions:,} inputs, {time.monotonic() - began:.0f} s, findings: {told}", flush=True)
    return len(told)


def on_seeds(name: str) -> int:
    """Check a reader on its own seeds, and on what was found before; return the number of findings."""
    findings = 0
    before = [(data, said) for reader, data, said in found() if reader == name]
    seeds = [*((seed, "") for seed in READERS[name].seeds()), *before]
    for number, (seed, said) in enumerate(seeds):
        with tempfile.TemporaryDirectory() as folder:
            try:
                SAID.clear()
                READERS[name].check(seed, Path(folder))
                need(said in " ".join(SAID), f"no sentence with {said!r}")
            except Exception:  # noqa: BLE001 - whatever it is, it is a finding
                print(f"{name}, seed {number}:\n{traceback.format_exc()}", file=sys.stderr)
                findings += 1
    return findings


def main() -> int:
    """Run the readers that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("reader", nargs="+", choices=[*READERS, "all"])
    parser.add_argument("--seconds", type=int, default=60, help="for each reader")
    parser.add_argument("--repeat", type=Path, help="check this one input, with a traceback")
    parser.add_argument("--seeds", action="store_true", help="check the readers' own seeds, and fuzz nothing")
    given = parser.parse_args()
    if given.repeat is not None:
        with tempfile.TemporaryDirectory() as folder:
            READERS[given.reader[0]].check(given.repeat.read_bytes(), Path(folder))
        return 0
    names = list(READERS) if "all" in given.reader else given.reader
    if given.seeds:
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
        return min(1, sum(map(on_seeds, names)))
    return min(1, sum(fuzz(name, given.seconds) for name in names))


if __name__ == "__main__":
    sys.exit(main())

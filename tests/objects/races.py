"""What several processes do at once to one store; in a module of its own, for spawned processes import it."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from corpusveil.storage import files, home


def create(url: str, who: int, threads: int, at: float) -> list[bool]:
    """Create one file with several threads, all from ``at`` (seconds since the epoch) on; return who did."""
    gate = threading.Barrier(threads)

    def one(number: int) -> bool:
        files.exists(url)  # connects
        gate.wait()
        time.sleep(max(0.0, at - time.time()))
        return files.create_bytes(url, f"{who}/{number}".encode())

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(one, range(threads)))


def fetch(url: str, names: list[str], digest: str) -> Path:
    """Fetch a folder into this machine's cache."""
    return home.local_folder(url, names, digest)

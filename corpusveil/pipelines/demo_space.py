"""A space and a language model of bundled public text, shipped with the package, good enough to try with."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from corpusveil.ownership import refuse_others
from corpusveil.pipelines.settings.fields import DEMO_URL
from corpusveil.spaces import load_space
from corpusveil.storage import home

if TYPE_CHECKING:
    from corpusveil.spaces import Space

ARCHIVE = Path(__file__).with_name("demo.zip")
"""Made by ``scripts/demo_data.py``; the same bytes, and so the same figures, on every machine."""


def demo_space() -> Space:
    """Return a space of 14,424 words of news and encyclopedia articles that gensim ships.

    The first call unpacks it into the user's cache folder. It has 50 dimensions, public counts and one balanced list,
    so every mechanism works on it. It is small: for work that counts, build a space of more text, or of published
    vectors.

    Raises UserError where other users may write to the cache folder.
    """
    return load_space(demo_path("space"))


def demo_path(which: str) -> str:
    """Return the folder of the ``space`` or the ``model``, unpacked once; other processes wait meanwhile."""
    digest = hashlib.sha256(ARCHIVE.read_bytes()).hexdigest()
    folder = home.cache_folder(f"demo-{digest[:16]}")
    target = folder / which
    if not target.exists():
        with open(folder / "lock", "w") as lock, zipfile.ZipFile(ARCHIVE) as archive:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not target.exists():
                part = folder / "part"
                shutil.rmtree(part, ignore_errors=True)  # left by a process that was killed
                archive.extractall(part, [name for name in archive.namelist() if name.startswith(f"{which}/")])
                (part / which).rename(target)
    refuse_others(target)
    return str(target)


def located(address: str, which: str) -> str:
    """Return an address of settings, or the folder of the demo's ``space`` or ``model`` where it is the demo's."""
    return demo_path(which) if address == DEMO_URL else address

"""Spaces by name: archives that packages install, found by their entry points and unpacked once.

The package that a line names holds ``space.zip`` and ``space.zip.sha256``, by ``sha256sum`` (CONTRIBUTING.md).
The archive has a folder ``space``, and perhaps ``counts`` and ``collocations`` of the same text::

    [project.entry-points."corpusveil.spaces"]
    en = "corpusveil_space_en"
    en-collocations = "corpusveil_space_en.collocations"
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import zipfile
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from corpusveil.errors import ArtifactError, MissingError, PackageError, nearest
from corpusveil.ownership import refuse_others
from corpusveil.registry import Registry
from corpusveil.storage import files, home

SPACES: Registry[Any] = Registry("space")
SCHEME = "space://"
"""The beginning of an address that is a name wherever it is read, whatever folders are there."""
ENGLISH, DEMO = "en", "demo"
"""The space of bundled text (``spaces/en``), and its other name."""
ARCHIVE, EXCLUDED = "space.zip", "excluded.txt"
COMMANDS = {"space": "space", "counts": "count", "collocations": "score", "store": "store"}
"""The command that makes each folder."""
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def is_name(address: Any, folder: str = "") -> bool:
    """Say whether an address is a name, installed or not; a folder of the name, relative to ``folder``, comes first."""
    is_plain = isinstance(address, str) and _NAME.fullmatch(address) is not None
    return is_plain and not files.exists(os.path.join(folder, address))


def located(address: str, which: str) -> str:
    """Return the folder ``which``, one of ``COMMANDS``, that an address names, unpacked once; others unchanged.

    Other processes wait meanwhile. Raises UserError for a name that no package, or more than one, provides; for a
    damaged archive or one without such a folder; and where other users may write to the cache.
    """
    if not address.startswith(SCHEME) and not is_name(address):
        return address
    asked = address.removeprefix(SCHEME)
    name = ENGLISH if asked == DEMO else asked
    if _NAME.fullmatch(name) is None:
        raise MissingError(f"{asked}: no installed {which} has such a name; give one such as {ENGLISH}.")
    if (point := SPACES.point(name)) is None:
        published = name.partition("-")[0] == ENGLISH  # to name a package that nobody published would invite anybody
        known = [each.removesuffix(f"-{which}") for each in SPACES.names()]
        asked = asked.removesuffix(f"-{which}")
        page = {"store": "passages", "collocations": "collocations"}.get(which, "languages")
        more = f", or pip install corpusveil-space-{ENGLISH}" if published else f" (docs/{page}.md)"
        raise MissingError(
            f"{asked}: there is no folder and no installed {which} of this name; make such a folder with 'corpusveil "
            f"{COMMANDS[which]}'{more}{nearest(asked, known) or '.'}"
        )
    try:
        archive = resources.files(point.value) / ARCHIVE
        digest = bytes.fromhex((resources.files(point.value) / f"{ARCHIVE}.sha256").read_text("ascii")[:64]).hex()
        archive.open("rb").close()
    except (ImportError, OSError, TypeError, ValueError) as error:
        raise PackageError(
            f"space {name}: {point.value} has no readable {ARCHIVE} with its SHA-256 ({type(error).__name__}); install "
            "its package again."
        ) from None
    target = home.cache_folder("spaces", f"{name}-{digest[:16]}") / which
    if not target.exists():
        _unpack(archive, digest, target)
    refuse_others(target)
    return str(target)


def name_of(url: str | None) -> str | None:
    """Return the name of the installed space that was opened at an address, as an address; None for any other."""
    folder = None if url is None else Path(url).parent
    if folder is None or folder.parent != home.cache_folder("spaces"):
        return None
    return SCHEME + folder.name.rpartition("-")[0]


def excluded_words(url: str | None) -> frozenset[str]:
    """Return the words that the package of an opened space left out as offensive (``excluded.txt``); or none."""
    name = name_of(url)
    point = SPACES.point((name or "").removeprefix(SCHEME))
    if point is not None and (listed := resources.files(point.value) / EXCLUDED).is_file():
        return frozenset(listed.read_text("utf-8").split())
    return frozenset()


def _unpack(archive: Traversable, digest: str, target: Path) -> None:
    with open(target.with_name("lock"), "w") as lock, archive.open("rb") as file:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if target.exists():
            return
        if hashlib.file_digest(file, "sha256").hexdigest() != digest or not zipfile.is_zipfile(file):  # type: ignore[arg-type]
            raise ArtifactError(f"{archive}: this archive is damaged; install its package again.")
        part = target.with_name("part")
        shutil.rmtree(part, ignore_errors=True)  # left by a process that was killed
        with zipfile.ZipFile(file) as zipped:
            names = zipped.namelist()
            own = [name for name in names if name.startswith(f"{target.name}/")]
            if not own:
                raise MissingError(
                    f"{archive}: this package has no {target.name}; make one with 'corpusveil {COMMANDS[target.name]}'."
                )
            zipped.extractall(part, own)
        (part / target.name).chmod(0o700)  # whatever the umask
        (part / target.name).rename(target)
        shutil.rmtree(part)

"""Spaces and language models by name: archives that packages install, found by their entry points and unpacked once.

The package that a line names holds ``space.zip``, with the folders ``space`` and ``model``, and ``space.zip.sha256``,
as ``sha256sum`` writes it (docs/spaces.md)::

    [project.entry-points."corpusveil.spaces"]
    en = "corpusveil_space_en"
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import zipfile
from importlib import metadata, resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Literal

from corpusveil.errors import ArtefactError, NotMadeError, PackageError
from corpusveil.ownership import refuse_others
from corpusveil.storage import files, home

GROUP = "corpusveil.spaces"
SCHEME = "space://"
"""The beginning of an address that is a name wherever it is read, whatever folders are there."""
ENGLISH, DEMO = "en", "demo"
"""The space of bundled text (``spaces/en``), and its other name."""
ARCHIVE = "space.zip"
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def is_name(address: Any, folder: str = "") -> bool:
    """Say whether an address is a name, installed or not; a folder of the name, relative to ``folder``, comes first."""
    is_plain = isinstance(address, str) and _NAME.fullmatch(address) is not None
    return is_plain and not files.exists(os.path.join(folder, address))


def located(address: str, which: Literal["space", "model"]) -> str:
    """Return the folder of the space or model that an address names, unpacked once; any other address unchanged.

    Other processes wait meanwhile. Raises UserError for a name that no package, or more than one, provides; for a
    damaged archive or one without a model; and where other users may write to the cache.
    """
    if not address.startswith(SCHEME) and not is_name(address):
        return address
    asked = address.removeprefix(SCHEME)
    name = ENGLISH if asked == DEMO else asked
    if not is_name(name):
        raise NotMadeError(f"{asked}: no installed {which} has such a name; give one such as {ENGLISH}.")
    points = metadata.entry_points(group=GROUP, name=name)
    if not points:
        raise NotMadeError(
            f"{asked}: there is neither a folder nor an installed {which} of this name; make one with 'corpusveil "
            f"{which}', or pip install corpusveil-space-{name}."
        )
    if len(points) > 1:
        packages = ", ".join(sorted(point.dist.name for point in points if point.dist))
        raise PackageError(f"Several packages provide a space {name} ({packages}); uninstall all but one of them.")
    (point,) = points
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


def ships_model(address: str) -> bool:
    """Say whether an address names a space whose package has a language model as well, or is not installed."""
    if not address.startswith(SCHEME) and not is_name(address):
        return False
    asked = address.removeprefix(SCHEME)
    try:
        return bool(located(address, "model"))
    except NotMadeError:
        return not metadata.entry_points(group=GROUP, name=ENGLISH if asked == DEMO else asked)


def shipped_beside(url: str | None) -> str | None:
    """Return the address of the language model of the package that an opened space is from; None without one."""
    folder = None if url is None else Path(url).parent
    if folder is None or folder.parent != home.cache_folder("spaces"):
        return None
    name = SCHEME + folder.name.rpartition("-")[0]
    return name if ships_model(name) else None


def _unpack(archive: Traversable, digest: str, target: Path) -> None:
    with open(target.with_name("lock"), "w") as lock, archive.open("rb") as file:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if target.exists():
            return
        if hashlib.file_digest(file, "sha256").hexdigest() != digest or not zipfile.is_zipfile(file):  # type: ignore[arg-type]
            raise ArtefactError(f"{archive}: this archive is damaged; install its package again.")
        with zipfile.ZipFile(file) as zipped:
            names = [name for name in zipped.namelist() if name.startswith(f"{target.name}/")]
            if not names:
                raise NotMadeError(
                    f"{archive}: this package has no {target.name}; make one with 'corpusveil {target.name}'."
                )
            part = target.with_name("part")
            shutil.rmtree(part, ignore_errors=True)  # left by a process that was killed
            zipped.extractall(part, names)
        (part / target.name).chmod(0o700)  # whatever the umask
        (part / target.name).rename(target)

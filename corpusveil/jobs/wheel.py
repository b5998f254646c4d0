"""The wheel of the running corpusveil, written from the installed files: no pip, no package index, no build.

It is plain Python, so a wheel (packaging.python.org, binary distribution format) is its files in an archive with a list
of their hashes.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import tempfile
import zipfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import corpusveil
from corpusveil.errors import InstallationError

_TIME = (2020, 2, 2, 0, 0, 0)
"""The time of every file in it, so that the same files give the same wheel."""
_WHEEL = "Wheel-Version: 1.0\nGenerator: corpusveil {version}\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def build_wheel(folder: Path, *, machine_code: bool = False) -> Path:
    """Write the wheel of this corpusveil into a folder, and remove other wheels of it there; return it.

    With ``machine_code`` it also contains the compiled inner loops for this processor (``jobs/machine_code.py``).
    Raises WorkError if the installed distribution lacks its metadata, or if compiling fails.
    """
    for old in folder.glob("corpusveil-*.whl"):
        old.unlink()
    distribution = metadata.distribution("corpusveil")
    name = f"corpusveil-{distribution.version}"
    found = dict(_package(Path(corpusveil.__file__).parent))
    if machine_code:
        found |= _compiled(found)
    for own in ("METADATA", "entry_points.txt"):
        text = distribution.read_text(own)
        if text is None:
            raise InstallationError(f"corpusveil was installed without its {own}; install it again.")
        found[f"{name}.dist-info/{own}"] = text.encode()
    found[f"{name}.dist-info/WHEEL"] = _WHEEL.format(version=distribution.version).encode()
    wheel = folder / f"{name}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in [*sorted(found.items()), (f"{name}.dist-info/RECORD", _record(name, found))]:
            archive.writestr(zipfile.ZipInfo(path, _TIME), data, zipfile.ZIP_DEFLATED)
    return wheel


def _compiled(package: dict[str, bytes]) -> dict[str, bytes]:
    """Return the machine code of a copy of the package: that of this package may be outdated or incomplete."""
    from corpusveil.jobs.machine_code import compile_beside

    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        for path, data in package.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(data)
        return {path.relative_to(root).as_posix(): path.read_bytes() for path in compile_beside(root)}


def _package(root: Path) -> Iterator[tuple[str, bytes]]:
    for path in root.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path.relative_to(root.parent).as_posix(), path.read_bytes()


def _record(name: str, found: dict[str, bytes]) -> bytes:
    """Return the list of the files with their hashes and sizes, except for the list itself."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    for path, data in sorted(found.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.writerow([path, f"sha256={digest}", len(data)])
    rows.writerow([f"{name}.dist-info/RECORD", "", ""])
    return text.getvalue().encode()

"""The running corpusveil as a wheel, and the versions of the packages that it runs with.

The wheel is written from the installed files: there is no source tree to build where corpusveil was installed from an
index.
"""

from __future__ import annotations

import base64
import hashlib
import zipfile
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

import corpusveil
from corpusveil.errors import PackageError

PACKAGE = "corpusveil"
_TIME = (2020, 2, 2, 0, 0, 0)
"""The time of every file in it, so that the same files give the same wheel."""
_TAG = "py3-none-any"
_WHEEL = "Wheel-Version: 1.0\nGenerator: corpusveil {version}\nRoot-Is-Purelib: true\nTag: {tag}\n"


def build_wheel(folder: Path) -> Path:
    """Write the wheel of this corpusveil into a folder, for older ones. Raises WorkError without its metadata."""
    distribution = metadata.distribution(PACKAGE)
    name = f"{PACKAGE}-{distribution.version}"
    information = {"WHEEL": _WHEEL.format(version=distribution.version, tag=_TAG)}
    for own in ("METADATA", "entry_points.txt", "licenses/LICENSE", "licenses/spaces/en/ATTRIBUTION.md"):
        if (text := distribution.read_text(own)) is None:
            raise PackageError(f"corpusveil was installed without its {own}; install it again.")
        information[own] = text
    package = Path(corpusveil.__file__).parent
    contents = {
        f"{PACKAGE}/{path.relative_to(package).as_posix()}": path.read_bytes()
        for path in package.rglob("*") if path.is_file() and path.parent.name != "__pycache__"
    }  # fmt: skip
    contents |= {f"{name}.dist-info/{own}": text.encode() for own, text in information.items()}
    contents = dict(sorted(contents.items()))
    hashes = {path: base64.urlsafe_b64encode(hashlib.sha256(data).digest()) for path, data in contents.items()}
    lines = [f"{path},sha256={digest.decode().rstrip('=')},{len(contents[path])}\n" for path, digest in hashes.items()]
    record = f"{name}.dist-info/RECORD"
    contents[record] = "".join([*lines, f"{record},,\n"]).encode()
    for old in folder.glob(f"{PACKAGE}-*-{_TAG}.whl"):  # only now that nothing more can fail
        old.unlink()
    wheel = folder / f"{name}-{_TAG}.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, data in contents.items():
            archive.writestr(zipfile.ZipInfo(path, _TIME), data, zipfile.ZIP_DEFLATED)
    return wheel


def requirement(wheel: Path, extras: Sequence[str]) -> str:
    """Return the requirement for pex: a wheel with extras (packaging.python.org, direct references)."""
    wanted = f"[{','.join(extras)}]" if extras else ""
    return f"{PACKAGE}{wanted} @ {wheel.resolve().as_uri()}"


def constraints(left_out: Sequence[str] = ()) -> str:
    """Return the versions of this environment, one a line, without corpusveil and the packages left out."""
    installed = reversed(list(metadata.distributions()))  # of two with a name, the first is the one that is imported
    versions = {distribution.metadata["Name"].lower(): distribution.version for distribution in installed}
    return "".join(
        f"{name}=={version}\n" for name, version in versions.items()
        if name not in (PACKAGE, *left_out) and "+" not in version
    )  # fmt: skip

"""The running corpusveil as a wheel, and the versions of the packages that it runs with.

The wheel is written from the installed files: there is no source tree to build where corpusveil was installed from an
index, and no tool that builds wheels, and none that makes a PEX of a folder, takes machine code from ``__pycache__``.
"""

from __future__ import annotations

import base64
import hashlib
import platform
import shutil
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path

import corpusveil
from corpusveil.errors import InstallationError

PACKAGE = "corpusveil"
ENDINGS = (".nbi", ".nbc")
"""Of the files that numba writes: an index a function, and machine code."""
_TIME = (2020, 2, 2, 0, 0, 0)
"""The time of every file in it, so that the same files give the same wheel."""
_WHEEL = "Wheel-Version: 1.0\nGenerator: corpusveil {version}\nRoot-Is-Purelib: {pure}\nTag: {tag}\n"


def _tag() -> str:
    """Return the tag of a wheel with machine code: this Python and platform.

    The code calls functions of the C library that it has had since 2014, so that pip may install it from an index.
    """
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    system = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    if platform.libc_ver()[0] == "glibc":
        system = system.replace("linux_", "manylinux2014_")
    return f"{python}-{python}-{system}"


def installed_loops(root: Path) -> None:
    """Put the machine code that was installed with this corpusveil beside its copy in ``root``; there may be none."""
    for file in metadata.files(PACKAGE) or ():
        if file.suffix in ENDINGS:
            (root / file).parent.mkdir(exist_ok=True)
            shutil.copyfile(str(file.locate()), root / file)


def build_wheel(folder: Path, *, machine_code: Callable[[Path], object] | None = None) -> Path:
    """Write the wheel of this corpusveil into a folder, and remove other wheels of its kind there; return it.

    ``machine_code`` puts compiled inner loops beside a copy of the package, in the folder that it is given; the wheel
    is then for this Python and platform. Raises WorkError if the installed distribution lacks its metadata.
    """
    tag = "py3-none-any" if machine_code is None else _tag()
    distribution = metadata.distribution(PACKAGE)
    name = f"{PACKAGE}-{distribution.version}"
    pure = str(machine_code is None).lower()
    information = {"WHEEL": _WHEEL.format(version=distribution.version, tag=tag, pure=pure)}
    for own in ("METADATA", "entry_points.txt", "licenses/LICENSE", "licenses/spaces/en/ATTRIBUTION.md"):
        if (text := distribution.read_text(own)) is None:
            raise InstallationError(f"corpusveil was installed without its {own}; install it again.")
        information[own] = text
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        shutil.copytree(
            Path(corpusveil.__file__).parent, root / PACKAGE, ignore=shutil.ignore_patterns("__pycache__")
        )  # fmt: skip
        if machine_code is not None:
            machine_code(root)
        contents = {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}
    contents |= {f"{name}.dist-info/{own}": text.encode() for own, text in information.items()}
    contents = dict(sorted(contents.items()))
    hashes = {path: base64.urlsafe_b64encode(hashlib.sha256(data).digest()) for path, data in contents.items()}
    lines = [f"{path},sha256={digest.decode().rstrip('=')},{len(contents[path])}\n" for path, digest in hashes.items()]
    record = f"{name}.dist-info/RECORD"
    contents[record] = "".join([*lines, f"{record},,\n"]).encode()
    for old in folder.glob(f"{PACKAGE}-*-{tag}.whl"):  # only now that nothing more can fail
        old.unlink()
    wheel = folder / f"{name}-{tag}.whl"
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

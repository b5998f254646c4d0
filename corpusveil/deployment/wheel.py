"""The running corpusveil as a wheel, and the versions of the packages that it runs with.

The wheel is written from the installed files, because there is no source tree to build where corpusveil was installed
from an index. It is plain Python: its files in an archive, with a list of their hashes (packaging.python.org, binary
distribution format).
"""

from __future__ import annotations

import base64
import hashlib
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path

import corpusveil
from corpusveil.errors import InstallationError, PackageError

PACKAGE = "corpusveil"
_TIME = (2020, 2, 2, 0, 0, 0)
"""The time of every file in it, so that the same files give the same wheel."""
_WHEEL = "Wheel-Version: 1.0\nGenerator: corpusveil {version}\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def build_wheel(folder: Path, *, machine_code: bool = False) -> Path:
    """Write the wheel of this corpusveil into a folder, and remove other wheels of it there; return it.

    With ``machine_code`` it also contains the compiled inner loops for this processor.
    Raises WorkError if the installed distribution lacks its metadata, or if compiling fails.
    """
    for old in folder.glob("corpusveil-*.whl"):
        old.unlink()
    distribution = metadata.distribution(PACKAGE)
    name = f"{PACKAGE}-{distribution.version}"
    package = Path(corpusveil.__file__).parent
    contents = {
        path.relative_to(package.parent).as_posix(): path.read_bytes()
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    if machine_code:
        contents |= _compiled(contents)
    for own in ("METADATA", "entry_points.txt"):
        text = distribution.read_text(own)
        if text is None:
            raise InstallationError(f"corpusveil was installed without its {own}; install it again.")
        contents[f"{name}.dist-info/{own}"] = text.encode()
    contents[f"{name}.dist-info/WHEEL"] = _WHEEL.format(version=distribution.version).encode()
    record = f"{name}.dist-info/RECORD"
    contents = dict(sorted(contents.items()))
    hashes = {path: base64.urlsafe_b64encode(hashlib.sha256(data).digest()) for path, data in contents.items()}
    lines = [f"{path},sha256={digest.decode().rstrip('=')},{len(contents[path])}\n" for path, digest in hashes.items()]
    contents[record] = "".join([*lines, f"{record},,\n"]).encode()
    wheel = folder / f"{name}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in contents.items():
            archive.writestr(zipfile.ZipInfo(path, _TIME), data, zipfile.ZIP_DEFLATED)
    return wheel


def _compiled(package: dict[str, bytes]) -> dict[str, bytes]:
    """Return the machine code of a copy of the package: that of this package may be outdated or incomplete."""
    from corpusveil.deployment.machine_code import compile_beside

    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        for path, data in package.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(data)
        return {path.relative_to(root).as_posix(): path.read_bytes() for path in compile_beside(root)}


def requirement(wheel: Path, extras: Sequence[str]) -> str:
    """Return the requirement for pip and pex: a wheel with extras (packaging.python.org, direct references)."""
    wanted = f"[{','.join(extras)}]" if extras else ""
    return f"{PACKAGE}{wanted} @ {wheel.resolve().as_uri()}"


def installed(left_out: Sequence[str]) -> Iterator[str]:
    """Yield the versions of this environment, as constraints, without some packages."""
    seen: set[str] = set()
    for distribution in metadata.distributions():
        name = distribution.metadata["Name"]
        if name and name.lower() not in (*left_out, *seen) and "+" not in distribution.version:
            seen.add(name.lower())
            yield f"{name}=={distribution.version}"


def needed(extras: Sequence[str]) -> list[str]:
    """Return all dependencies of corpusveil with these extras on Linux, in the versions installed here.

    Raises UserError if one of them is not installed.
    """
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    linux = {"sys_platform": "linux", "platform_system": "Linux", "platform_machine": "x86_64", "os_name": "posix"}
    versions: dict[str, str] = {}
    queue = [(PACKAGE, frozenset(extras))]
    seen: set[tuple[str, frozenset[str]]] = set()
    while queue:
        name, wanted = queue.pop()
        if (name, wanted) in seen:
            continue
        seen.add((name, wanted))
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            raise PackageError(f"{name} is not installed; run pip install '{PACKAGE}[{','.join(extras)}]'.") from None
        versions[canonicalize_name(name)] = f"{distribution.metadata['Name']}=={distribution.version}"
        for line in distribution.requires or []:
            needs = Requirement(line)
            if needs.marker is None or any(needs.marker.evaluate({**linux, "extra": extra}) for extra in ("", *wanted)):
                queue.append((canonicalize_name(needs.name), frozenset(needs.extras)))
    del versions[PACKAGE]
    return [versions[name] for name in sorted(versions)]

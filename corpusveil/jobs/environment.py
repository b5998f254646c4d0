"""The installed packages of this environment, whose versions a cluster must have, too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path

from corpusveil.errors import PackageError

PACKAGE = "corpusveil"


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
    found: dict[str, str] = {}
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
        found[canonicalize_name(name)] = f"{distribution.metadata['Name']}=={distribution.version}"
        for line in distribution.requires or []:
            one = Requirement(line)
            if one.marker is None or any(one.marker.evaluate({**linux, "extra": extra}) for extra in ("", *wanted)):
                queue.append((canonicalize_name(one.name), frozenset(one.extras)))
    del found[PACKAGE]
    return [found[name] for name in sorted(found)]

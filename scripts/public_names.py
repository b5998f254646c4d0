"""Write ``corpusveil/__init__.pyi``, from which type checkers and editors know the names that are imported on use.

Also write ``docs/api.md``, the documentation page of these names.

``make lint`` runs it; ``tests/api/test_names.py`` fails if the files are out of date.
"""

from __future__ import annotations

from pathlib import Path

import corpusveil
from corpusveil.mechanisms.registry import classes

STUB = Path(corpusveil.__file__).with_suffix(".pyi")
PAGE = STUB.parents[1] / "docs" / "api.md"


def stub() -> str:
    """Return the stub: an import for each public name and each mechanism, and the list of all."""
    places = dict(vars(corpusveil)["_places"]())
    places |= {name: (cls.__module__, name) for name, cls in classes().items() if cls.__module__ in own_modules()}
    imports = sorted((module, there, name) for name, (module, there) in places.items())
    lines = ["# Written by scripts/public_names.py, which 'make lint' runs.", ""]
    lines += [f"from {module} import {there} as {name}" for module, there, name in imports]
    lines += ["", "__version__: str", "__all__ = ["]
    lines += [f'    "{name}",' for name in sorted([*places, "__version__"])]
    return "\n".join([*lines, "]", ""])


def page() -> str:
    """Return the page of the public names: mechanisms, then all others."""
    mechanisms = {name: cls.__module__ for name, cls in classes().items() if cls.__module__ in own_modules()}
    told = "`import corpusveil as cv`, then `cv.` and one of these names. `make lint` writes this page."
    lines = ["# Python API", "", told, "", "## Mechanisms", ""]
    lines += [f"::: {mechanisms[name]}.{name}" for name in sorted(mechanisms)]
    lines += ["", "## All others", ""]
    for name, (module, there) in sorted(vars(corpusveil)["_places"]().items()):
        lines += [] if name == there else [f"`cv.{name}` is:", ""]
        lines += [f"::: {module}.{there}"]
    return "\n".join([*lines, ""])


def own_modules() -> set[str]:
    """Return the modules of the package's own mechanisms."""
    folder = Path(corpusveil.__file__).parent / "mechanisms"
    return {f"corpusveil.mechanisms.{path.stem}" for path in folder.glob("*.py")}


if __name__ == "__main__":
    STUB.write_text(stub())
    PAGE.write_text(page())

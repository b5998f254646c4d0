"""One door for additions: things of one kind by name, of this package and of others.

A thing is found in one of three ways, and none needs a list that is edited elsewhere:

* The metadata of a package names it, as an entry point of the group of its kind; so do engines, recognizers, encoders
  and sections of settings::

    [project.entry-points."corpusveil.engines"]
    threads = "my_package.threads:Threads"

* A module of a folder enters it when it is imported; so do mechanisms and statistics.
* A file of a folder declares a constant, which is read without importing the file; so do forms and commands. Help names
  all of these, and has to start at once.
"""

from __future__ import annotations

import ast
import functools
import importlib
import pkgutil
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from corpusveil.errors import PackageError, SettingError, UserError, nearest

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable
    from types import ModuleType

T = TypeVar("T")

EVALUATE = "corpusveil_evaluate"
MISSING = (
    "Evaluation is a package of its own: in a clone pip install . ./evaluate, and from an index pip install "
    "'corpusveil[evaluate]'."
)
OF_SPANS = ("names", "presidio", "rules")
OF_EVALUATE: Mapping[str, tuple[str, ...]] = {
    "mechanism": (
        "custext-per-word", "santext-as-run", "syntf-as-run", "tight-exponential", "truncated-gumbel",
        "truncated-gumbel-as-run", "vickrey-cmp-as-run", "vickrey-cmp-excluding", "vickrey-mahalanobis-excluding",
    ),
    "section": ("evaluate",),
    "command": ("audit", "denoise", "evaluate", "model"),
}  # fmt: skip
"""What ``corpusveil-evaluate`` adds, by kind, to name that package where it is not installed."""


@dataclass(frozen=True, slots=True)
class Registry(Generic[T]):
    """The things of a kind, such as ``engine``: entry points of the group ``corpusveil.engines``, and what was entered.

    Attributes:
        kind: the kind, in the singular, as sentences name it.
        folders: packages whose modules enter things when they are imported.
        entered: the things that were entered, by name.
    """

    kind: str
    folders: tuple[str, ...] = ()
    entered: dict[str, T] = field(default_factory=dict)

    @property
    def group(self) -> str:
        """The group of entry points."""
        return f"corpusveil.{self.kind}s"

    def enter(self, name: str, thing: T) -> T:
        """Enter a thing under its name, and return it. Raises ValueError if another has this name."""
        if self.entered.setdefault(name, thing) is not thing:
            message = f"two {self.kind}s are named {name}"
            raise ValueError(message)
        return thing

    def names(self) -> list[str]:
        """Return all names, sorted; nothing is imported but the folders."""
        _import_modules(self.folders)
        return sorted(self.entered.keys() | points(self.group).keys())

    def find(self, name: str) -> T:
        """Return the thing of a name. Raises UserError for an unknown name, and if its package cannot be imported."""
        _import_modules(self.folders)
        if name in self.entered:
            return self.entered[name]
        point = self.point(name)
        if point is None:
            raise self.unknown(name)
        try:
            thing: T = point.load()
        except (ImportError, AttributeError) as error:
            raise PackageError(
                f"{self.kind} {name}: {point.value} could not be imported ({type(error).__name__}); install its "
                "package again."
            ) from None
        return thing

    def point(self, name: str) -> metadata.EntryPoint | None:
        """Return the entry point of a name, None without one. Raises PackageError if two packages provide it."""
        if name not in points(self.group):
            _points.cache_clear()  # a notebook may have installed the package since
        by_package = points(self.group).get(name, {})
        if len(by_package) > 1:
            packages = ", ".join(sorted(by_package))
            raise PackageError(f"Several packages provide the {self.kind} {name} ({packages}); uninstall all but one.")
        return next(iter(by_package.values()), None)

    def unknown(self, name: str) -> UserError:
        """Return the error of a name that is not there."""
        if name in OF_EVALUATE.get(self.kind, ()):
            return PackageError(f"{name}: {MISSING}")
        if self.kind == "recognizer" and name in OF_SPANS:
            return PackageError(f"{name}: This recognizer is in a package of its own: pip install 'corpusveil[spans]'.")
        known = self.names()
        others = f"there are: {', '.join(known)}" if known else "install the package that has it"
        hint = nearest(name, known) or f"; {others}."
        return SettingError(f"{name}: there is no {self.kind} of this name{hint}")


def points(group: str) -> Mapping[str, Mapping[str, metadata.EntryPoint]]:
    """Return the entry points of a group by name and by package; nothing is imported."""
    return _points(group, tuple(sys.path))


@functools.cache
def _points(group: str, _path: tuple[str, ...]) -> Mapping[str, Mapping[str, metadata.EntryPoint]]:
    by_name: dict[str, dict[str, metadata.EntryPoint]] = {}
    for point in metadata.entry_points(group=group):
        by_name.setdefault(point.name, {})[point.dist.name if point.dist else point.value] = point
    return by_name


@functools.cache
def _import_modules(folders: tuple[str, ...]) -> None:
    for folder in folders:
        for module in pkgutil.iter_modules(importlib.import_module(folder).__path__):
            importlib.import_module(f"{folder}.{module.name}")


def declared(folder: Traversable, name: str) -> dict[str, Any]:
    """Return the value that a Python file of a folder assigns to ``name``, by module, sorted.

    Raises UserError if a value is not a literal on one line.
    """
    assignment = re.compile(rf"^{name}(?:: [^=\n]+)? = (.+)$", re.MULTILINE)
    values: dict[str, Any] = {}
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        stem, _, ending = file.name.partition(".")
        if ending != "py" or stem == "__init__":
            continue
        try:
            declaration = assignment.search(file.read_text(encoding="utf-8"))
            if declaration:
                values[stem] = ast.literal_eval(declaration[1])
        except (SyntaxError, ValueError):
            raise PackageError(f"{file}: {name} has to be a literal on one line.") from None
    return values


def imported(module: str) -> ModuleType:
    """Import a module of this package or of ``corpusveil-evaluate``. Raises PackageError if that is not installed."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != EVALUATE:
            raise
        raise PackageError(MISSING) from None

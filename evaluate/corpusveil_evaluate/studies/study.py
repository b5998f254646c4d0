"""A study: its grid (the file that ships with it, its ``[quick]`` part, a user's file), its cells, its report."""

from __future__ import annotations

import abc
import importlib
import json
import tomllib
from collections.abc import Iterable, Mapping
from importlib import resources
from typing import Annotated, Any, ClassVar, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from corpusveil.errors import SettingError, nearest
from corpusveil.mechanisms import registry
from corpusveil.pipelines.settings.toml import parsed
from corpusveil_evaluate.studies.cells import Cell, Results
from corpusveil_evaluate.studies.claims import Claim
from corpusveil_evaluate.studies.report import Account
from corpusveil_evaluate.studies.study_data import ONE_LIST, Needs, StudyData, WordSpace

STUDIES = {
    "1-diffractor": "diffractor",
    "collocations": "collocation_strategies",
    "comparative-mldp": "comparative",
    "pypantera": "pypantera",
    "adversarial-robustness": "adversarial_robustness",
}
"""Study -> module."""
SLOW_LAWS = ("truncated-gumbel", "truncated-gumbel-as-run")
"""Mechanisms whose exact law takes seconds to minutes per word: N_w and S_w are sampled."""

WHICH_CELLS = {
    "seeds", "tasks", "bundled", "attacks", "bundled_attacks", "epsilons", "cmp_epsilons", "gumbel_log_epsilons",
    "alphas",
}  # fmt: skip
"""Keys of grids that define or describe the cells: a cell has these as options, if at all."""

Finite = Annotated[float, Field(allow_inf_nan=False)]
Epsilon = Annotated[float, Field(gt=0, allow_inf_nan=False)]


def _mechanism(name: str) -> str:
    if name not in registry.names():
        raise ValueError(f"there is no mechanism {name}; 'corpusveil mechanisms' lists them")
    return name


MechanismName = Annotated[str, AfterValidator(_mechanism)]


class Grid(BaseModel):
    """The keys of every grid. A study adds its own keys; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    seeds: int = Field(ge=1)
    """Each a perturbation key and a training seed."""
    tasks: tuple[str, ...] = ()
    """Data sets of ``--data``, by file name."""
    bundled: tuple[str, ...] = ()
    """The same on text of the dependencies, without ``--data``."""
    train_rows: int = Field(ge=10)
    """The most rows for training,"""
    test_rows: int = Field(ge=10)
    """and for testing."""
    dimensions: int = Field(default=300, ge=2)
    """Of vectors that are trained here,"""
    epochs: int = Field(default=5, ge=1)
    """so often over the corpus,"""
    min_count: int = Field(default=5, ge=1)
    """of words and collocations that occur so often at least,"""
    scale: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """and scaled to this median distance of two words; 0 or None leaves them as trained."""

    @field_validator("*")
    @classmethod
    def _once(cls, value: Any, info: ValidationInfo) -> Any:
        """Refuse duplicates in a list: two cells would be the same, or a figure would average two different things.

        Epsilons are sorted, since rises are read from the first and the last.
        """
        if isinstance(value, tuple):
            names = [entry.name if isinstance(entry, GridMechanism) else entry for entry in value]
            for name in names:
                if names.count(name) > 1:
                    raise ValueError(f"{name} occurs twice; give it once")
            if str(info.field_name).endswith("epsilons"):
                return tuple(sorted(value))
        return value

    def decides(self) -> dict[str, Any]:
        """Return the keys that decide the result of a cell: all except those that define the cells."""
        return self.model_dump(mode="json", exclude=WHICH_CELLS)

    def needs(self, *words: WordSpace, tokenizers: tuple[str, ...] = (), language: bool = False) -> Needs:
        """Return the artifacts to prepare: the space of one list, others, the corpus's by tokenizer, and n-grams."""
        one_list = WordSpace(ONE_LIST)
        trained = self.dimensions, self.epochs, self.min_count, self.scale or None
        return Needs((one_list, *words), tokenizers, *trained, language=language)


READ = "read:"
"""The prefix of figures for an attacker who denoises first."""


class ReadFirstGrid(Grid):
    """A grid of a study whose attackers first denoise the releases of some mechanisms."""

    read_first: tuple[MechanismName, ...] = ()
    """These mechanisms; each law costs seconds to a minute."""


class GridMechanism(BaseModel):
    """A mechanism of a grid: its name, its parameters, the epsilons that the study has for it (of a word)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: MechanismName
    parameters: dict[str, int | float] = {}
    epsilons: Annotated[tuple[Epsilon, ...], AfterValidator(lambda given: tuple(sorted(set(given))))] = ()

    @model_validator(mode="after")
    def _parameters(self) -> Self:
        known = registry.parameters(self.name)
        for parameter in self.parameters:
            if parameter not in known:
                raise ValueError(f"{self.name} has no parameter {parameter}; it has: {', '.join(known) or 'none'}")
        return self


class Study(abc.ABC):
    """A published study. ``grid`` is the class of its settings."""

    name: str
    paper: str
    grid: type[Grid]
    no_use_for: ClassVar[tuple[str, ...]] = ("collection", "queries", "qrels")
    """Sources that it does not use, and so refuses."""

    @abc.abstractmethod
    def needs(self, grid: Any) -> Needs:
        """Return the artifacts to prepare before the cells."""

    @abc.abstractmethod
    def cells(self, grid: Any, data: StudyData) -> list[Cell]:
        """Return the cells; nothing is prepared yet. Raises UserError for cells that are impossible with the data."""

    def prepare(self, grid: Any, data: StudyData) -> None:  # noqa: B027 - most studies need nothing more
        """Make the artifacts of this study alone, once, after spaces and collocations."""

    @abc.abstractmethod
    def work(self, cell: Cell, grid: Any, data: StudyData) -> Mapping[str, Any]:
        """Do one cell, in any process. Returns names and figures; raises UserError for an impossible cell."""

    @abc.abstractmethod
    def account(self, results: Results, grid: Any, data: StudyData) -> Account:
        """Return tables and checks of the cells' results."""


def find(name: str) -> Study:
    """Return a study by its name. Raises UserError for an unknown one."""
    if (name := name.lower()) not in STUDIES:
        raise SettingError(f"{name}: there is no such study; choose one of {', '.join(STUDIES)}.")
    study: Study = importlib.import_module(f"corpusveil_evaluate.studies.{STUDIES[name]}").STUDY
    return study


def all_epsilons(epsilons: Iterable[float], mechanisms: Iterable[GridMechanism]) -> list[float]:
    """Return the epsilons of a grid, including those of single mechanisms, in order."""
    return sorted({*epsilons, *(epsilon for mechanism in mechanisms for epsilon in mechanism.epsilons)})


def read_grid(study: Study, *, quick: bool = False, file: str | None = None) -> Grid:
    """Return the grid of a study: whole, or small; keys of ``file`` (TOML) replace others.

    Raises UserError, which names file and key, for an unknown key or a value out of range.
    """
    own, shipped = f"{study.name}.toml", _shipped(study)
    small, _ = shipped.pop("quick", {}), shipped.pop("claims")
    values = {**shipped, **(small if quick else {})}
    if file is not None:
        values |= _given(file, study)
    try:
        return study.grid.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        where = f"{file or own}, {key}" if key else file or own
        raise SettingError(f"{where}: {first['msg'].removeprefix('Value error, ').lower()}.") from None


def _shipped(study: Study) -> dict[str, Any]:
    return tomllib.loads((resources.files(__package__) / f"{study.name}.toml").read_text(encoding="utf-8"))


def claims_of(study: Study) -> list[Claim]:
    """Return the claims of the study's paper."""
    return [Claim.model_validate(claim) for claim in _shipped(study)["claims"]]


def _given(file: str, study: Study) -> dict[str, Any]:
    changes, known = parsed(file), study.grid.model_fields
    for key in changes:
        if key not in known:
            near = nearest(key, known) or f"; its keys are: {', '.join(known)}."
            raise SettingError(f"{file}, {json.dumps(key)[:80]}: the study {study.name} has no such key{near}")
    return changes

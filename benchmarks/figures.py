"""Figures of one run of the short table as a JSON file: its format, reader and invariants."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

Clock = Literal["cpu", "wall"]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class FiguresError(Exception):
    """A file of figures is unusable; one sentence says which and why."""


class Form(BaseModel):
    model_config = ConfigDict(frozen=True)


class Side(Form):
    """Runs of one piece of work: seconds of each on ``items``."""

    what: str
    items: Positive
    seconds: list[Positive] = Field(min_length=1)

    def each(self) -> list[float]:
        """Return the seconds an item of each run."""
        return [one / self.items for one in self.seconds]


class Row(Form):
    """Our work and its baseline, measured in turns. A kept figure is a baseline with one run from another day."""

    name: str
    unit: str
    clock: Clock
    ours: Side
    baseline: Side

    def ratios(self) -> list[float]:
        """Return our time per item divided by the baseline's in the same turn."""
        theirs = self.baseline.each()
        return [ours / theirs[turn % len(theirs)] for turn, ours in enumerate(self.ours.each())]


class Run(Form):
    """One run. ``data`` says on which texts and vectors."""

    version: Literal[2]
    when: str
    machine: str
    load: str
    minutes: Positive
    data: str
    rows: list[Row] = Field(min_length=1)
    skipped: dict[str, str]


def read(path: Path) -> Run:
    """Return the figures in a file. Raises FiguresError where there are none."""
    try:
        return Run.model_validate_json(path.read_bytes())
    except OSError as error:
        raise FiguresError(f"{path} cannot be read: {error.strerror}.") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise FiguresError(
            f"{path} is no file of make bench's figures: {where}: {first['msg']}; measure again."
        ) from None

"""Reading of grids: the file that ships with a study, its ``[quick]`` part, and a user's file on top."""

from __future__ import annotations

import difflib
import json
import tomllib
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from corpusveil.errors import BadFileError, BadValueError, UnknownError, unreadable
from corpusveil_studies.study import Grid, Study


def read_grid(study: Study, *, quick: bool = False, file: str | None = None) -> Grid:
    """Return the grid of a study: whole, or small; keys of ``file`` (TOML) replace others.

    Raises UserError, which names file and key, for an unknown key or a value out of range.
    """
    own = f"{study.name}.toml"
    shipped = tomllib.loads((resources.files(__package__) / own).read_text(encoding="utf-8"))
    small = shipped.pop("quick", {})
    values = {**shipped, **(small if quick else {})}
    if file is not None:
        values |= _given(file, study)
    try:
        return study.grid.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        where = f"{file or own}, {key}" if key else file or own
        raise BadValueError(f"{where}: {first['msg'].removeprefix('Value error, ').lower()}.") from None


def _given(file: str, study: Study) -> dict[str, Any]:
    try:
        changes = tomllib.loads(Path(file).read_text(encoding="utf-8"))
    except OSError as error:
        raise unreadable(file, error) from None
    except (ValueError, RecursionError):
        raise BadFileError(f"{file}: this is not valid TOML; correct it.") from None
    known = study.grid.model_fields
    for key in changes:
        if key not in known:
            near = difflib.get_close_matches(key, known, 1)
            hint = f"did you mean {near[0]}?" if near else f"its keys are: {', '.join(known)}."
            raise UnknownError(f"{file}, {json.dumps(key)[:80]}: the study {study.name} has no such key; {hint}")
    return changes


def grid_as_toml(grid: Grid) -> str:
    """Return a grid as TOML, which reads back as the same."""
    return "\n".join(f"{name} = {_toml(value)}" for name, value in grid.model_dump().items() if value is not None)


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        inner = ", ".join(f"{json.dumps(name)} = {_toml(entry)}" for name, entry in value.items() if entry is not None)
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_toml(entry) for entry in value)}]"
    return json.dumps(value, ensure_ascii=False)

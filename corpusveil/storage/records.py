"""The private records of a run: what was done to each shard, and what was counted. Never part of the release."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from corpusveil.choices import CSV_FORMULAS
from corpusveil.errors import UserError
from corpusveil.storage import files
from corpusveil.storage.shapes import Each, Shape, fits, line, parsed, row

RUN_VERSION = 2
"""The form of a run's records; those without a version are of before documents were identified by their corpus."""
WARNING = "DO NOT PUBLISH: counts and digests computed from private text"


_COUNTS: dict[str, Shape] = dict.fromkeys(
    ("documents", "tokens_written", "privatized", "unchanged", "input_bytes"), int
)
_COUNTS |= {"quarantined": int, "dropped": int, "tokens": Each(int)}
_TASK: tuple[Shape, ...] = (str, int, (int, None), str, (str, None), [str])
_SHARD = {
    "release": str,
    "task": (row(*_TASK), row(*_TASK, CSV_FORMULAS.__contains__)),
    "input": {"path": str, "digest": str},
    "output": {"name": str, "sha256": str, "blake2b": str, "bytes": (int, None)},
    "counts": _COUNTS,
    "seconds": float,
}
_RUN = {
    "release": str, "key": str, "columns": dict, "input": [str], "output": str, "format": str, "on_bad_rows": str,
    "ledger": (str, None),
}  # fmt: skip
_RUN_NOW = {**_RUN, "version": int, "corpus": str}
_PLAN = {"shards": [row(str, str, int, str)], "why": Each(str)}
SHAPES: tuple[tuple[str, Shape], ...] = (
    (r"run\.json", lambda run: fits(run, _RUN_NOW if isinstance(run, dict) and "version" in run else _RUN)),
    (r"totals\.json", {**_COUNTS, "seconds": float}),
    (r"shards/.*", lambda record: fits(record, _SHARD) and fits(record.get("ledger"), ([line], None))),
    (r"failed/.*", {"sentence": str}),
    (r"seen/.*", {"input": str}),
    (r"progress/.*", {"tokens": int}),
    (r"runs/.*\.plan\.json", _PLAN),
    (r"runs/.*\.done\.json", {"shards": Each(row(int, str, str))}),
    (r"left_out\.json", {"settings": str, "shards": Each(row(int, str, str, str))}),
    (r"touched\.json", {"shards": Each(row(int, str))}),
    (r".*", {}),
)
"""What each record has to hold, by its name: the first that matches."""


class DamagedRecordError(UserError):
    """A record is there and is not what it has to be."""


@dataclass(frozen=True, slots=True)
class Records:
    """A folder of JSON files of mode 0600, each beginning with the warning."""

    url: str

    def address(self, *parts: str) -> str:
        """Return the address of a file of the records."""
        return files.join(self.url, *parts)

    def close(self) -> None:
        """Make the folder, on a disk closed to others, where there is none."""
        if files.is_local(self.url):
            files.make_folder(files.absolute(self.url), private=True)

    def write(self, name: str, content: dict[str, Any]) -> None:
        """Write one record, whole or not at all."""
        files.write_bytes(self.address(name), _text(content), private=True)

    def create(self, name: str, content: dict[str, Any]) -> bool:
        """Write one record where none is yet; say whether this call did. Of several at once, one does."""
        return files.create_bytes(self.address(name), _text(content), private=True)

    def read(self, name: str) -> dict[str, Any] | None:
        """Return one record, None when there is none. Raises UserError when it can't be read."""
        data = files.read_if_there(self.address(name))
        if data is None:
            return None
        shape = next(shape for pattern, shape in SHAPES if re.fullmatch(pattern, name, re.DOTALL))
        content: dict[str, Any] = parsed(data)
        if not fits(content, shape):
            raise DamagedRecordError(
                f"{self.address(name)}: this record is damaged; restore it, or remove it and run again."
            )
        return content

    def remove(self, name: str) -> None:
        """Remove one record if it is there."""
        files.remove(self.address(name))

    def names(self, folder: str) -> list[str]:
        """Return the names of the records in a folder of the records."""
        return [name for name in files.listing(self.address(folder)) if name.endswith(".json")]


def _text(content: dict[str, Any]) -> bytes:
    return (json.dumps({"_": WARNING, **content}, indent=1, ensure_ascii=False) + "\n").encode()

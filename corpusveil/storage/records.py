"""The private records of a run: what was done to each shard, and what was counted. Never part of the release."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any, Self, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from corpusveil.choices import CsvFormulas
from corpusveil.errors import BadRecordError
from corpusveil.storage import files

RUN_VERSION = 2
"""The form of a run's records; those without a version are of before documents were identified by their corpus."""
WARNING = "DO NOT PUBLISH: counts and digests computed from private text"


class Record(BaseModel):
    """What one file of the records says: read strictly, and written in the order of its fields.

    A field that was added later has a default, and one that is not set is not written.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return self.model_dump(mode="json", exclude_unset=True)

    def data(self) -> bytes:
        """Return it as JSON text."""
        return json.dumps(self.as_dict()).encode()

    @classmethod
    def of(cls, data: bytes) -> Self | None:
        """Return what JSON text says, None where that is not of this kind."""
        try:
            return cls.model_validate_json(data)
        except ValidationError:
            return None


def _one_line(text: str) -> str:
    if not text.isprintable():
        message = "text on one line"
        raise ValueError(message)
    return text


Line = Annotated[str, AfterValidator(_one_line)]
"""Text that can be shown on one line."""


class Run(Record):
    """``run.json``: what a run makes of what; the records of a run are of this version."""

    version: int | None = None
    release: str
    key: str
    columns: dict[str, Any]
    input: list[str]
    output: str
    format: str
    on_bad_rows: str
    ledger: str | None
    corpus: str | None = None


class Counted(Record):
    """What was counted in a shard, or in all of them."""

    documents: int
    tokens_written: int
    privatized: int
    changed: int = 0
    unchanged: int
    input_bytes: int
    quarantined: int
    dropped: int
    fillers: int = 0
    tokens: dict[str, int]


class Totals(Counted):
    """``totals.json``: what was counted in all shards, how many documents were copies, and seconds of work."""

    copies: dict[str, int] | None = None
    seconds: float


class Source(Record):
    """The input of a task; ``digest`` is keyed."""

    path: str
    bytes: int = 0
    digest: str


class Made(Record):
    """The output of a task: the SHA-256 of its content, and the BLAKE2b of the file as it lies there."""

    name: str
    sha256: str
    blake2b: str
    bytes: int | None


_Columns = tuple[str, int, int | None, str, str | None, list[str]]


class Shard(Record):
    """``shards/*``: a task that is done. ``task`` is key, first row, last row and columns; ``ledger`` covers it."""

    release: str
    task: _Columns | tuple[str, int, int | None, str, str | None, list[str], CsvFormulas]
    dropped: str | None = None
    input: Source
    output: Made
    counts: Counted
    seconds: float
    ledger: list[Line] | None = None


class Failed(Record):
    """``failed/*``: what is wrong with the input of a task."""

    sentence: str


class Beat(Record):
    """``progress/*``: how far a task is."""

    documents: int = 0
    tokens: int
    privatized: int = 0
    changed: int = 0
    quarantined: int = 0


R = TypeVar("R", bound=Record)


@dataclass(frozen=True, slots=True)
class Records:
    """A folder of JSON files. Private ones have mode 0600, and each begins with the warning."""

    url: str
    private: bool = True

    def address(self, *parts: str) -> str:
        """Return the address of a file of the records."""
        return files.join(self.url, *parts)

    def close(self) -> None:
        """Make the folder, on a disk closed to others, where there is none."""
        if files.is_local(self.url):
            files.make_folder(files.absolute(self.url), private=True)

    def write(self, name: str, record: Record) -> None:
        """Write one record, whole or not at all."""
        files.write_bytes(self.address(name), self._text(record), private=self.private)

    def create(self, name: str, record: Record) -> bool:
        """Write one record where none is yet; say whether this call did. Of several at once, one does."""
        return files.create_bytes(self.address(name), self._text(record), private=self.private)

    def read(self, name: str, kind: type[R]) -> R | None:
        """Return one record, None when there is none. Raises BadRecordError when it is not of this kind."""
        data = files.read_if_there(self.address(name))
        if data is None:
            return None
        if (record := kind.of(data)) is None:
            raise BadRecordError(
                f"{self.address(name)}: this record is damaged; restore it, or remove it and run the same "
                "command again."
            )
        return record

    def remove(self, name: str) -> None:
        """Remove one record if it is there."""
        files.remove(self.address(name))

    def names(self, folder: str) -> list[str]:
        """Return the names of the records in a folder of the records."""
        return [name for name in files.listing(self.address(folder)) if name.endswith(".json")]

    def _text(self, record: Record) -> bytes:
        if not self.private:
            return record.data()
        return (json.dumps({"_": WARNING, **record.as_dict()}, indent=1, ensure_ascii=False) + "\n").encode()

"""The private records of a run: the work on each shard, and its counts. Never part of the release."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any, Self, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from corpusveil.choices import Separator
from corpusveil.errors import ArtifactError
from corpusveil.storage import disk, files

RUN_VERSION = 2
"""The format of a run's records."""
WARNING = "DO NOT PUBLISH: counts and digests computed from private text"


class Record(BaseModel):
    """The content of one file of the records: read strictly, and written in the order of its fields.

    Fields that not every record has have defaults, and unset fields are not written.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")

    def as_dict(self) -> dict[str, Any]:
        return self.model_dump(mode="json", exclude_unset=True)

    def data(self) -> bytes:
        """Return it as JSON text."""
        return json.dumps(self.as_dict()).encode()

    @classmethod
    def parse(cls, data: bytes) -> Self | None:
        """Return the record of a JSON text, None if it is not of this kind."""
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


class Counted(Record):
    """The counts of a shard, or of all shards."""

    documents: int
    tokens_written: int
    privatized: int
    changed: int = 0
    unchanged: int
    input_bytes: int
    bad_rows: int
    dropped: int
    without_text: int = 0
    spans: dict[str, int] = {}
    tokens: dict[str, int]


class Totals(Counted):
    """``totals.json``: the counts of all shards, and seconds of work."""

    seconds: float


class Source(Record):
    """The input of a task; ``digest`` is keyed."""

    path: str
    bytes: int = 0
    digest: str


class Made(Record):
    """The output of a task: the SHA-256 of its content, and that of the stored file."""

    name: str
    sha256: str
    file_sha256: str
    bytes: int | None


_Columns = tuple[str, int, int | None, str, str | None, list[str]]


class Shard(Record):
    """``shards/*``: a finished task. ``task`` is key, first row, last row and columns; ``ledger`` covers it."""

    release: str
    task: _Columns | tuple[str, int, int | None, str, str | None, list[str], Separator]
    dropped: str | None = None
    input: Source
    output: Made
    counts: Counted
    seconds: float
    bad_places: list[int] = []
    """The places, from 1, of the first rows that were left out because they can't be read."""
    ledger: list[Line] | None = None


class Failed(Record):
    """``failed/*``: why a task could not be done, and the code of the error."""

    sentence: str
    code: str


class Beat(Record):
    """``progress/*``: the progress of a task."""

    tokens: int
    share: float = 0.0
    """How much of the input shard is read, 0 to 1; 0 if its form is not read from front to end."""


R = TypeVar("R", bound=Record)


def record_at(url: str, kind: type[R], damaged: str) -> R | None:
    """Return the record at an address, None if there is none. Raises ArtifactError, which says ``damaged``.

    A record that is not of its kind is read again before that: a store's answer can be cut short.
    """
    for _ in range(2):
        if (data := files.read_if_there(url)) is None:
            return None
        if (record := kind.parse(data)) is not None:
            return record
    raise ArtifactError(damaged)


@dataclass(frozen=True, slots=True)
class Records:
    """A folder of JSON files. Private ones have mode 0600, and each begins with the warning."""

    url: str
    private: bool = True

    def address(self, *parts: str) -> str:
        return files.join(self.url, *parts)

    def close(self) -> None:
        """Make the folder, unless it exists; on a disk it is closed to other users."""
        if files.is_local(self.url):
            disk.make_folder(files.absolute(self.url), private=True)

    def write(self, name: str, record: Record) -> None:
        """Write one record, completely or not at all."""
        files.write_bytes(self.address(name), self._text(record), private=self.private)

    def create(self, name: str, record: Record) -> bool:
        """Write one record unless it exists; say whether this call did. Only one of several parallel calls does."""
        return files.create_bytes(self.address(name), self._text(record), private=self.private)

    def read(self, name: str, kind: type[R]) -> R | None:
        """Return one record, or None. Raises ArtifactError if it is not of this kind."""
        address = self.address(name)
        damaged = f"{address}: this record is damaged; restore it, or remove it and run the same command again."
        return record_at(address, kind, damaged)

    def remove(self, name: str) -> None:
        """Remove one record if it exists."""
        files.remove(self.address(name))

    def names(self, folder: str) -> list[str]:
        """Return the names of the records in a folder of the records."""
        return [name for name in files.listing(self.address(folder)) if name.endswith(".json")]

    def _text(self, record: Record) -> bytes:
        if not self.private:
            return record.data()
        return (json.dumps({"_": WARNING, **record.as_dict()}, indent=1, ensure_ascii=False) + "\n").encode()

"""Unreadable rows, set aside among the private records: one JSON line for each, with its content."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from corpusveil.storage import files
from corpusveil.storage.records import WARNING, Records
from corpusveil.storage.rows import BadRow


def _line(value: dict[str, Any]) -> bytes:
    return (json.dumps(value, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass")


def _address(records: Records, record_name: str) -> str:
    return records.address("quarantine", f"{record_name.removesuffix('.json')}.jsonl")


class Quarantine(contextlib.ExitStack):
    """A context in which one task sets rows aside. The complete file appears if the context ends without an error."""

    def __init__(self, records: Records, record_name: str) -> None:
        super().__init__()
        self._url = _address(records, record_name)
        self._file: Any = None
        self.rows = 0
        self.first = ""

    def add(self, bad: BadRow, sentence: str) -> None:
        if self._file is None:
            self._file = self.enter_context(files.open_write(self._url, private=True))
            self._file.write(_line({"_": WARNING}))
            self.first = sentence
        self.rows += 1
        content = None if bad.content is None else bad.content.decode("utf-8", "backslashreplace")
        self._file.write(_line({"row": bad.number + 1, "why": bad.why, "content": content}))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> bool:
        if kind is None and self._file is None:
            files.remove(self._url)  # from an earlier content of the input
        return bool(super().__exit__(kind, error, trace))

    @staticmethod
    def join(records: Records, pieces: Sequence[str], whole: str) -> None:
        """Join the rows that the pieces of a shard set aside."""
        addresses = [address for piece in pieces if files.exists(address := _address(records, piece))]
        target = _address(records, whole)
        if not addresses:
            files.remove(target)
            return
        with files.open_write(target, private=True) as file:
            for number, address in enumerate(addresses):
                with files.open_read(address) as part:
                    warning = part.readline()
                    if not number:
                        file.write(warning)
                    while data := part.read(1 << 20):
                        file.write(data)

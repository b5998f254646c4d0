"""The properties of an Iceberg or Delta table at a URL, read from its own metadata, without a catalog or a library."""

from __future__ import annotations

import gzip
import io
import json
import re
import zlib
from collections.abc import Iterator
from typing import Any

from corpusveil.errors import BadFileError, ConflictError
from corpusveil.storage import files
from corpusveil.storage.parquet import read_whole

LARGEST = 1 << 28
"""Bytes of metadata that are read."""
_ICEBERG = re.compile(r"(?:v(\d{1,18})|(\d{1,18})-.+?)(?:\.gz)?\.metadata\.json(?:\.gz)?")
_COMMIT = re.compile(r"(\d{20})(?:\.checkpoint\.[0-9a-f-]+)?\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\.(?:.+\.)?parquet")


def properties_of(url: str) -> dict[str, str] | None:
    """Return the properties of the table in a folder, or of one Iceberg metadata file; None if there is no table.

    Raises UserError for damaged metadata, and where only the catalog knows which metadata of Iceberg are current.
    """
    if url.endswith((".metadata.json", ".metadata.json.gz")):
        return _texts(_iceberg(url))
    if names := files.listing(log := files.join(url, "_delta_log")):
        return next((_texts(properties) for properties in _delta(log, names)), None)
    folder = files.join(url, "metadata")
    made = {name: match for name in files.listing(folder) if (match := _ICEBERG.fullmatch(name))}
    if not made:
        return None
    newest = max(int(match[1] or match[2]) for match in made.values())
    last = [name for name, match in made.items() if int(match[1] or match[2]) == newest]
    if len(last) > 1 or len({match[1] is None for match in made.values()}) > 1:
        raise ConflictError(
            f"{folder}: only the catalog knows which of these metadata are current; name the file that it names, "
            "….metadata.json."
        )
    return _texts(_iceberg(files.join(folder, last[0])))


def _iceberg(url: str) -> Any:
    data = files.read_bytes(url)
    try:
        if data[:2] == b"\x1f\x8b":
            data = gzip.GzipFile(fileobj=io.BytesIO(data)).read(LARGEST)
        content = json.loads(data)
    except (ValueError, OSError, EOFError, zlib.error, RecursionError):
        raise _damaged(url) from None
    return content.get("properties", {}) if isinstance(content, dict) else None


def _delta(log: str, names: list[str]) -> Iterator[Any]:
    """Yield the configurations of a table, the newest first: of commits, and of checkpoints for those that are gone."""
    matches = ((name, _COMMIT.fullmatch(name) or _CHECKPOINT.fullmatch(name)) for name in names)
    for _, is_commit, name in sorted(((match[1], match.re is _COMMIT, name) for name, match in matches if match))[::-1]:
        url = files.join(log, name)
        if is_commit:
            for line in reversed(files.read_bytes(url).splitlines()):
                try:
                    action = json.loads(line)
                except (ValueError, RecursionError):
                    raise _damaged(url) from None
                if isinstance(action, dict) and isinstance(about := action.get("metaData"), dict):
                    yield about.get("configuration", {})
            continue
        column = read_whole(url, f"{url}: this checkpoint is damaged.", lambda _: ["metaData"]).column("metaData")
        for about in column.drop_null().to_pylist():
            if isinstance(about, dict) and about.get("configuration") is not None:
                yield dict(about["configuration"])


def _texts(given: Any) -> dict[str, str]:
    """Return properties that can be shown on one line; others are left out."""
    pairs = given.items() if isinstance(given, dict) else ()
    return {name: value for name, value in pairs if isinstance(value, str) and value.isprintable()}


def _damaged(url: str) -> BadFileError:
    return BadFileError(f"{url}: these metadata of a table are damaged; restore the file.")

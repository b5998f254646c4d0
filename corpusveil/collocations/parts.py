"""Partial results in Parquet, sorted by a 64-bit key, from which a part of the key space can be read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from corpusveil.errors import ArtifactError, SettingError
from corpusveil.storage import files
from corpusveil.storage.parquet import opened, sound
from corpusveil.storage.records import Record

_STARTS = b"corpusveil.parts"


class Starts(Record):
    """The number of parts of the key space, and the part of each row group."""

    parts: int
    groups: list[int]


def write(url: str, table: pa.Table, keys: npt.NDArray[np.uint64], parts: int) -> None:
    """Write a sorted table with a row group for each non-empty part, one of 2^k equal ranges of the keys."""
    bits = parts.bit_length() - 1
    part_of_key = keys >> np.uint64(64 - bits) if bits else np.zeros_like(keys)
    starts = np.searchsorted(part_of_key.astype(np.int64), np.arange(parts + 1))
    full = [part for part in range(parts) if starts[part] < starts[part + 1]]
    schema = table.schema.with_metadata({_STARTS: Starts(parts=parts, groups=full).data()})
    plain = {"compression": "lz4", "use_dictionary": False, "write_statistics": False}  # keys are as good as random
    with files.open_write(url) as file, pq.ParquetWriter(file, schema, **plain) as writer:
        for part in full:
            rows = table.slice(starts[part], starts[part + 1] - starts[part])
            writer.write_table(rows.replace_schema_metadata(schema.metadata), row_group_size=max(1, rows.num_rows))


def read(urls: Sequence[str], part: int, parts: int) -> Iterator[pa.Table]:
    """Yield one part from each file that has rows of it. Raises UserError for a damaged file."""
    for url in urls:
        damaged = f"{url}: these counts are damaged; remove them and count again."
        with files.open_read(url) as file, sound(damaged, ArtifactError):
            parquet = opened(file)
            starts = Starts.model_validate_json(parquet.schema_arrow.metadata[_STARTS])
            groups = starts.groups if starts.parts == parts else None
            table = None
            if groups and part in groups:
                table = parquet.read_row_group(groups.index(part), use_threads=False)
        if groups is None:
            raise SettingError(f"{url}: these counts are in {starts.parts} parts, and {parts} are needed; count again.")
        if table is not None:
            yield table

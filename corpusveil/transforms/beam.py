"""A release on a Beam collection of documents: the batch kernel in a batched DoFn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import apache_beam as beam
import pyarrow as pa

from corpusveil.errors import UserError
from corpusveil.transforms.kernel import Kernel
from corpusveil.transforms.release import Release


class PrivatizeDocuments(beam.PTransform):
    """Privatize the string field ``text`` of each document (a mapping or a ``beam.Row``); its other fields stay.

    ``id`` names the field that identifies a document. Two elements with the same id and text get the same output.
    Raises UserError, in the worker, for a document without these fields or whose text is no string.
    """

    def __init__(self, release: Release, text: str = "text", id: str | None = None) -> None:
        super().__init__()
        if id is None:
            raise UserError("A collection has no order to tell documents by; name a field that does: id='...'.")
        self._do = _PrivatizeBatch(release.kernel(), text, id)

    def expand(self, documents: Any) -> Any:
        """Batch the documents, privatize each batch, and give them out one by one."""
        return (
            documents
            | "Batch" >> beam.BatchElements(min_batch_size=16, max_batch_size=4096)
            | "Privatize" >> beam.ParDo(self._do)
        )


class _PrivatizeBatch(beam.DoFn):
    def __init__(self, kernel: Kernel, text: str, identity: str) -> None:
        self._kernel = kernel
        self._text = text
        self._id = identity

    def process(self, element: Sequence[Any]) -> Iterator[Any]:
        rows = [document if isinstance(document, Mapping) else document._asdict() for document in element]
        for name in (self._text, self._id):
            if any(name not in row for row in rows):
                raise UserError(f"{name}: a document has no such field.")
        texts = [row[self._text] for row in rows]
        if not all(text is None or isinstance(text, str) for text in texts):
            raise UserError(f"{self._text}: a document's text is not a string.")
        try:
            column = pa.array(texts, type=pa.large_string())
        except UnicodeEncodeError:
            raise UserError(f"{self._text}: a document holds half a surrogate pair, which is no character.") from None
        out, _ = self._kernel.privatize(column, [row[self._id] for row in rows], self._text)
        for document, row, text in zip(element, rows, out.to_pylist(), strict=True):
            changed = {**row, self._text: text}
            yield changed if isinstance(document, Mapping) else beam.Row(**changed)

"""The Beam YAML transform ``PrivatizeDocuments`` of providers.yaml: a release from a file, its key from a place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import apache_beam as beam
from apache_beam.typehints.row_type import RowTypeConstraint
from apache_beam.typehints.schemas import named_fields_from_element_type
from apache_beam.yaml.yaml_errors import (
    ErrorHandlingConfig,
    exception_handling_args,
    map_errors_to_standard_format,
)

from corpusveil.errors import UnsetError, either, no_column
from corpusveil.ledger.summary import Ledger
from corpusveil.pipelines.resolve import release_of
from corpusveil.pipelines.settings import Settings
from corpusveil.pipelines.settings.sections import CorpusSettings
from corpusveil.pipelines.settings.toml import read
from corpusveil.sampling.keys import PLACES, Key
from corpusveil.storage.rows import Columns
from corpusveil.transforms.beam import PrivatizeDocuments


class PrivatizeFromFile(beam.PTransform):
    """Privatizes the text of documents, as 'corpusveil privatize' does.

    Args:
      release: Path or URL of a configuration of corpusveil, which needs no [corpus] and [output].
      text: The field with the text. Default: that of [corpus], or text.
      id: The field that identifies a document. Default: that of [corpus].
      keep: Fields to copy to the output in the clear, or all. Default: those of [corpus], or none.
      key: Where the key lies: a path, an environment variable or a secret, never the key. Default: that of [key].
      unit: The field with the privacy unit, for cap. Default: that of [ledger].
      cap: For an unbounded collection, the most that a unit may spend in this pipeline.
      error_handling: The output for documents that cannot be processed, unchanged.
    """

    def __init__(
        self,
        release: str,
        text: str | None = None,
        id: str | None = None,
        keep: list[str] | str | None = None,
        key: Mapping[str, str] | None = None,
        unit: str | list[str] | None = None,
        cap: float | None = None,
        error_handling: ErrorHandlingConfig | None = None,
    ) -> None:
        super().__init__()
        settings = read(release, whole=False).settings
        given = {"text": text, "id": id, "keep": [keep] if isinstance(keep, str) else keep}
        corpus = settings.corpus or CorpusSettings(input=["-"])
        corpus = corpus.model_copy(update={name: value for name, value in given.items() if value is not None})
        settings = settings.model_copy(update={"corpus": corpus})
        self._columns = Columns.of(corpus.text, corpus.id, corpus.keep)
        made = release_of(settings.settled(), _key(settings, key))
        ledger = None
        if (of := settings.ledger) is not None:
            unit = unit or of.unit
        if of is not None and of.path is not None:
            caps: dict[str, Any] = {
                "cap": of.cap,
                "cap_token": of.cap_token,
                "cap_ldp": of.cap_ldp,
                "cap_delta": of.cap_delta,
            }
            ledger = Ledger(of.path, **caps, memory=of.memory)
        self._documents = PrivatizeDocuments(
            made, corpus.text, corpus.id, ledger=ledger, unit=unit, corpus=corpus.name, cap=cap
        )
        self._handling = exception_handling_args(error_handling)
        if self._handling is not None:
            self._documents = self._documents.with_exception_handling(**self._handling)

    def expand(self, documents: Any) -> Any:
        """Privatize, and leave out fields that are not kept."""
        fields = dict(named_fields_from_element_type(documents.element_type))
        kept = list(fields) if self._columns.others == "keep" else [self._columns.column, *self._columns.keep]
        for name in {*kept, *self._columns.named} - {*fields}:
            raise no_column(name, list(fields))
        outputs = documents | self._documents
        if self._handling is not None:
            bad = self._handling["dead_letter_tag"]
            outputs[bad] = outputs[bad] | "Errors" >> map_errors_to_standard_format(documents.element_type)
        elif isinstance(outputs, tuple):
            outputs = dict(zip(("good", "over"), outputs, strict=True))
        else:
            outputs = {"good": outputs}
        kind = RowTypeConstraint.from_fields([(name, fields[name]) for name in kept])
        outputs["good"] = outputs["good"] | "Keep" >> beam.Map(_row, kept).with_output_types(kind)
        return outputs


def _row(document: Any, names: list[str]) -> Any:
    return beam.Row(**{name: getattr(document, name) for name in names})


def _key(settings: Settings, given: Mapping[str, str] | None) -> Key:
    """Return the key at the place that is given, or else at that of the settings, in this process's memory."""
    if given is None and settings.key.test:
        return Key.for_tests()
    places = given or settings.key.model_dump(exclude_none=True, exclude={"test"})
    if len(places) != 1:
        raise UnsetError(f"key: name one place of the key, here or in [key], by {either(PLACES)}.")
    return Key.at(*next(iter(places.items())))

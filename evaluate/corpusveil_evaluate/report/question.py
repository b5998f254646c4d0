"""What is asked of a release: the settings of an evaluation, and the artifacts that they name, opened."""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from corpusveil.collocations.artifact import read_artifact
from corpusveil.collocations.collocation_table import Collocations, load_collocations
from corpusveil.errors import SettingError
from corpusveil.passages.store import Store, load_store
from corpusveil.pipelines.settings import Settings, needed
from corpusveil.pipelines.settings.faults import Caller, validated
from corpusveil.spaces import Space, load_space
from corpusveil.spaces.build import build_space
from corpusveil.spaces.vectors import Vectors, read_vectors
from corpusveil.storage import files
from corpusveil_evaluate.settings import EvaluateSettings
from corpusveil_evaluate.statistics.encoders import AveragedVectors, Encoder, SentenceEncoder, made_of
from corpusveil_evaluate.utility.text_classifiers import Model, model_of, sklearn

_ARGUMENTS = Caller(lambda place: place.rpartition(".")[2], lambda value: f" = {value!r}", noun="argument")
"""A program that gave settings as arguments of a call."""


@dataclass(frozen=True, slots=True)
class Question:
    """The settings ``asked``, and opened artifacts.

    Raises UserError for what cannot be done, before anything is measured.
    """

    asked: EvaluateSettings = field(default_factory=EvaluateSettings)
    space: Space | None = None
    store: Store | None = None
    collocations: Collocations | None = None
    encoder: Encoder | None = None
    vectors: Vectors | None = None

    @classmethod
    def from_arguments(cls, **given: Any) -> Self:
        """Return a question from opened artifacts and keys of ``[evaluate]``. Raises UserError for a wrong one."""
        opened = {name: given.pop(name, None) for name in ("space", "store", "collocations", "encoder", "vectors")}
        if opened["space"] is None and opened["store"] is not None:
            opened["space"] = opened["store"].space
        asked = {name: _as_setting(value) for name, value in given.items() if value is not None}
        settings = validated({"evaluate": asked}, _ARGUMENTS)
        return cls(needed(settings.section(EvaluateSettings), "evaluate"), **opened)

    @classmethod
    def opened(cls, settings: Settings) -> Self:
        """Return the question of settings; what ``[evaluate]`` leaves out is that of other sections."""
        asked = needed(settings.section(EvaluateSettings), "evaluate")
        given, table = {}, asked.collocations or settings.text.collocations
        if (of := settings.corpus) is not None:
            given = {"text": of.text, "separator": of.separator}
        space = None if settings.space is None else load_space(settings.space.path)
        kept = settings.store
        store = None if kept is None else load_store(kept.path, space=space, encoder=kept.encoder)
        return cls(
            asked.model_copy(update={name: getattr(asked, name) or other for name, other in given.items()}),
            space if store is None else store.space,
            store,
            None if table is None else load_collocations(table),
            None if asked.encoder is None else SentenceEncoder(asked.encoder),
            None if asked.vectors is None else read_vectors(asked.vectors),
        )

    def __post_init__(self) -> None:
        asked = self.asked
        if self.encoder is not None and self.vectors is not None:
            raise SettingError("Similarity is measured by an encoder or by vectors; leave either out.")
        for name in self.models:
            model_of(name, self.space)
        if asked.counts is not None:
            read_artifact(asked.counts, "counts")
        if asked.label is not None or asked.attribute is not None:
            sklearn()

    @property
    def models(self) -> list[str]:
        """The names of the models."""
        return list(dict.fromkeys(self.asked.models or ["tfidf"]))

    @property
    def columns(self) -> list[str]:
        """The further columns of the original that are read."""
        return [name for name in (self.asked.label, self.asked.attribute) if name is not None]

    def classifiers(self) -> list[Model]:
        """Return the models, which all attackers have too."""
        return [model_of(name, self.space) for name in self.models]

    def encoder_or_vectors(self) -> Encoder | None:
        """Return the encoder for similarity of meaning, or None.

        Its label says if the mechanism moved words in its vectors.
        """
        if self.encoder is not None:
            return self.encoder
        if self.vectors is not None:
            return _averaged(self.vectors, self.space)
        return None if self.space is None else AveragedVectors(self.space, centered=True, moved_in=True)


def _as_setting(value: Any) -> Any:
    """Return an argument as a setting has it: text, a number or a list of these."""
    if isinstance(value, os.PathLike):
        return files.as_text(value)
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_as_setting(each) for each in value]
    return value


@functools.lru_cache(maxsize=1)
def _averaged(vectors: Vectors, space: Space | None) -> AveragedVectors:
    """Return the encoder of given vectors; its label says if a release's space is made from them."""
    moved_in = space is not None and made_of(space, vectors)
    own_space = build_space(vectors, lists=0)
    return AveragedVectors(own_space, centered=True, of=f"vectors of {vectors.source}", moved_in=moved_in)

"""One tree of settings for all flows, declared once for the command line, TOML files, templates and programs."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from corpusveil.errors import ConflictError, UnsetError
from corpusveil.pipelines.settings import rules
from corpusveil.pipelines.settings.fields import declared, fault, is_demo
from corpusveil.pipelines.settings.sections import (
    AuditSettings,
    BudgetSettings,
    CollocationsSettings,
    CorpusSettings,
    DenoiseSettings,
    EmbeddingsSettings,
    EngineSettings,
    EvaluateSettings,
    KeySettings,
    LedgerSettings,
    LengthSettings,
    MechanismSettings,
    ModelSettings,
    OutputSettings,
    ScheduleSettings,
    SpaceSettings,
    TextSettings,
)


class Settings(BaseModel):
    """Every section; a section that is None is not requested."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True, hide_input_in_errors=True)

    collocations: CollocationsSettings | None = None
    embeddings: EmbeddingsSettings | None = None
    model: ModelSettings | None = None
    space: SpaceSettings | None = None
    corpus: CorpusSettings | None = None
    mechanism: MechanismSettings | None = None
    budget: BudgetSettings | None = None
    text: TextSettings = Field(default_factory=TextSettings)
    length: LengthSettings = Field(default_factory=LengthSettings)
    key: KeySettings = Field(default_factory=KeySettings)
    ledger: LedgerSettings | None = None
    engine: EngineSettings = Field(default_factory=EngineSettings)
    output: OutputSettings | None = None
    denoise: DenoiseSettings | None = None
    audit: AuditSettings | None = None
    evaluate: EvaluateSettings | None = None
    schedule: ScheduleSettings = Field(default_factory=ScheduleSettings)

    @model_validator(mode="after")
    def _that_go_together(self) -> Self:
        for place, sentence in rules.broken(self):
            raise fault(place, sentence, ConflictError)
        for place, sentence in rules.lacking(self):
            raise fault(place, sentence, UnsetError)
        return self

    def value(self, place: str) -> Any:
        """Return the value of ``section.key``; None if the section is not requested."""
        section, _, name = place.partition(".")
        return getattr(getattr(self, section), name, None)

    def is_given(self, place: str) -> bool:
        """Say whether ``section.key`` was given explicitly."""
        section, _, name = place.partition(".")
        return name in getattr(getattr(self, section), "model_fields_set", ())

    def changed(self, **sections: dict[str, Any]) -> Settings:
        """Return the settings with other values in some sections; they are not checked again."""
        made = {name: getattr(self, name).model_copy(update=values) for name, values in sections.items()}
        return self.model_copy(update=made)

    def demos(self, folder: str = "") -> dict[str, Literal["space", "model"]]:
        """Return the places that name the demo's space or model, neither a folder nor what these settings make."""
        made = {
            "space": self.embeddings is not None or bool(self.value("space.vectors")),
            "model": self.model is not None and bool(self.model.counts or self.value("collocations.counts")),
        }
        return {
            one.place: one.told.demo
            for one in declared(Settings)
            if one.told.demo is not None and not made[one.told.demo] and is_demo(self.value(one.place), folder)
        }

    def needed(self, *names: str) -> tuple[Any, ...]:
        """Return sections that a flow requires. Raises UserError for a missing section."""
        for name in names:
            if getattr(self, name) is None:
                raise UnsetError(f"[{name}]: this section is missing; add it to the settings.")
        return tuple(getattr(self, name) for name in names)


__all__ = [
    "AuditSettings", "BudgetSettings", "CollocationsSettings", "CorpusSettings", "DenoiseSettings",
    "EmbeddingsSettings", "EngineSettings", "EvaluateSettings", "KeySettings", "LedgerSettings", "LengthSettings",
    "MechanismSettings", "ModelSettings", "OutputSettings", "ScheduleSettings", "Settings", "SpaceSettings",
    "TextSettings",
]  # fmt: skip

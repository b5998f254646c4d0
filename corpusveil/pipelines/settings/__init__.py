"""One tree of settings for all flows, declared once for the command line, TOML files, templates and programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, create_model, model_validator

from corpusveil.choices import STRATEGIES
from corpusveil.errors import PackageError, SettingError
from corpusveil.pipelines.fields import SECTIONS, Section, declared, fault
from corpusveil.pipelines.settings import artifact_sections, rules, sections

T = TypeVar("T", bound=Section)
N = TypeVar("N")


class _OwnSettings(BaseModel):
    """Every section of this package; a section that is None is not requested."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True, hide_input_in_errors=True)

    collocations: artifact_sections.CollocationsSettings | None = None
    embeddings: artifact_sections.EmbeddingsSettings | None = None
    space: artifact_sections.SpaceSettings | None = None
    store: artifact_sections.StoreSettings | None = None
    corpus: sections.CorpusSettings | None = None
    mechanism: sections.MechanismSettings | None = None
    budget: sections.BudgetSettings | None = None
    text: sections.TextSettings = Field(default_factory=sections.TextSettings)
    spans: sections.SpansSettings = Field(default_factory=sections.SpansSettings)
    key: sections.KeySettings = Field(default_factory=sections.KeySettings)
    ledger: sections.LedgerSettings | None = None
    engine: sections.EngineSettings = Field(default_factory=sections.EngineSettings)
    output: sections.OutputSettings | None = None
    schedule: sections.ScheduleSettings = Field(default_factory=sections.ScheduleSettings)

    @model_validator(mode="before")
    @classmethod
    def _of_a_strategy(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Return the values with those of a strategy written out."""
        budget, text = given.get("budget"), given.get("text", {})
        if not (isinstance(budget, dict) and isinstance(text, dict)):  # which is refused as what it is
            return given
        filled: dict[str, dict[str, Any]] = {"budget": dict(budget), "text": dict(text)}
        for place, value in STRATEGIES.get(str(budget.get("strategy")), {}).items():
            section, _, name = place.partition(".")
            own = filled[section].setdefault(name, value)
            if own != value:
                sentence = f"{own} contradicts the strategy {budget['strategy']}, which sets {value}; leave either out"
                raise fault(place, sentence, SettingError)
        return given | filled if "strategy" in budget else given

    @model_validator(mode="after")
    def _that_go_together(self) -> Self:
        for place, sentence in rules.broken(self):
            raise fault(place, sentence, SettingError)
        return self

    def value(self, place: str) -> Any:
        """Return the value of ``section.key``; None if the section is not requested."""
        section, _, name = place.partition(".")
        return getattr(getattr(self, section), name, None)

    def section(self, kind: type[T]) -> T | None:
        """Return the section of a type, such as one that another package added; None if it is not requested."""
        values = (getattr(self, name) for name in type(self).model_fields)
        return next((value for value in values if isinstance(value, kind)), None)

    def is_given(self, place: str) -> bool:
        """Say whether ``section.key`` was given explicitly."""
        section, _, name = place.partition(".")
        return name in getattr(getattr(self, section), "model_fields_set", ())

    def changed(self, **changes: dict[str, Any]) -> Self:
        """Return the settings with other values in some sections; they are not checked again."""
        made = {name: getattr(self, name).model_copy(update=values) for name, values in changes.items()}
        return self.model_copy(update=made)

    def with_names(self, folder: str = "") -> Self:
        """Return the settings with addresses where they name an installed space.

        A folder of that name, relative to ``folder``, comes first, and so does what these settings make there.
        """
        from corpusveil.spaces.installed import SCHEME, is_name

        made = set()
        if self.embeddings is not None or self.value("space.vectors"):
            made.add(self.value("space.path"))
        if self.value("collocations.counts"):
            made.add(self.value("collocations.table"))
        if self.value("store.input"):
            made.add(self.value("store.path"))
        changes: dict[str, dict[str, Any]] = {}
        for setting in declared(Settings):
            address: Any = self.value(setting.setting) if setting.named else None
            if address not in made and is_name(address, folder):
                changes.setdefault(setting.name, {})[setting.key] = SCHEME + address
        return self.changed(**changes)


if TYPE_CHECKING:
    Settings = _OwnSettings
else:
    if taken := _OwnSettings.model_fields.keys() & {*SECTIONS.names()}:
        raise PackageError(f"Another package provides the section {min(taken)}, which is of corpusveil; uninstall it.")
    _added = {name: (SECTIONS.find(name) | None, None) for name in SECTIONS.names()}
    Settings = create_model("Settings", __base__=_OwnSettings, __module__=__name__, **_added)
    Settings.__doc__ = "Every section, those of other packages last; a section that is None is not requested."


def started(*sections: str) -> dict[str, dict[str, Any]]:
    """Return the values of sections in a new file, which *privatize*, *preview* and calls of Python need not name.

    A name among them is that of an installed space, whatever folders there are.
    """
    from corpusveil.spaces.installed import SCHEME

    made: dict[str, dict[str, Any]] = {section: {} for section in sections}
    for setting in declared(Settings):
        if setting.name in made and setting.start is not None:
            made[setting.name][setting.key] = SCHEME + setting.start if setting.named else setting.start
    return made


def needed(given: N | None, name: str) -> N:
    """Return a section, or the value of a key, that a flow requires. Raises UserError if it is missing."""
    if given is None:
        raise SettingError(f"{name if '.' in name else f'[{name}]'}: this is missing; add it to the settings.")
    return given

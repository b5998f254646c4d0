"""Presets: the settings of a study's profile and of a collocation strategy, and contradictions to them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from corpusveil.transforms.release.profiles import PROFILES
from corpusveil.transforms.release.strategies import STRATEGIES

if TYPE_CHECKING:
    from corpusveil.pipelines.settings import Settings

_OF_BUDGET = ("per", "allocation")


def _presets(settings: Settings) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the settings of presets, by place, with the presets' names; later presets override earlier ones."""
    budget, mechanism = settings.budget, settings.mechanism
    if budget is not None and budget.profile is not None and mechanism is not None:
        profile = PROFILES[budget.profile]
        found = {f"mechanism.{name}": value for name, value in profile.parameters.get(mechanism.name, {}).items()}
        yield f"profile {profile.name}", found | _placed({"per": profile.per, **profile.text})
    if budget is not None and budget.strategy is not None:
        yield f"strategy {budget.strategy}", _placed(STRATEGIES[budget.strategy])


def _placed(values: Any) -> dict[str, Any]:
    return {f"{'budget' if name in _OF_BUDGET else 'text'}.{name}": value for name, value in values.items()}


def contradictions(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield given settings that contradict a preset, with a sentence for each."""
    for preset, own in _presets(settings):
        for place, value in own.items():
            given = settings.value(place)
            if given != value and (settings.is_given(place) or (place.startswith("mechanism.") and given is not None)):
                yield place, f"{given} contradicts the {preset}, which sets {value}; leave either out"


def settled(settings: Settings) -> Settings:
    """Return the settings with the settings of their presets written out."""
    sections: dict[str, dict[str, Any]] = {}
    for _, own in _presets(settings):
        for place, value in own.items():
            section, _, name = place.partition(".")
            sections.setdefault(section, {})[name] = value
    return settings.changed(**sections)

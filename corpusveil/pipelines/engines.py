"""The engine that settings name, found by the registry of jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpusveil.jobs import registry

if TYPE_CHECKING:
    from corpusveil.pipelines.settings import EngineSettings
    from corpusveil.storage.engine import Engine


def make_engine(settings: EngineSettings) -> Engine:
    """Return the engine that settings name, ready to run."""
    return registry.make_engine(settings.name, **settings.chosen())

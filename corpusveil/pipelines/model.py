"""From n-gram counts of public text to a language model."""

from __future__ import annotations

import time
from typing import Any

from corpusveil.errors import UnsetError
from corpusveil.language.modelling import Pruning, build_model
from corpusveil.pipelines.collocations import said_when_made
from corpusveil.pipelines.engines import make_engine
from corpusveil.pipelines.settings import Settings
from corpusveil.pipelines.watch import Watch
from corpusveil.storage.engine import Engine


def build(settings: Settings, watch: Watch, engine: Engine | None = None) -> dict[str, Any]:
    """Make the language model of the counts; return its description."""
    (chosen,) = settings.needed("model")
    counts, output, began = chosen.counts or settings.value("collocations.counts"), chosen.path, time.monotonic()
    if counts is None:
        raise UnsetError("model.counts: this setting is missing; name the counts that the model is made from.")
    pruning = Pruning(chosen.min_count, chosen.min_bigram, chosen.min_trigram)
    with said_when_made(output, watch):
        told = build_model(counts, output, engine or make_engine(settings.engine), pruning, watch=watch.stage)
    sizes = ", ".join(f"{told[name]:,} {name}" for name in ("words", "bigrams", "trigrams"))
    watch.say(f"{output}: {sizes}; {time.monotonic() - began:.1f} s\nsha256 {told['digest']}")
    return told

"""A forecast of what a release would read, write, take and spend, from a sample."""

from __future__ import annotations

from corpusveil.pipelines.privatize import prepare
from corpusveil.pipelines.settings import Settings
from corpusveil.pipelines.watch import Watch
from corpusveil.storage.inputs import find_shards
from corpusveil.transforms.release.planning import Forecast, count_duplicates, forecast


def plan(settings: Settings, watch: Watch | None = None, *, duplicates: bool = False) -> Forecast:
    """Print the forecast of the release; with ``duplicates``, also read everything and count equal documents.

    Nothing is written, and no key is made.
    """
    watch = watch or Watch()
    (corpus,) = settings.needed("corpus")
    prepared = prepare(settings, watch, make_key=False)
    made = forecast(prepared.run(settings))
    for line in made.lines(settings.engine.workers or 1):
        watch.say(line)
    if settings.denoise is not None:
        watch.say(f"{settings.denoise.path}: denoised from this release; that spends nothing, and no ledger counts it")
    if duplicates:
        watch.say(count_duplicates(find_shards(corpus.input), prepared.columns).sentence())
    return made

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
    corpus, output = settings.needed("corpus", "output")
    prepared = prepare(settings, watch, make_key=False)
    found = forecast(
        prepared.release, corpus.input, columns=prepared.columns, root=corpus.root, corpus=corpus.name,
        format=output.format, on_bad_rows=output.on_bad_rows, spending=prepared.spending,
    )  # fmt: skip
    for line in found.lines(settings.engine.workers or 1):
        watch.say(line)
    if settings.denoise is not None:
        watch.say(f"{settings.denoise.path}: denoised from this release; that spends nothing, and no ledger counts it")
    if duplicates:
        watch.say(count_duplicates(find_shards(corpus.input), prepared.columns).sentence())
    return found

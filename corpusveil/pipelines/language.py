"""From n-gram counts of public text to a language model, and by it from a release to a readable one."""

from __future__ import annotations

import time
from typing import Any

from corpusveil.collocations.collocation_table import load_collocations
from corpusveil.display import several
from corpusveil.errors import UnsetError
from corpusveil.language import modelling
from corpusveil.language.denoise import NO_FACTS, Search
from corpusveil.language.model import load_model
from corpusveil.pipelines.collocations import said_when_made
from corpusveil.pipelines.settings import Settings, needed
from corpusveil.pipelines.watch import Watch
from corpusveil.spaces import load_space
from corpusveil.transforms.release import denoise_corpus


def build_model(settings: Settings, watch: Watch) -> dict[str, Any]:
    """Make the language model of the counts; return its description."""
    chosen, counted, began = needed(settings.model, "model"), settings.collocations, time.monotonic()
    counts, output = chosen.counts or (None if counted is None else counted.counts), chosen.path
    if counts is None:
        raise UnsetError("model.counts: this setting is missing; name the counts that the model is made from.")
    pruning = modelling.Pruning(chosen.min_count, chosen.min_bigram, chosen.min_trigram)
    with said_when_made(output, watch):
        made = modelling.build_model(
            counts, output, settings.engine.make(), pruning, sample=chosen.sample, watch=watch.stage
        )
    sizes = ", ".join(f"{made[name]:,} {name}" for name in ("words", "bigrams", "trigrams"))
    watch.say(f"{output}: {sizes}; {time.monotonic() - began:.1f} s\nsha256 {made['digest']}")
    return made


def denoise(settings: Settings, watch: Watch) -> denoise_corpus.Denoised:
    """Denoise a release; finished work is not repeated."""
    chosen, space = needed(settings.denoise, "denoise"), needed(settings.space, "space")
    release = chosen.release or needed(settings.output, "output").path
    table = chosen.collocations or settings.text.collocations
    made = denoise_corpus.denoise(
        release, chosen.path, space=load_space(space.path),
        model=load_model(chosen.model or needed(settings.model, "model").path),
        collocations=None if table is None else load_collocations(table),
        search=Search(margin=chosen.margin), engine=settings.engine.make(), watch=watch.shards,
    )  # fmt: skip
    if not made.words:
        documents = several(made.documents, "document is", "documents are")
        watch.warn(f"{chosen.path}: {documents} already denoised; nothing was done.")
        return made
    done = f"{several(made.tokens, 'token')}, {made.words:,} of them drawn words"
    done += f", of which {made.words - made.unchanged:,} became likelier ones"
    watch.say(
        f"{chosen.path}: {several(made.documents, 'document')}; {done}; {made.words / made.seconds:,.0f} words/s\n"
        f"sha256 {made.content_sha256}\nThe guarantee of {release} holds unchanged if the model is public; nothing was "
        f"spent.\n{NO_FACTS}"
    )
    return made

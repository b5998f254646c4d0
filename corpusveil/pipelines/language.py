"""From a release to a readable one, by a language model of public text."""

from __future__ import annotations

from corpusveil.collocations.collocation_table import load_collocations
from corpusveil.display import several
from corpusveil.language.denoise import NO_FACTS, Search
from corpusveil.language.model import load_model
from corpusveil.pipelines.settings import Settings, needed
from corpusveil.pipelines.watch import Watch
from corpusveil.spaces import load_space
from corpusveil.transforms.release import denoise_corpus


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

"""From a release to a readable one, by public artefacts alone."""

from __future__ import annotations

from corpusveil.collocations.collocation_table import load_collocations
from corpusveil.display import several
from corpusveil.errors import UnsetError
from corpusveil.language.denoise import NO_FACTS, Search
from corpusveil.language.model import load_model
from corpusveil.pipelines.engines import make_engine
from corpusveil.pipelines.settings import Settings
from corpusveil.pipelines.watch import Watch
from corpusveil.spaces import load_space
from corpusveil.storage.engine import Engine
from corpusveil.transforms.release.denoise_corpus import Denoised, denoise


def run(settings: Settings, watch: Watch | None = None, engine: Engine | None = None) -> Denoised:
    """Denoise a release; finished work is not repeated."""
    watch = watch or Watch()
    chosen, space = settings.needed("denoise", "space")
    release = chosen.release or settings.value("output.path")
    model = chosen.model or settings.value("model.path")
    for name, value in (("release", release), ("model", model)):
        if value is None:
            raise UnsetError(f"denoise.{name}: this setting is missing; add it.")
    table = chosen.collocations or settings.value("text.collocations")
    made = denoise(
        release, chosen.path, space=load_space(space.path), model=load_model(model),
        collocations=None if table is None else load_collocations(table),
        search=Search(
            aim=chosen.aim, candidates=chosen.candidates, width=chosen.width, unknown_share=chosen.unknown_share,
            margin=chosen.margin,
        ),
        engine=engine or make_engine(settings.engine), watch=watch.shards,
    )  # fmt: skip
    if not made.words:
        documents = several(made.documents, "document is", "documents are")
        watch.warn(f"{chosen.path}: {documents} already denoised; nothing was done.")
        return made
    watch.say(
        f"{chosen.path}: {several(made.documents, 'document')}; {made.words - made.unchanged:,} of {made.words:,} "
        f"words were replaced; {made.words / made.seconds:,.0f} words/s\nsha256 {made.content_sha256}\nThe guarantee "
        f"of {release} holds unchanged if the model is public; nothing was spent.\n{NO_FACTS}"
    )
    return made

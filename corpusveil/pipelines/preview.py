"""The first texts of a corpus before, after and denoised, at several epsilons; nothing is written, nothing is spent."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from corpusveil.budget import Budget
from corpusveil.errors import DataError, UserError
from corpusveil.language.denoise import MARGIN, Denoiser, Search
from corpusveil.language.model import LanguageModel, load_model
from corpusveil.mechanisms.on_lists import OnLists
from corpusveil.mechanisms.risk import WordRisk, word_risk
from corpusveil.pipelines.resolve import pseudonym_unit, release_of
from corpusveil.pipelines.settings import Settings, needed
from corpusveil.pipelines.settings.sections import BudgetSettings, OutputSettings
from corpusveil.pipelines.watch import Watch, tell_doubts
from corpusveil.sampling.keys import Key
from corpusveil.storage.inputs import find_shards
from corpusveil.storage.reading import reading, refuse
from corpusveil.storage.rows import Columns
from corpusveil.storage.tasks import plan
from corpusveil.text.counts import Counts
from corpusveil.transforms.release.corpus import name_of_corpus
from corpusveil.transforms.release.job import units_in
from corpusveil.transforms.release.release import Release
from corpusveil.waiting import waiting

TEXTS = 5
ROWS = 200
"""The number of rows of the first shard in which texts are sought; empty texts are skipped."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """The texts at one epsilon: ``denoised`` is None without a model, or without a law that a reader could use."""

    epsilon: float
    texts: list[str]
    denoised: list[str] | None
    unchanged: float
    """The share of known words that stays unchanged."""
    risk: WordRisk | None
    """What an informed reader guesses; None if computing it takes long."""


@dataclass(frozen=True, slots=True)
class Preview:
    """The content of a preview. All of it is private."""

    before: list[str]
    drawn: list[Drawn]
    counts: Counts
    """That of the texts above, not of the corpus."""


def preview(settings: Settings, epsilons: Sequence[float], watch: Watch) -> Preview:
    """Privatize the first texts at each epsilon per token, under the key of the settings or a throwaway key.

    With the same key, settings and corpus name, 'privatize' writes the same texts. Raises UserError if the input has no
    text, and for settings that no release can have.
    """
    model = None if settings.model is None else load_model(settings.model.path)
    key = Key.generate() if settings.key.path is None else Key.load(settings.key.path)
    output = OutputSettings(path="-", accept_no_guarantee=True)
    of_first = settings.model_copy(update={"budget": BudgetSettings(epsilon=epsilons[0]), "output": output})
    first = release_of(of_first, key)
    mechanism, policy, corpus = first.mechanism, first.policy, needed(settings.corpus, "corpus")
    columns = Columns(corpus.text, corpus.id, separator=corpus.separator, unit=pseudonym_unit(settings))
    before, ids, units = _first_texts(settings, columns)
    tell_doubts(first, pa.array(before, pa.large_string()), watch)
    counts, drawn = Counts(), []
    for epsilon in epsilons:
        release = dataclasses.replace(first, budget=Budget(epsilon))
        with waiting(f"drawing at epsilon {epsilon:.4g}"):
            made, counts = release.kernel().privatize(pa.array(before, pa.large_string()), ids, columns.text, units)
            texts = made.to_pylist()
            drawn.append(Drawn(
                epsilon, texts, _denoised(release, model, texts), mechanism.retention(epsilon),
                word_risk(mechanism, epsilon, policy=policy) if isinstance(mechanism, OnLists) else None,
            ))  # fmt: skip
    return Preview(before, drawn, counts)


def _first_texts(settings: Settings, columns: Columns) -> tuple[list[str], list[object], list[str]]:
    """Return the first texts of the corpus that are not blank, and their identities and units in a release."""
    corpus = needed(settings.corpus, "corpus")
    shards = find_shards(corpus.input, corpus.root)
    name = name_of_corpus(corpus.name, shards)
    task = dataclasses.replace(plan(shards, None, None)[0], stop=ROWS)
    first: list[tuple[str, object, str]] = []
    with reading(task, columns.drawn, aside=refuse) as (batches, _):
        for batch in batches:
            texts, units = batch.texts.to_pylist(), units_in(batch, columns, task)
            rows = zip(texts, batch.identities(name, task.relative), units or [""] * len(texts), strict=True)
            first += [row for row in rows if row[0] and row[0].strip()]
    if not first:
        raise DataError(
            f"{task.url}: the column {corpus.text} has no text in the first {ROWS} rows; name another column."
        )
    before, ids, scopes = zip(*first[:TEXTS], strict=True)
    return list(before), list(ids), list(scopes)


def _denoised(release: Release, model: LanguageModel | None, texts: list[str]) -> list[str] | None:
    """Return the likeliest originals of the drawn words, as any reader of a release could compute them."""
    if model is None:
        return None
    try:
        parts = release.mechanism, release.budget, release.policy, model, Search(margin=MARGIN), release.collocations
        return Denoiser(*parts, spans=release.spans is not None).readable(texts)
    except UserError:  # no closed form, or no epsilon that a reader knows
        return None

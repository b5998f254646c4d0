"""Texts before and after, at several epsilons; nothing is written, nothing is spent."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from corpusveil.budget.budget import written
from corpusveil.display import Card, Shown
from corpusveil.errors import DataError
from corpusveil.pipelines.resolve import release_of
from corpusveil.pipelines.settings import Settings, needed
from corpusveil.pipelines.settings.sections import BudgetSettings, OutputSettings
from corpusveil.sampling.keys import Key
from corpusveil.spaces.installed import SCHEME
from corpusveil.storage.documents import Documents
from corpusveil.storage.inputs import find_shards, folder_of
from corpusveil.storage.reading import reading
from corpusveil.storage.rows import Columns
from corpusveil.storage.tasks import plan
from corpusveil.transforms.release.promises import NO_AUTHOR
from corpusveil.waiting import waiting

TEXTS = 5
ROWS = 200
"""The number of rows of the first shard in which texts are sought; empty texts are skipped."""
SHOWN = 400
"""Characters of each text."""
Row: TypeAlias = tuple[str, object]
"""A text with its identity."""
PRIVATE = "PRIVATE: this shows original text. Nothing was written, and nothing was spent."


@dataclass(frozen=True, slots=True)
class Drawn:
    """The texts drawn at one epsilon, under a heading."""

    name: str
    epsilon: float
    texts: list[str]
    said: str
    """What the epsilon means: the share of unchanged words, and what a reader recovers at the epsilon of a risk."""


@dataclass(frozen=True, slots=True, repr=False)
class Preview(Shown):
    """What a preview shows: texts before, and at each epsilon. All of it is private."""

    before: list[str]
    drawn: list[Drawn]
    made_by: str

    def card(self) -> Card:
        """Return everything as a card; of a text, the beginning."""
        fields: list[tuple[str, str | Sequence[str]]] = [("", [self.made_by, *(drawn.said for drawn in self.drawn)])]
        for number, text in enumerate(self.before):
            fields.append((f"text {number + 1}", _shown(text)))
            fields += [(drawn.name, _shown(drawn.texts[number])) for drawn in self.drawn]
        return Card(PRIVATE, fields)


def preview(settings: Settings, epsilons: Sequence[float]) -> Preview:
    """Privatize the first texts of the corpus at each epsilon per token, and at that of the settings' risk.

    With the same key, settings and corpus name, 'privatize' writes the same texts. Raises UserError if the input has no
    text, and for settings that no release can have.
    """
    corpus = needed(settings.corpus, "corpus")
    columns = Columns(corpus.text, corpus.id, separator=corpus.separator)
    rows = _first_rows(settings, columns)
    texts = pa.array([text for text, _ in rows], pa.large_string())
    key = Key.generate() if settings.key.path is None else Key.load(settings.key.path)
    named = "A throwaway key: the next preview will differ." if settings.key.path is None else (
        f"Key {settings.key.path}."
    )  # fmt: skip
    return previewed([(settings, epsilons)], rows, texts, columns.text, key, named)


def previewed(
    ways: Sequence[tuple[Settings, Sequence[float]]], rows: Sequence[Row], sample: pa.Array, column: str, key: Key,
    key_in_words: str,
) -> Preview:  # fmt: skip
    """Privatize the first rows of text and identity under a key, by each of these settings at its epsilons.

    No release may be made of the ``sample``.
    """
    before, ids = (list(values) for values in zip(*rows[:TEXTS], strict=True))
    documents = Documents(pa.array(before, pa.large_string()), ids, column)
    made = [(_made_by(settings), _drawn(settings, epsilons, documents, sample, key)) for settings, epsilons in ways]
    said = [*dict.fromkeys(made_by for made_by, _ in made), key_in_words]
    return Preview(before, [shown for _, drawn in made for shown in drawn], " ".join(said))


def _drawn(
    settings: Settings, epsilons: Sequence[float], documents: Documents, sample: pa.Array, key: Key
) -> list[Drawn]:
    """Privatize documents at the settings' risk, if they have one, and at each epsilon."""
    output, risk = settings.output, settings.value("budget.risk")
    if settings.store is None:
        output = OutputSettings(path="-", accept_no_guarantee=True)
        budget = BudgetSettings(risk=risk) if risk is not None else BudgetSettings(epsilon=epsilons[0])
    else:
        budget = (settings.budget or BudgetSettings()).model_copy(update={"epsilon": epsilons[0]})
    first = release_of(settings.model_copy(update={"budget": budget, "output": output}), key)
    first.refuse(sample)
    doing = "drawing" if settings.store is None else "looking for passages"
    shown: list[Drawn] = []
    for release in ([] if risk is None else [first]) + [first.at(epsilon) for epsilon in epsilons]:
        epsilon = release.configuration()["budget"]["epsilon"]
        at = f"epsilon {written(epsilon)}"
        with waiting(f"{doing} at {at}"):
            texts = release.kernel().apply(documents)[0].to_pylist()
        chose = getattr(release, "risk", None)
        said = [f"{at}: {release.law().rstrip('.')}", *([] if chose is None else [chose.sentence()])]
        name = at if settings.store is None else f"passage, {at}"
        shown.append(Drawn(name, epsilon, texts, f"{'. '.join(said)}."))
    return shown


def _made_by(settings: Settings) -> str:
    if settings.store is not None:
        facts = "" if settings.store.accept_overlap else f" {NO_AUTHOR}"
        return f"Store {settings.store.path.removeprefix(SCHEME)}, passage-exchange.{facts}"
    space, mechanism = needed(settings.space, "space").path, needed(settings.mechanism, "mechanism").name
    return f"Space {space.removeprefix(SCHEME)}, mechanism {mechanism}."


def _first_rows(settings: Settings, columns: Columns) -> list[Row]:
    """Return the first texts of the corpus that are not blank, and what a release knows of them."""
    corpus = needed(settings.corpus, "corpus")
    shards = find_shards(corpus.input, corpus.root)
    name = corpus.name or folder_of(shards)
    task = dataclasses.replace(plan(shards, None, None)[0], stop=ROWS)
    first: list[Row] = []
    with reading(task, columns) as shard:
        for batch in shard.batches:
            rows = zip(batch.texts.to_pylist(), batch.identities(name, task.relative), strict=True)
            first += [row for row in rows if row[0] and row[0].strip()]
    if not first:
        raise DataError(
            f"{task.url}: the column {corpus.text} has no text in the first {ROWS} rows; name another column."
        )
    return first


def _shown(text: str) -> str:
    plain = " ".join("".join(character if character.isprintable() else " " for character in text).split())
    return plain[:SHOWN] + ("…" if len(plain) > SHOWN else "")

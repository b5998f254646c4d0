"""Texts before and after, at several epsilons; nothing is written, nothing is spent."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from corpusveil.display import Card, Shown
from corpusveil.errors import DataError
from corpusveil.pipelines.resolve import mechanism_of, release_of
from corpusveil.pipelines.settings import Settings, needed
from corpusveil.pipelines.settings.sections import BudgetSettings, OutputSettings
from corpusveil.sampling.keys import Key
from corpusveil.spaces.installed import SCHEME
from corpusveil.storage.documents import Documents
from corpusveil.storage.inputs import find_shards
from corpusveil.storage.reading import reading, refuse
from corpusveil.storage.rows import Columns
from corpusveil.storage.tasks import plan
from corpusveil.transforms.release.corpus import name_of_corpus
from corpusveil.transforms.release.promises import NO_AUTHOR
from corpusveil.transforms.release.risk import epsilon_at
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
    """The texts at one epsilon."""

    epsilon: float
    texts: list[str]
    said: str
    """What the epsilon means: the share of unchanged words, and what a reader recovers at the epsilon of a risk."""
    of_passages: bool = False

    @property
    def name(self) -> str:
        """What is drawn, and its epsilon."""
        return f"{'passage, ' * self.of_passages}epsilon {self.epsilon:.4g}"


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

    def table(self) -> pa.Table:
        """Return a row for each text at each epsilon: text (its number), unit, epsilon, before, after; private."""
        rows = [
            {"text": number, "unit": "passage" if drawn.of_passages else "words", "epsilon": drawn.epsilon,
             "before": before, "after": drawn.texts[number]}
            for drawn in self.drawn for number, before in enumerate(self.before)
        ]  # fmt: skip
        return pa.Table.from_pylist(rows)

    def beside(self, others: Sequence[Preview], key_in_words: str) -> Preview:
        """Return this preview with what others, under the same key, show of the same texts."""
        made_by = " ".join(dict.fromkeys([*(shown.made_by for shown in (self, *others)), key_in_words]))
        every = [*self.drawn, *(drawn for other in others for drawn in other.drawn)]
        return dataclasses.replace(self, drawn=every, made_by=made_by)


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
    return drawn(settings, epsilons, rows[:TEXTS], texts, columns.text, key, named)


def drawn(
    settings: Settings, epsilons: Sequence[float], rows: Sequence[Row], sample: pa.Array,
    column: str, key: Key, key_in_words: str,
) -> Preview:  # fmt: skip
    """Privatize rows of text and identity under a key; the release must not be made of the ``sample``."""
    risk, output, budget = None, settings.output, settings.budget
    if settings.store is None:
        output, budget = OutputSettings(path="-", accept_no_guarantee=True), None
        if (asked := settings.value("budget.risk")) is not None:
            risk = epsilon_at(mechanism_of(settings), asked, settings.text.policy())
    every = [*([] if risk is None else [risk.epsilon]), *epsilons]
    budget = (budget or BudgetSettings(epsilon=every[0])).model_copy(update={"epsilon": every[0]})
    first = release_of(settings.model_copy(update={"budget": budget, "output": output}), key)
    first.refuse(sample)
    before, ids = (list(column) for column in zip(*rows, strict=True))
    documents = Documents(pa.array(before, pa.large_string()), ids, column)
    doing = "drawing" if settings.store is None else "looking for passages"
    shown: list[Drawn] = []
    for epsilon in every:
        with waiting(f"{doing} at epsilon {epsilon:.4g}"):
            release = first.at(epsilon)
            texts = release.kernel().apply(documents)[0].to_pylist()
        law = f"epsilon {epsilon:.4g}: {release.law().rstrip('.')}"
        read = "" if risk is None or epsilon != risk.epsilon else f"; {risk.sentence()}"
        shown.append(Drawn(epsilon, texts, f"{law}{read}.", release.counted == "piece"))
    if settings.store is not None:
        facts = "" if settings.store.accept_overlap else f" {NO_AUTHOR}"
        made_by = f"Store {settings.store.path.removeprefix(SCHEME)}, passage-exchange.{facts} {key_in_words}"
    else:
        space, mechanism = needed(settings.space, "space").path, needed(settings.mechanism, "mechanism").name
        made_by = f"Space {space.removeprefix(SCHEME)}, mechanism {mechanism}. {key_in_words}"
    return Preview(before, shown, made_by.rstrip())


def _first_rows(settings: Settings, columns: Columns) -> list[Row]:
    """Return the first texts of the corpus that are not blank, and what a release knows of them."""
    corpus = needed(settings.corpus, "corpus")
    shards = find_shards(corpus.input, corpus.root)
    name = name_of_corpus(corpus.name, shards)
    task = dataclasses.replace(plan(shards, None, None)[0], stop=ROWS)
    first: list[Row] = []
    with reading(task, columns, aside=refuse) as shard:
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

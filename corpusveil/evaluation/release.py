"""A release beside its original: what came back, what can be guessed, what a model learns.

Everything is computed from documents that ``match`` found, an even sample where there are many. With the space of the
release its mechanism is asked too, keys are tried, and further epsilons and mechanisms, by keys that are thrown away.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from corpusveil.errors import UserError
from corpusveil.evaluation.attackers import attack_words
from corpusveil.evaluation.composites import composites
from corpusveil.evaluation.findings import Findings, Measure
from corpusveil.evaluation.language import KneserNey
from corpusveil.evaluation.leaks import replay_keys
from corpusveil.evaluation.learning import Labelled, Remembered, Version, labelled, learnt
from corpusveil.evaluation.matching import Matched
from corpusveil.evaluation.question import Question
from corpusveil.evaluation.remade import guarantee_of, mechanism_of, release_of, word_epsilon
from corpusveil.evaluation.report import examples_of
from corpusveil.evaluation.terms import count_words
from corpusveil.evaluation.texts import of_texts, spread
from corpusveil.evaluation.tried import try_others

GRID_DOCUMENTS = 2000
"""Documents of which each further epsilon is tried, once a seed."""


def evaluate_release(
    matched: Matched,
    manifest: Mapping[str, Any] | None,
    question: Question,
    second: Mapping[str, Any] | None = None,
) -> Findings:
    """Return what is found. ``manifest`` is the release's, None where the private texts are not a release of ours.

    ``second`` is the manifest of the release of second texts, where they have one.

    Raises UserError where manifest and space do not fit, and where a model can't be trained.
    """
    began = time.monotonic()
    _check(manifest, question)
    if not count_words(matched.originals)[1]:
        raise UserError("The originals have no words, so there is nothing to be measured.")
    published = _second_is_published(matched, manifest, question)
    tasks = {
        name: labelled(matched, name, question.second if name == question.label or published else None)
        for name in (question.label, question.attribute)
        if name is not None
    }
    language, held_out = _language(matched, question)
    measures = [*of_texts(matched, question, language, held_out, _promised(manifest, question))]
    released = [Version(matched.privates, matched.seconds)] * question.seeds
    for model in question.classifiers() if tasks else ():
        measures += learnt(question, tasks, released, Remembered(model))
    rows = spread(len(matched.originals), GRID_DOCUMENTS)
    some = [matched.originals[row] for row in rows]
    versions: dict[str, Sequence[str]] = {"released": [matched.privates[row] for row in rows]}
    counted, notes = [*_left_out(matched, tasks)], [*_how(matched, question, tasks, published=published)]
    if manifest is not None and question.space is not None:
        mechanism = mechanism_of(manifest, question.space)
        given, public = manifest["configuration"]["budget"]["per"] == "token", question.counts is not None
        of_word = word_epsilon(manifest, matched.originals)
        measures += attack_words(mechanism, of_word, matched.originals, language, given=given, public=public)
        found, said = replay_keys(matched, manifest, question, language)
        measures += found
        notes += said
    if manifest is not None and question.epsilons:
        before = Version(some, _seconds(matched, question, rows))
        few = {name: one.among(rows) for name, one in tasks.items()}
        trials = try_others(before, manifest, question, few, language)
        measures += trials.measures
        versions |= trials.versions
        notes += trials.promises
        counted += trials.left_out  # in which a word's share of a document's budget can be
    measures += [*composites(measures)]
    (notes if question.counts is not None else counted).append(_about(language, question))
    return Findings(
        "A release beside its original",
        matched.documents,
        len(matched.originals),
        (
            *(guarantee_of(manifest) if manifest else ()),
            *(f"Second texts: {line}" for line in (guarantee_of(second) if second else ())),
        ),
        tuple(manifest["guarantee"]["disclosed"]) if manifest else (),
        _in_groups(measures),
        examples_of(some, versions),
        tuple(notes),
        tuple(counted),
        time.monotonic() - began,
        {} if manifest is None else dict(manifest["configuration"]),
    )


def _check(manifest: Mapping[str, Any] | None, question: Question) -> None:
    if manifest is None and question.keys:
        raise UserError("A leaked key is replayed as the manifest says, and these private texts have none.")
    if manifest is None and question.epsilons:
        raise UserError("Further epsilons are tried as the manifest says, and these private texts have none.")
    for name, given in (("space", question.space), ("collocations", question.collocations)):
        if manifest is not None and given is not None and manifest["configuration"].get(name) != given.digest:
            raise UserError(f"--{name}: not the {name} of this release, by digest; name the release's own.")
    if manifest is not None and question.epsilons:
        release_of(manifest, question)  # what it lacks, such as collocations, is told before anything takes long


def _promised(manifest: Mapping[str, Any] | None, question: Question) -> float | None:
    """Return the share of known words that should come back unchanged; None where words or their epsilons differ."""
    if manifest is None or question.space is None or manifest["configuration"]["budget"]["per"] != "token":
        return None
    text = manifest["configuration"]["text"]
    if text.get("tokenizer", "word") != "word" or text.get("stop_words", "privatize") != "privatize":
        return None
    return mechanism_of(manifest, question.space).retention(float(manifest["configuration"]["budget"]["epsilon"]))


def _second_is_published(matched: Matched, manifest: Mapping[str, Any] | None, question: Question) -> bool:
    """Say whether who reads the release has second texts too: private ones, or those that it keeps in the clear."""
    kept = [] if manifest is None else manifest["configuration"].get("columns", {}).get("keep", [])
    return question.second is not None and (matched.seconds is not None or question.second in kept)


def _seconds(matched: Matched, question: Question, rows: Sequence[int]) -> list[str] | None:
    """Return original second texts where they are private in the release; a missing one as an empty text."""
    if question.second is None or matched.seconds is None:
        return None
    column = matched.columns[question.second]
    return ["" if column[row] is None else str(column[row]) for row in rows]


def _in_groups(measures: Sequence[Measure]) -> tuple[Measure, ...]:
    """Return the figures with those of one name together, in the order in which the names came first."""
    order: dict[tuple[str, str], list[Measure]] = {}
    for one in measures:
        order.setdefault((one.group, one.name), []).append(one)
    return tuple(one for some in order.values() for one in some)


def _language(matched: Matched, question: Question) -> tuple[KneserNey, slice]:
    """Return a language model, and which documents it has not seen."""
    if question.counts is not None:
        return KneserNey.of_counts(question.counts), slice(None)
    if len(matched.originals) < 2:
        raise UserError("One document is too few to be evaluated.")
    return KneserNey.of_texts(matched.originals[::2]), slice(1, None, 2)


def _about(language: KneserNey, question: Question) -> str:
    source = "public counts" if question.counts else "every other original, and measured on the others"
    return f"Language model: interpolated Kneser-Ney of three words, {language.unknown:,} words, made of {source}."


def _how(matched: Matched, question: Question, tasks: Mapping[str, Labelled], *, published: bool) -> Iterator[str]:
    """Yield how it was measured."""
    if tasks:
        names = ", ".join(one.name for one in question.classifiers())
        yield f"Classifiers: {names}, trained on 80 % and tested on 20 %, {question.seeds} splits by seed."
    if tasks and len(question.models) > 1 and question.epsilons:
        yield "Figures at further epsilons are of the first classifier."
    if question.second is not None:
        how = (
            "private, a release of their own: what both promise adds up"
            if matched.seconds is not None
            else "as in the original, and kept in the clear by the release"
            if published
            else "as in the original, and no part of the release: who classifies has them, an attacker has not"
        )
        yield f"Second texts ({question.second}): {how}."


def _left_out(matched: Matched, tasks: Mapping[str, Labelled]) -> Iterator[str]:
    """Yield what was not looked at."""
    if matched.sampled:
        yield f"An even sample of {matched.chosen:,} of {matched.documents:,} documents."
    if matched.missing:
        yield f"{matched.missing:,} of {matched.chosen:,} documents are not in the release and are left out."
    if matched.unreadable:
        yield f"{matched.unreadable:,} rows of the original can't be read and are left out."
    for name, some in tasks.items():
        if without := len(matched.originals) - len(some.rows):
            also = "" if some.task.pairs is None else " or no second text"
            yield f"{without:,} documents have no value in the column {name}{also}; classifiers leave them out."

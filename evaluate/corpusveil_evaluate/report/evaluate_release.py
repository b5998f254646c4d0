"""The comparison of a release with its original: what is unchanged, what can be guessed, what a model learns.

Everything is computed from the documents of ``match``, an even sample if there are many. With the release's space, its
mechanism is evaluated as well.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from corpusveil.errors import DataError, SettingError, UserError
from corpusveil.storage.documents import Documents
from corpusveil.transforms.release.promises import NO_AUTHOR, OVERLAP
from corpusveil.waiting import reached, waiting
from corpusveil_evaluate.attacks.attribute_inference import Readable
from corpusveil_evaluate.attacks.picked_texts import PICKED, texts_picked
from corpusveil_evaluate.attacks.word_attacks import attack_words
from corpusveil_evaluate.matching import Matched
from corpusveil_evaluate.readers.ngrams.denoise import Denoiser
from corpusveil_evaluate.readers.ngrams.modelling import model_of_space
from corpusveil_evaluate.report.classifier_figures import (
    LabelledDocuments,
    classifier_figures,
    labelled_documents,
)
from corpusveil_evaluate.report.findings import Findings
from corpusveil_evaluate.report.manifest_release import (
    by_passages,
    guarantee_lines,
    lacks_collocations,
    mechanism_of,
    passage_release_of,
    release_of,
    spanned_release_of,
    without_markup,
    word_epsilon,
)
from corpusveil_evaluate.report.question import Question
from corpusveil_evaluate.report.release_page import examples_of
from corpusveil_evaluate.statistics.pairs import Pairs, pairs_of
from corpusveil_evaluate.statistics.perplexity import KneserNey
from corpusveil_evaluate.statistics.statistic import Evidence, Figure, Reading, of_measures, of_texts
from corpusveil_evaluate.terms import count_words
from corpusveil_evaluate.utility.text_classifiers import Remembered

CHANCE = 1e-9
"""The epsilon of pieces that are drawn at random."""


@waiting("evaluating")
def evaluate_release(
    matched: Matched,
    manifest: Mapping[str, Any] | None,
    question: Question,
) -> Findings:
    """Return the findings. ``manifest`` is that of the release, None if the private texts are not a release of ours.

    Raises UserError if manifest and space do not match, or if a model cannot be trained.
    """
    began = time.monotonic()
    _check(manifest, question)
    passages = by_passages(manifest)
    own = manifest
    matched, manifest = without_markup(matched, manifest)
    if not count_words(matched.originals)[1]:
        raise DataError("The originals have no words, so there is nothing to measure; give texts with words.")
    asked = question.asked
    tasks = _tasks(matched, question)
    reached("the language model")
    language, held_out = _language(matched, question)
    measures, notes, counted = list[Figure](), [*_how(question, tasks)], [*_left_out(matched, tasks)]
    reached("texts")
    pairs = _pairs(matched, manifest, question)
    if pairs is not None and pairs.left_out:
        counted.append(
            f"{pairs.left_out:,} of {pairs.texts:,} documents have other tokens than the release says, as where a "
            "term, a function or a row's own values were masked; which of their words changed is not counted."
        )
    evidence = Evidence(
        matched.originals, matched.privates, question.space, question.encoder_or_vectors(),
        lambda texts: language.perplexity(texts).value, held_out,
        _promised(manifest, question), pairs, not passages, _at_random(matched, manifest, question),
    )  # fmt: skip
    measures += of_texts(evidence)
    if passages and manifest is not None:
        reached("picking texts from a list")
        figures, more = _picked(matched, manifest, question)
        stated = (note for note in manifest["guarantee_in_words"] if note in (NO_AUTHOR, OVERLAP))
        measures, notes = measures + figures, [*notes, *stated, *more]
    reader, unread = _reader(manifest, question, language)
    for model in question.classifiers() if tasks else ():
        reached(f"training {model.name}")
        measures += classifier_figures(question, tasks, matched.privates, Remembered(model), readable=reader)
    notes += unread if asked.attribute is not None else []
    if manifest is not None and own is not None and question.space is not None and not passages:
        reached("attacks on words")
        measures += attack_words(
            mechanism_of(manifest, question.space), word_epsilon(manifest, matched.originals), matched.originals,
            language, epsilon_given=manifest["configuration"]["budget"]["per"] == "token",
            model_public=asked.counts is not None, public=model_of_space(question.space),
        )  # fmt: skip
    measures += [*of_measures(measures)]
    source = "every second original, and measured on the rest" if asked.counts is None else "public counts"
    (counted if asked.counts is None else notes).append(
        f"Language model: interpolated Kneser-Ney of three words, {language.model.unknown:,} words, made of {source}."
    )
    return Findings(
        "A release beside its original",
        matched.documents,
        len(matched.originals),
        guarantee_lines(manifest),
        tuple(manifest["guarantee"]["disclosed"]) if manifest else (),
        _in_groups(measures),
        examples_of(matched.originals, matched.privates, reader),
        tuple(notes),
        tuple(counted),
        time.monotonic() - began,
        {} if own is None else dict(own["configuration"]),
    )


def _check(manifest: Mapping[str, Any] | None, question: Question) -> None:
    opened = {"space": question.space, "store": question.store, "collocations": question.collocations}
    for name, artefact in opened.items():
        if manifest is not None and artefact is not None and manifest["configuration"].get(name) != artefact.digest:
            raise SettingError(
                f"{name}: this is not the {name} of the release (its digest differs); give the {name} of the release."
            )


def _reader(
    manifest: Mapping[str, Any] | None, question: Question, language: KneserNey
) -> tuple[Readable | None, list[str]]:
    """Return an attacker's denoising of the release before training, None if it is impossible; and why."""
    if by_passages(manifest):
        return None, []  # each line is public text as it is
    if manifest is None or question.space is None:
        return None, ["Attackers of the attribute did not denoise first: this needs the release's manifest and space."]
    if question.asked.counts is None:
        return None, ["Attackers of the attribute did not denoise first: this needs public counts or a public model."]
    if lacks_collocations(manifest, question):
        return None, ["Attackers of the attribute did not denoise first: this needs the release's collocations."]
    release = release_of(manifest, question)
    try:
        return Denoiser(
            release.mechanism,
            release.budget,
            release.policy,
            language.model,
            collocations=question.collocations,
            spans="spans" in manifest["configuration"],
        ).readable, []
    except UserError as error:
        return None, [f"Attackers of the attribute did not denoise first: {error}"]


def _pairs(matched: Matched, manifest: Mapping[str, Any] | None, question: Question) -> Pairs | None:
    """Return words beside what they became; None without the manifest of a release of words and its space.

    Raises SettingError if these cannot be the originals of the release.
    """
    if manifest is None or question.space is None or by_passages(manifest):
        return None
    if manifest["configuration"]["text"].get("tokenizer", "word") != "word":
        return None  # what a joined collocation became has no bounds in the text
    kernel = spanned_release_of(manifest, question).kernel()
    pairs = pairs_of(kernel, matched.originals, matched.privates)
    pairs.check(kernel)
    return pairs


def _at_random(matched: Matched, manifest: Mapping[str, Any] | None, question: Question) -> list[str] | None:
    """Return a release by passages at no epsilon, of the same number of pieces; None without its store."""
    if manifest is None or question.store is None:
        return None
    release = passage_release_of(manifest, question.store)
    kernel = dataclasses.replace(release, epsilon=CHANCE, duplicates="independent").kernel()
    texts = pa.array(matched.originals, pa.large_string())
    random: list[str] = kernel.apply(Documents(texts, list(range(len(texts)))))[0].to_pylist()
    return random


def _picked(matched: Matched, manifest: Mapping[str, Any], question: Question) -> tuple[list[Figure], list[str]]:
    """Return how often an original is picked from a list, and notes."""
    if question.store is None:
        return [], ["Nobody picked originals from a list: this needs the release's store."]
    found = texts_picked(passage_release_of(manifest, question.store), matched.originals, matched.privates)
    if 2 * found.unread > found.candidates:
        raise SettingError(
            "Most private texts are not made of as many pieces of the store as their originals have: these are not the "
            "originals of this release. Give the original itself, with the id column of the release."
        )
    note = f"by a reader who holds {found.candidates:,} of them, with store, law and epsilon"
    return [PICKED.measure(Reading(found.share, "exact law", note), floor=found.floor)], []


def _promised(manifest: Mapping[str, Any] | None, question: Question) -> float | None:
    """Return the expected share of unchanged known words; None if words or their epsilons differ."""
    if manifest is None or question.space is None or manifest["configuration"]["budget"]["per"] != "token":
        return None  # of passages it is never that
    text = manifest["configuration"]["text"]
    if text.get("tokenizer", "word") != "word" or text.get("stop_words", "privatize") != "privatize":
        return None
    return mechanism_of(manifest, question.space).retention(float(manifest["configuration"]["budget"]["epsilon"]))


def _tasks(matched: Matched, question: Question) -> dict[str, LabelledDocuments]:
    """Return the documents with a label and those with the attribute."""
    names = (question.asked.label, question.asked.attribute)
    return {name: labelled_documents(matched, name) for name in names if name is not None}


def _in_groups(measures: Sequence[Figure]) -> tuple[Figure, ...]:
    """Return the figures grouped by name, in the order of the first occurrence of each name."""
    order: dict[tuple[str, str], list[Figure]] = {}
    for measure in measures:
        order.setdefault((measure.group, measure.name), []).append(measure)
    return tuple(figure for figures in order.values() for figure in figures)


def _language(matched: Matched, question: Question) -> tuple[KneserNey, slice]:
    """Return a language model, and the documents that it was not made from."""
    if question.asked.counts is not None:
        return KneserNey.of_counts(question.asked.counts), slice(None)
    if len(matched.originals) < 2:
        raise DataError("A single document is too few to evaluate; give at least two.")
    return KneserNey.of_texts(matched.originals[::2]), slice(1, None, 2)


def _how(question: Question, tasks: Mapping[str, LabelledDocuments]) -> Iterator[str]:
    """Yield notes on the measurement."""
    if tasks:
        names = ", ".join(classifier.name for classifier in question.classifiers())
        yield f"Classifiers: {names}, trained on 80 % and tested on 20 %, {question.asked.seeds} splits by seed."


def _left_out(matched: Matched, tasks: Mapping[str, LabelledDocuments]) -> Iterator[str]:
    """Yield notes on what was left out."""
    if matched.sampled:
        yield f"An even sample of {matched.chosen:,} of {matched.documents:,} documents."
    if matched.missing:
        yield f"{matched.missing:,} of {matched.chosen:,} documents are not in the release and are left out."
    if matched.unreadable:
        yield f"{matched.unreadable:,} rows of the original can't be read and are left out."
    for name, some in tasks.items():
        if without := len(matched.originals) - len(some.rows):
            yield f"{without:,} documents have no value in the column {name}; classifiers leave them out."

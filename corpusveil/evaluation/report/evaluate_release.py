"""The comparison of a release with its original: what is unchanged, what can be guessed, what a model learns.

Everything is computed from the documents of ``match``, an even sample if there are many. With the release's space, its
mechanism is evaluated as well, keys are tried, and further epsilons and mechanisms under throwaway keys.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from corpusveil.errors import DataError, MismatchError, NotMadeError, UserError
from corpusveil.evaluation.attacks.attribute_inference import Readable
from corpusveil.evaluation.attacks.leaked_keys import replay_keys
from corpusveil.evaluation.attacks.word_attacks import attack_words
from corpusveil.evaluation.language.kneser_ney import KneserNey
from corpusveil.evaluation.matching import Matched, spread
from corpusveil.evaluation.report.classifier_figures import (
    LabelledDocuments,
    Version,
    classifier_figures,
    labelled_documents,
)
from corpusveil.evaluation.report.epsilon_sweep import sweep_epsilons
from corpusveil.evaluation.report.evaluation_options import EvaluationOptions
from corpusveil.evaluation.report.findings import Findings
from corpusveil.evaluation.report.manifest_release import (
    guarantee_lines,
    mechanism_of,
    picture_of,
    release_of,
    without_markup,
    word_epsilon,
)
from corpusveil.evaluation.report.release_page import examples_of
from corpusveil.evaluation.statistics import registry
from corpusveil.evaluation.statistics.figure import Figure
from corpusveil.evaluation.statistics.statistic import Evidence
from corpusveil.evaluation.terms import count_words
from corpusveil.evaluation.utility.remembered import Remembered
from corpusveil.language.denoise import NO_FACTS, Denoiser
from corpusveil.transforms.release.release import Release
from corpusveil.waiting import reached, waiting

GRID_DOCUMENTS = 2000
"""The number of documents for each further epsilon, once per seed."""


@waiting("evaluating")
def evaluate_release(
    matched: Matched,
    manifest: Mapping[str, Any] | None,
    options: EvaluationOptions,
    second: Mapping[str, Any] | None = None,
) -> Findings:
    """Return the findings. ``manifest`` is that of the release, None if the private texts are not a release of ours.

    ``second`` is the manifest of the release of second texts, if they have one.

    Raises UserError if manifest and space do not match, or if a model cannot be trained.
    """
    began = time.monotonic()
    _check(manifest, options)
    given, told = matched, manifest  # as they are, for keys to be replayed on
    matched, manifest = without_markup(matched, manifest, second)
    if not count_words(matched.originals)[1]:
        raise DataError("The originals have no words, so there is nothing to measure; give texts with words.")
    published = _second_is_published(matched, manifest, options)
    tasks = {
        name: labelled_documents(matched, name, options.second if name == options.label or published else None)
        for name in (options.label, options.attribute)
        if name is not None
    }
    reached("the language model")
    language, held_out = _language(matched, options)
    reached("texts")
    evidence = Evidence(
        matched.originals, matched.privates, options.space, options.encoder_or_vectors(), options.word_list(),
        lambda texts: language.perplexity(texts).value, held_out, options.causal, _promised(manifest, options),
    )  # fmt: skip
    measures = [*registry.of_texts(evidence)]
    released = [Version(matched.privates, matched.seconds)] * options.seeds
    reader, unread = _reader(manifest, options, language)
    for model in options.classifiers() if tasks else ():
        reached(f"training {model.name}")
        measures += classifier_figures(options, tasks, released, Remembered(model), readable=reader)
    rows = spread(len(matched.originals), GRID_DOCUMENTS)
    some = [matched.originals[row] for row in rows]
    versions: dict[str, Sequence[str]] = {"released": [matched.privates[row] for row in rows]}
    counted, notes = [*_left_out(matched, tasks)], [*_how(matched, options, tasks, published=published)]
    notes += unread if options.attribute is not None else []
    notes += [NO_FACTS] if manifest is not None and "denoised" in manifest else []
    if manifest is not None and options.space is not None:
        mechanism = mechanism_of(manifest, options.space)
        epsilon_given, model_public = manifest["configuration"]["budget"]["per"] == "token", options.counts is not None
        of_word = word_epsilon(manifest, matched.originals)
        reached("attacks on words")
        measures += attack_words(
            mechanism, of_word, matched.originals, language, epsilon_given=epsilon_given, model_public=model_public
        )
        release, untried = (None, []) if told is None else _replayable(given, told, options)
        notes += untried
        if release is not None and told is not None:
            reached("leaked keys")
            measures += replay_keys(given, told, release, options.keys, language)
    if manifest is not None and options.epsilons:
        before = Version(some, _seconds(matched, options, rows))
        few = {name: documents.among(rows) for name, documents in tasks.items()}
        reached("other epsilons")
        trials = sweep_epsilons(before, manifest, options, few, language)
        measures += trials.measures
        versions |= trials.versions
        notes += trials.promises
        counted += trials.left_out  # in which a word's share of a document's budget can be
    measures += [*registry.of_measures(measures)]
    (notes if options.counts is not None else counted).append(_about(language, options))
    return Findings(
        "A release beside its original",
        matched.documents,
        len(matched.originals),
        (
            *(guarantee_lines(manifest) if manifest else ()),
            *(f"Second texts: {line}" for line in (guarantee_lines(second) if second else ())),
        ),
        tuple(manifest["guarantee"]["disclosed"]) if manifest else (),
        _in_groups(measures),
        examples_of(some, versions, reader),
        tuple(notes),
        tuple(counted),
        time.monotonic() - began,
        {} if told is None else dict(told["configuration"]),
        picture=None if manifest is None or options.space is None else picture_of(manifest, options),
    )


def _check(manifest: Mapping[str, Any] | None, options: EvaluationOptions) -> None:
    if manifest is None and options.keys:
        raise NotMadeError(
            "A leaked key is replayed with the settings in a manifest, and these private texts have no manifest; "
            "give the folder of a release."
        )
    if manifest is None and options.epsilons:
        raise NotMadeError(
            "Further epsilons are tried with the settings in a manifest, and these private texts have no manifest; "
            "give the folder of a release."
        )
    for name, artefact in (("space", options.space), ("collocations", options.collocations)):
        if manifest is not None and artefact is not None and manifest["configuration"].get(name) != artefact.digest:
            raise MismatchError(
                f"{name}: this is not the {name} of the release (its digest differs); give the {name} of the release."
            )
    if manifest is not None and options.epsilons:
        release_of(manifest, options)  # reports missing parts, such as collocations, before slow work


def _reader(
    manifest: Mapping[str, Any] | None, options: EvaluationOptions, language: KneserNey
) -> tuple[Readable | None, list[str]]:
    """Return an attacker's denoising of the release before training, None if it is impossible; and why."""
    if manifest is None or options.space is None:
        return None, ["Attackers of the attribute did not denoise first: this needs the release's manifest and space."]
    if options.counts is None:
        return None, ["Attackers of the attribute did not denoise first: this needs public counts or a public model."]
    if "denoised" in manifest:
        return None, []  # attackers would denoise it in the same way
    if manifest["configuration"]["text"].get("tokenizer", "word") != "word" and options.collocations is None:
        return None, ["Attackers of the attribute did not denoise first: this needs the release's collocations."]
    release = release_of(manifest, options)
    try:
        return Denoiser(
            release.mechanism, release.budget, release.policy, language.model, collocations=options.collocations
        ).readable, []
    except UserError as error:
        return None, [f"Attackers of the attribute did not denoise first: {error}"]


def _replayable(
    matched: Matched, manifest: Mapping[str, Any], options: EvaluationOptions
) -> tuple[Release | None, list[str]]:
    """Return the release on which keys are tried, None if that is impossible; and why."""
    if not (matched.places or matched.ids):
        return None, []
    if manifest["configuration"]["text"].get("tokenizer", "word") != "word" and options.collocations is None:
        return None, ["Keys were not tried: this needs the release's collocations."]
    release = release_of(manifest, options)
    if release.digest != manifest.get("release"):
        return None, ["Keys were not tried: this version of corpusveil would make a release other than the manifest's."]
    return release, []


def _promised(manifest: Mapping[str, Any] | None, options: EvaluationOptions) -> float | None:
    """Return the expected share of unchanged known words; None if words or their epsilons differ."""
    if manifest is None or options.space is None or manifest["configuration"]["budget"]["per"] != "token":
        return None
    text = manifest["configuration"]["text"]
    if text.get("tokenizer", "word") != "word" or text.get("stop_words", "privatize") != "privatize":
        return None
    return mechanism_of(manifest, options.space).retention(float(manifest["configuration"]["budget"]["epsilon"]))


def _second_is_published(matched: Matched, manifest: Mapping[str, Any] | None, options: EvaluationOptions) -> bool:
    """Say whether a reader of the release has second texts: private ones, or those that it keeps in the clear."""
    published = [] if manifest is None else manifest["configuration"].get("columns", {}).get("keep", [])
    return options.second is not None and (
        matched.seconds is not None or options.second in published or published == ["*"]
    )


def _seconds(matched: Matched, options: EvaluationOptions, rows: Sequence[int]) -> list[str] | None:
    """Return original second texts if they are private in the release; a missing text is an empty text."""
    if options.second is None or matched.seconds is None:
        return None
    column = matched.columns[options.second]
    return ["" if column[row] is None else str(column[row]) for row in rows]


def _in_groups(measures: Sequence[Figure]) -> tuple[Figure, ...]:
    """Return the figures grouped by name, in the order of the first occurrence of each name."""
    order: dict[tuple[str, str], list[Figure]] = {}
    for measure in measures:
        order.setdefault((measure.group, measure.name), []).append(measure)
    return tuple(figure for figures in order.values() for figure in figures)


def _language(matched: Matched, options: EvaluationOptions) -> tuple[KneserNey, slice]:
    """Return a language model, and the documents that it was not made from."""
    if options.counts is not None:
        return KneserNey.of_counts(options.counts), slice(None)
    if len(matched.originals) < 2:
        raise DataError("A single document is too few to evaluate; give at least two.")
    return KneserNey.of_texts(matched.originals[::2]), slice(1, None, 2)


def _about(language: KneserNey, options: EvaluationOptions) -> str:
    source = "public counts" if options.counts else "every second original, and measured on the rest"
    return f"Language model: interpolated Kneser-Ney of three words, {language.unknown:,} words, made of {source}."


def _how(
    matched: Matched, options: EvaluationOptions, tasks: Mapping[str, LabelledDocuments], *, published: bool
) -> Iterator[str]:
    """Yield notes on the measurement."""
    if tasks:
        names = ", ".join(classifier.name for classifier in options.classifiers())
        yield f"Classifiers: {names}, trained on 80 % and tested on 20 %, {options.seeds} splits by seed."
    if tasks and len(options.models) > 1 and options.epsilons:
        yield "Figures at further epsilons use the first classifier."
    if options.second is not None:
        how = (
            "private, in a separate release; the bounds of both releases add up"
            if matched.seconds is not None
            else "as in the original, and kept in the clear by the release"
            if published
            else "as in the original, but not in the release: the classifier has them, an attacker does not"
        )
        yield f"Second texts ({options.second}): {how}."


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
            also = "" if some.task.pairs is None else " or no second text"
            yield f"{without:,} documents have no value in the column {name}{also}; classifiers leave them out."

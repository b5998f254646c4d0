"""A release repeated from its manifest, as anyone with the space can do."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from corpusveil.budget import Budget
from corpusveil.choices import Duplicates
from corpusveil.errors import ArtifactError, SettingError
from corpusveil.mechanisms import Mechanism, make_mechanism
from corpusveil.passages.passage_exchange import PassageExchange
from corpusveil.passages.store import Store
from corpusveil.recognizers.registry import kinds
from corpusveil.sampling.keys import Key
from corpusveil.spaces import Space
from corpusveil.text.markup import plain
from corpusveil.text.policy import TextPolicy
from corpusveil.text.spans import OTHERS, SpanPolicy
from corpusveil.transforms.release.passage_release import PassageRelease
from corpusveil.transforms.release.release import Release
from corpusveil_evaluate.matching import Matched
from corpusveil_evaluate.report.question import Question

REPEATED = ("rules", "names")
"""Recognizers that everybody has, so that what they found can be found again."""
DAMAGED = "The manifest of the release is damaged or was written by another version of corpusveil; restore it."


def mechanism_of(manifest: Mapping[str, Any], space: Space) -> Mechanism:
    """Return the mechanism that a manifest names, on its space."""
    parameters = dict(manifest["configuration"]["mechanism"])
    try:
        return make_mechanism(parameters.pop("name"), space, **parameters)
    except (TypeError, ValueError):
        raise ArtifactError(DAMAGED) from None


def release_of(manifest: Mapping[str, Any], question: Question) -> Release:
    """Return the release of a manifest under a fresh key."""
    assert question.space is not None  # noqa: S101 - who asks for it has given it
    configuration = manifest["configuration"]
    copies: Duplicates = configuration.get("duplicates", "independent")
    try:
        budget = Budget(**configuration["budget"])
        policy = TextPolicy(**configuration["text"])
    except (TypeError, ValueError):
        raise ArtifactError(DAMAGED) from None
    chosen = mechanism_of(manifest, question.space)
    key = Key.generate()  # its outputs are measured, never released
    return Release(
        chosen,
        budget,
        policy,
        key=key,
        collocations=question.collocations,
        duplicates=copies,
        accept_no_guarantee=True,
    )


def by_passages(manifest: Mapping[str, Any] | None) -> bool:
    """Return whether a manifest is that of a release by passages."""
    return manifest is not None and "store" in manifest["configuration"]


def passage_release_of(manifest: Mapping[str, Any], store: Store) -> PassageRelease:
    """Return the release by passages of a manifest under a fresh key."""
    configuration = manifest["configuration"]
    try:
        exchange = PassageExchange(store, configuration["mechanism"]["neighbors"])
        return PassageRelease(
            exchange, configuration["budget"]["epsilon"], configuration["budget"]["per"], key=Key.generate(),
            most_pieces=configuration.get("most_pieces"), duplicates=configuration.get("duplicates", "independent"),
            accept_overlap=True,
        )  # fmt: skip
    except (KeyError, TypeError, ValueError):
        raise ArtifactError(DAMAGED) from None


def stated_release(manifest: Mapping[str, Any], store: Store | None, space: Space | None) -> Release | PassageRelease:
    """Return the release of a manifest, of passages or words, on its ``store`` or ``space``, under a fresh key.

    Raises UserError for another store or space than it was made with, and without one.
    """
    made = manifest["configuration"]
    name, public = ("store", store) if by_passages(manifest) else ("space", space)
    if public is None or public.digest != made[name]:
        raise SettingError(f"{name}: give the {name} that the release was made with ({str(made[name])[:12]}).")
    if store is None or name == "space":
        return release_of(manifest, Question(space=space))
    return passage_release_of(manifest, store)


def spanned_release_of(manifest: Mapping[str, Any], question: Question) -> Release:
    """Return the release of a manifest with its spans, as far as everyone has what recognizes them."""
    configured = manifest["configuration"].get("spans")
    release = release_of(manifest, question)
    find = [] if configured is None else [mark.partition("/")[0] for mark in configured["find"]]
    if configured is None or not (known := [name for name in find if name in REPEATED]):
        return release
    kinds_found = {*(kinds(known) or ()), OTHERS}
    treat = [(kind, how) for kind, how in configured["treat"].items() if kind in kinds_found]
    return dataclasses.replace(release, spans=SpanPolicy(find=known, treat=treat))


def word_epsilon(manifest: Mapping[str, Any], originals: Sequence[str]) -> float:
    """Return the epsilon of a word, or a document's epsilon divided by the words of the median document."""
    budget = manifest["configuration"]["budget"]
    whole = float(budget["epsilon"])
    if budget["per"] == "token":
        return whole
    return whole / max(1.0, float(np.median([len(text.split()) for text in originals])))


def without_markup(matched: Matched, manifest: Mapping[str, Any] | None) -> tuple[Matched, Mapping[str, Any] | None]:
    """Return the documents as the release read them, without tags, and the manifest of a release of such texts."""
    if manifest is None or manifest["configuration"]["text"].get("markup") != "strip":
        return matched, manifest
    configuration = manifest["configuration"]
    text = {name: value for name, value in configuration["text"].items() if name != "markup"}
    return (
        dataclasses.replace(matched, originals=[plain(text) for text in matched.originals]),
        {**manifest, "configuration": {**configuration, "text": text}},
    )


def lacks_collocations(manifest: Mapping[str, Any], question: Question) -> bool:
    """Return whether a release by words joined collocations that are not given."""
    return manifest["configuration"]["text"].get("tokenizer", "word") != "word" and question.collocations is None


def guarantee_lines(manifest: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Return the manifest's guarantee, preceded by a warning if a published key was used; nothing without one."""
    if manifest is None:
        return ()
    return (*([f"{manifest['warning']}."] if manifest.get("warning") else []), *manifest["guarantee_in_words"])

"""Names of earlier versions that this version refuses, each with its replacement.

The command line, files of settings and ``import corpusveil as cv`` look here before they call a name unknown.
``tests/api/test_gone.py`` tries every row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

GONE: Mapping[str, str] = {
    "privatize --pseudonyms": "a span is masked or resampled, and docs/left-out.md has a recipe for labels",
    "spans.pseudonyms": "a span is masked or resampled, and docs/left-out.md has a recipe for labels",
    "spans.key": "a span is masked or resampled, and docs/left-out.md has a recipe for labels",
    "privatize --spans-from": "write the values of the column into a file, and give {spans.find} terms:FILE",
    "spans.columns": "write the values of the columns into a file, and give {spans.find} terms:FILE",
    "privatize --cap-token": "give {ledger.cap} in nats of plain LDP",
    "privatize --cap-ldp": "give {ledger.cap} in nats of plain LDP",
    "ledger.cap_token": "give {ledger.cap} in nats of plain LDP",
    "ledger.cap_ldp": "give {ledger.cap} in nats of plain LDP",
    "text.numbers = surrogate": "choose resample or mask",
    "output.duplicates = drop": "leave copies out before, as by DuckDB's SELECT DISTINCT ON (text)",
    "train --trainer": "gensim trains, on one machine",
    "embeddings.trainer": "gensim trains, on one machine",
    "privatize --model": "the space has a table of what readers recover; 'corpusveil evaluate risk' makes one",
    "budget.model": "the space has a table of what readers recover; 'corpusveil evaluate risk' makes one",
    "privatize --risk-text": "the space has a table of what readers recover; 'evaluate risk --text' makes one",
    "budget.risk_text": "the space has a table of what readers recover; 'corpusveil evaluate risk --text' makes one",
    "[model]": "'corpusveil evaluate model' makes one",
    "[denoise]": "'corpusveil evaluate denoise' reads a release",
    "package": "docs/clusters.md has the commands for Spark and Dataflow",
    "schedule --write": "copy a file for systemd, cron, Kubernetes or Airflow from docs/schedules.md",
    "verify --statement": "sign manifest.json, as with 'cosign sign-blob'",
    "output.page": "the page is always written; remove it if nobody is to have it",
    "cv.epsilon_for_risk": "give cv.release(risk=0.5, key=key), which has .budget and .risk",
    "cv.audit_documents": "a document's guarantee is composed of those of its words; cv.audit checks these",
    "cv.LengthGrid": "cv.release(store='en', epsilon=10, key=key) replaces whole texts, which hides length by law",
    "cv.LengthNoise": "cv.release(store='en', epsilon=10, key=key) replaces whole texts, which hides length by law",
    "privatize --strategy": "a file for 'corpusveil run' has [budget] {budget.strategy}",
    "privatize --root": "a file for 'corpusveil run' has [corpus] {corpus.root}",
    "count --hyphens": "a file for 'corpusveil run' has [collocations] {collocations.hyphens}",
    "privatize --pad": "whole texts by passages ({store.path}, {budget.per} document) hide length by law",
    "privatize --length-epsilon": "whole texts by passages ({store.path}, {budget.per} document) hide length by law",
    "cv.EpsilonAtRisk": "cv.release(risk=0.5, key=key).risk says what a risk chose",
    "cv.denoise": "'corpusveil evaluate denoise' and corpusveil_evaluate.readers.denoise say what a reader reads",
    "cv.load_model": "corpusveil_evaluate.readers has load_model",
    "cv.demo_model": "corpusveil_evaluate.readers has load_model",
    "cv.candidates": "corpusveil_evaluate.readers.denoise reads the texts of a release",
    "cv.word_risk": "corpusveil_evaluate.readers.ngrams.word_risk has it",
    "cv.context_risk": "'corpusveil evaluate risk' measures it",
}
"""The replacement of a name, as in "NAME: this is gone; …".

A name is a setting (``section.key``), one of its values (``section.key = value``), a ``[section]``, a Python name
(``cv.name``), a command, or its option (``command --option``). Settings are named in the sentence as ``{section.key}``.
"""


def gone_setting(place: str, value: object = None) -> str | None:
    """Return the sentence for a setting, a section, or a setting's value; None if it is not gone."""
    instead = GONE.get(place if value is None else f"{place} = {value}")
    return None if instead is None else f"this is gone; {instead}"


def gone_option(arguments: Sequence[str]) -> tuple[str, str, str] | None:
    """Return the command, what of it is gone (an option, or the command), and the sentence that says so; or None."""
    given = {word.split("=", 1)[0] for word in arguments}
    for name, instead in GONE.items():
        command, dashes, option = name.partition(" --")
        if list(arguments[: len(command.split())]) == command.split() and (not dashes or f"--{option}" in given):
            return command, f"--{option}" if dashes else command, f"this is gone; {instead}"
    return None

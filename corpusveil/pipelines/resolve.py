"""From settings to the plan of a release: what runs, as one frozen value, before anything of the corpus is read."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from corpusveil.budget import Budget
from corpusveil.collocations.collocation_table import load_collocations
from corpusveil.ledger.caps import Spending
from corpusveil.ledger.units import units_of
from corpusveil.mechanisms import make_mechanism
from corpusveil.passages.passage_exchange import PassageExchange
from corpusveil.passages.store import load_store
from corpusveil.pipelines.settings import Settings, needed
from corpusveil.pipelines.settings.sections import EngineSettings, KeySettings, OutputSettings
from corpusveil.recognizers.registry import terms_path
from corpusveil.sampling.keys import Key
from corpusveil.spaces import load_space
from corpusveil.storage import files, home
from corpusveil.storage.corpus import CorpusIn, CorpusOut
from corpusveil.storage.inputs import refuse_nested
from corpusveil.storage.rows import Columns
from corpusveil.transforms.release.corpus import Run
from corpusveil.transforms.release.keyed_release import AnyRelease
from corpusveil.transforms.release.passage_release import PassageRelease
from corpusveil.transforms.release.release import Release
from corpusveil.transforms.release.risk import epsilon_at

if TYPE_CHECKING:
    from corpusveil.passages.pieces import Per


@dataclass(frozen=True, slots=True)
class Plan:
    """A run and its engine; ``own_key`` is the file of the key of its release, if settings name no key."""

    run: Run
    engine: EngineSettings
    own_key: Path | None


def resolve(settings: Settings, *, make_key: bool = True) -> Plan:
    """Return the plan of the settings' release; ``make_key``: with a new key if settings name none."""
    corpus, output, ledger = needed(settings.corpus, "corpus"), needed(settings.output, "output"), settings.ledger
    refuse_published(settings)
    named = settings.key.test or settings.key.environment is not None or settings.key.path is not None
    own = None if named else own_key(settings)
    key = key_of(settings.key, own)
    release, spending = release_of(settings, key), None
    columns = Columns.from_names(corpus.text, corpus.id, corpus.keep, corpus.separator)
    if own is not None and make_key:
        if (kept := keep(key, own)) != key:  # another start has made it in the meantime
            release = dataclasses.replace(release, key=kept)
        home.note_output(own, output.path, corpus.input)
    if ledger is not None and ledger.path is not None:
        spending = Spending(ledger.path, ledger.cap, units_of(ledger.unit), corpus.name or "", ledger.over_cap)
    columns = dataclasses.replace(columns, marked=settings.store is not None and settings.store.mark_source)
    reads = CorpusIn(corpus.input, columns, corpus.root, corpus.name, output.on_bad_rows)
    writes = CorpusOut(output.path, output.records, output.format, output.rows_per_task)
    run = Run(release, reads, writes, spending=spending)
    return Plan(run, settings.engine, own if own is not None and own.exists() else None)


def release_of(settings: Settings, key: Key) -> AnyRelease:
    """Return the release of settings whose presets are written out, under a key, not that of their ``[key]``."""
    output = settings.output or OutputSettings(path="-")  # a pipeline of Beam writes what it likes
    budget, text, store = needed(settings.budget, "budget"), settings.text, settings.store
    if store is not None:
        per = cast("Per", budget.per if settings.is_given("budget.per") else "document")
        own = load_space(needed(settings.space, "space").path) if settings.is_given("space.path") else None
        law = PassageExchange(load_store(store.path, space=own, encoder=store.encoder), store.neighbors)
        return PassageRelease(
            law, float(budget.epsilon or 0), per, key=key,
            most_pieces=store.most_pieces, duplicates=output.duplicates, accept_overlap=store.accept_overlap,
        )  # fmt: skip
    chosen, space = needed(settings.mechanism, "mechanism"), load_space(needed(settings.space, "space").path)
    mechanism = make_mechanism(chosen.name, space, **chosen.parameters)
    table = None if text.collocations is None else load_collocations(text.collocations)
    policy = text.policy()
    risk = None if budget.risk is None else epsilon_at(mechanism, budget.risk, policy)
    epsilon: Any = budget.epsilon if risk is None else risk.epsilon
    return Release(
        mechanism, Budget(epsilon, cast("Any", budget.per), budget.allocation), policy, key=key,
        collocations=table, duplicates=output.duplicates, accept_no_guarantee=output.accept_no_guarantee,
        spans=settings.spans.policy(), risk=risk,
    )  # fmt: skip


def own_key(settings: Settings) -> Path:
    """Return the file of the key of the settings' output and corpus."""
    corpus = needed(settings.corpus, "corpus")
    return home.own_key(needed(settings.output, "output").path, corpus.input, corpus.name)


def key_of(settings: KeySettings, own: Path | None = None) -> Key:
    """Return the key that settings name; otherwise the output's ``own``, or a new one, which ``keep`` keeps."""
    if settings.test:
        return Key.for_tests()
    if settings.environment is not None:
        return Key.from_environment(settings.environment)
    if settings.path is not None:
        return Key.load(settings.path)
    return Key.load(own) if own is not None and own.exists() else Key.generate()


def keep(key: Key, own: Path) -> Key:
    """Return the key of an output in the user's key folder: this key, if the output has none yet."""
    if not own.exists():
        files.create_bytes(str(own), key.secret, private=True)  # of several parallel starts, one makes the key of all
    return Key.load(own)


def refuse_published(settings: Settings) -> None:
    """Raise UserError if the output contains, or is in, something that must not be published."""
    output, ledger = needed(settings.output, "output"), settings.ledger
    folders = ("the ledger", "the private records")
    private: dict[str, Iterable[str | None]] = {
        "the private records": [CorpusOut(output.path, output.records).private.url],
        "the file of schedule.metrics": [settings.schedule.metrics],
        "the key": [settings.key.path or str(own_key(settings))],
        "the file of terms": map(terms_path, settings.spans.find),
        "the ledger": [] if ledger is None else [ledger.path],
    }
    for what, addresses in private.items():
        for address in filter(None, addresses):
            refuse_nested(address, what, output.path, whole=what in folders)

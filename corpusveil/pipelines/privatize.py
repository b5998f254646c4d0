"""From a corpus to a release: settings in, shards, a manifest and private records out."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from corpusveil.budget import Budget
from corpusveil.choices import OF_CONTEXT
from corpusveil.collocations.collocation_table import load_collocations
from corpusveil.display import several
from corpusveil.errors import CapError, MismatchError, listed
from corpusveil.ledger.caps import Caps, Spending
from corpusveil.ledger.units import scope_of, units_of
from corpusveil.mechanisms import Mechanism, make
from corpusveil.mechanisms.content import content_weights
from corpusveil.pipelines.settings import Settings, rules
from corpusveil.pipelines.settings.sections import KeySettings
from corpusveil.pipelines.watch import Later, Watch, tell_first, tell_unknown
from corpusveil.recognizers.registry import is_terms
from corpusveil.sampling.keys import Key
from corpusveil.spaces import load_space
from corpusveil.storage import events, files, home
from corpusveil.storage.engine import Engine
from corpusveil.storage.inputs import find_shards, refuse_nested
from corpusveil.storage.nested import Path
from corpusveil.storage.rows import Columns
from corpusveil.transforms.release.corpus import Outcome, Run
from corpusveil.transforms.release.manifest import MANIFEST
from corpusveil.transforms.release.planning import count_duplicates, forecast
from corpusveil.transforms.release.release import Release
from corpusveil.transforms.release.risk import EpsilonAtRisk, context, epsilon_for_risk
from corpusveil.transforms.release.statement import NOT_PRIVATE, documents_in_words, in_brief

NEARLY_ALL = 0.9
EXAMPLE_LENGTHS = (10, 100, 1000)


@dataclass(frozen=True, slots=True)
class PreparedRelease:
    """The release of the settings, before anything of the corpus is read."""

    release: Release
    columns: Columns
    spending: Spending | None

    def run(self, settings: Settings, **more: Any) -> Run:
        """Return the run of the settings; ``more`` are fields of it that settings do not say."""
        corpus, output = settings.needed("corpus", "output")
        given = {
            "columns": self.columns, "root": corpus.root, "corpus": corpus.name, "records": output.records,
            "rows_per_task": output.rows_per_task, "format": output.format, "on_bad_rows": output.on_bad_rows,
            "page": output.page, "spending": self.spending,
        }  # fmt: skip
        return Run(self.release, corpus.input, output.path, **(given | more))


def prepare(
    settings: Settings, watch: Watch, *, make_key: bool = True, risk: EpsilonAtRisk | None = None
) -> PreparedRelease:
    """Return the release of the settings, under its key.

    If the settings name no key and ``make_key`` is set, a key is made for this output, unless the release is refused. A
    requested ``risk`` is that of earlier runs, if any.
    """
    corpus, output = settings.needed("corpus", "output")
    key = key_of(settings.key, output.path)
    release = release_of(settings, key, watch, risk)
    kept = keep(key, settings.key, output.path, watch, make=make_key)  # now that the release is not refused
    if kept != key:  # another start has made it in the meantime
        release = dataclasses.replace(release, key=kept)
    unit = pseudonym_unit(settings)
    columns = Columns.of(corpus.text, corpus.id, corpus.keep, corpus.separator, unit)
    return PreparedRelease(release, columns, _spending(settings))


def pseudonym_unit(settings: Settings) -> str | None:
    """Return the column of the unit within which pseudonyms are equal, if there is one."""
    spans = settings.spans.policy()
    scope = scope_of(settings.value("ledger.unit"), scoped=spans is not None and spans.scoped)
    return None if scope is None else scope.column


def key_of(settings: KeySettings, output: str) -> Key:
    """Return the key that settings name; otherwise the output's own, or a new one, which ``keep`` keeps."""
    if settings.test:
        return Key.for_tests()
    if settings.environment is not None:
        return Key.from_environment(settings.environment)
    if settings.path is None:
        own = home.own_key(output)
        return Key.load(own) if own.exists() else Key.generate()
    return Key.load(settings.path)


def records_of(settings: Settings) -> str:
    (output,) = settings.needed("output")
    return str(output.records or output.path.rstrip("/") + ".records")


def state_of(settings: Settings) -> str:
    """Return the address of the state of the settings' schedule."""
    (output,) = settings.needed("output")
    return settings.schedule.state or output.path.rstrip("/") + ".schedule"


def refuse_published(settings: Settings) -> None:
    """Raise UserError if a folder that is published has, or lies in, something that is not for the public."""
    (output,) = settings.needed("output")
    folders = ("the ledger", "the private records", "the state of the schedule")
    private: dict[str, Iterable[Any]] = {
        "the key": [settings.key.path or str(home.own_key(output.path))],
        "the key of pseudonyms": [settings.spans.key],
        "the file of terms": filter(is_terms, settings.spans.find),
        "the ledger": [settings.value("ledger.path")],
        "what the ledger spills": [settings.value("ledger.spill")],
        "the private records": [records_of(settings)],
        "the state of the schedule": [state_of(settings)],
        "the log": [log for log in (output.log or events.given(),) if log != "-"],
    }
    for public in filter(None, (output.path, settings.value("denoise.path"))):
        for what, addresses in private.items():
            for address in filter(None, addresses):
                refuse_nested(address, what, public, whole=what in folders)


def keep(key: Key, settings: KeySettings, output: str, watch: Watch, *, make: bool = True) -> Key:
    """Return the key of an output: this one, or if settings name none, that in the user's key folder, and name it.

    There, this key becomes that of the output if there is none yet and ``make`` is set.
    """
    if is_given(settings):
        return key
    own = home.own_key(output)
    if not own.exists():
        if not make:
            return key
        files.create_bytes(str(own), key.secret, private=True)  # of several parallel starts, one makes the key of all
    if make:
        home.note_output(own, output)
    watch.warn(f"No key is given. The key of this output is {own}; a later run with the same output uses it again.")
    return Key.load(own)


def is_given(settings: KeySettings) -> bool:
    """Say whether settings name a key; otherwise the output has one of its own."""
    return settings.test or settings.environment is not None or settings.path is not None


def release_of(settings: Settings, key: Key, watch: Watch, risk: EpsilonAtRisk | None = None) -> Release:
    """Return the release of the settings under a key, which is not that of the settings' ``[key]``."""
    settled = settings.settled()
    text = settled.text
    policy = text.policy()
    mechanism = mechanism_of(settings)
    table = None if text.collocations is None else load_collocations(text.collocations)
    asked = settings.value("budget.risk") is not None
    budget = budget_of(settled.changed(budget={"epsilon": 1.0}) if asked else settled)
    release = Release(
        mechanism, budget, policy, key, table, settings.value("output.duplicates") or "independent",
        accept_no_guarantee=bool(settings.value("output.accept_no_guarantee")), delta=settings.value("budget.delta"),
        distance=settings.value("budget.distance"), length=settings.length.chosen(), spans=settings.spans.policy(),
        pseudonyms=pseudonym_key(settings, key),
    )  # fmt: skip
    if not asked:
        return release
    risk = risk or at_risk(settings, mechanism)  # a release that is refused chooses no epsilon
    watch.say(risk.sentence())
    return dataclasses.replace(release, budget=dataclasses.replace(budget, epsilon=risk.epsilon), risk=risk)


def pseudonym_key(settings: Settings, key: Key) -> Key | None:
    """Return the key of pseudonyms, sent to workers as its place where the release's ``key`` is."""
    path = settings.spans.key
    if path is None:
        return None
    return Key.load(path) if key.place is None else Key.at("path", path)


def mechanism_of(settings: Settings) -> Mechanism:
    """Return the mechanism of the settings, on its space."""
    space, chosen = settings.settled().needed("space", "mechanism")
    return make(chosen.name, load_space(space.path), **chosen.parameters)


def at_risk(settings: Settings, mechanism: Mechanism) -> EpsilonAtRisk:
    """Return the epsilon for the risk of the settings, from public artefacts alone."""
    (budget,) = settings.needed("budget")
    reader, model = rules.risk_reader(settings), None
    if reader in OF_CONTEXT:
        model = context().load_model(str(rules.risk_model(settings)))
    content = None if budget.function_words is None else content_weights(mechanism.space, budget.function_words)
    policy = settings.settled().text.policy()
    return epsilon_for_risk(mechanism, budget.risk, of=reader, model=model, policy=policy, content=content)


def budget_of(settled: Settings) -> Budget:
    """Return the budget of settings whose strategy is written out."""
    (chosen,) = settled.needed("budget")
    return Budget(chosen.epsilon, chosen.per, chosen.allocation, tuple(chosen.weights))


def refuse_other(settings: Settings, release: Release) -> None:
    """Raise MismatchError for another release than the only one that the settings allow, if they name one."""
    only = settings.value("output.only_release")
    if only is not None and release.name != only:
        raise MismatchError(
            f"only_release {only}: this run would make release {release.name}; the configuration, the space, the key "
            "or the version of corpusveil differs."
        )


def _spending(settings: Settings) -> Spending | None:
    ledger = settings.ledger
    if ledger is None or ledger.path is None:
        return None
    caps = Caps(ledger.cap, ledger.cap_token, ledger.cap_ldp, ledger.cap_delta)
    namespace = settings.value("corpus.name") or ""
    return Spending(ledger.path, caps, units_of(ledger.unit), namespace, ledger.memory, ledger.spill)


def run(
    settings: Settings, watch: Watch | None = None, engine: Engine | None = None, *,
    debug: bool = False, risk: EpsilonAtRisk | None = None, explain: bool = False,
    check: Callable[[Release], bool] | None = None,
) -> Outcome:  # fmt: skip
    """Privatize the corpus; finished work is not done again.

    ``risk`` is as in ``prepare``; ``explain`` announces the whole guarantee; ``check`` may refuse the release, before
    the corpus is read, and says whether its guarantee is to be announced.
    """
    watch = watch or Watch()
    _, output = settings.needed("corpus", "output")
    refuse_published(settings)  # before the log is opened
    if (log := output.log or events.given()) is not None:
        events.open_log(log)
    later = Later(watch)
    prepared = prepare(settings, later, risk=risk)
    release = prepared.release
    refuse_other(settings, release)
    if check is None or check(release):
        announce(release, later, prepared.columns.path, explain=explain)
        if prepared.spending is not None and not files.exists(files.join(output.path, MANIFEST)):
            for line in prepared.spending.promises():  # not of a finished release, which asks no ledger
                later.say(line)
    caps = Caps() if prepared.spending is None else prepared.spending.caps
    if caps.ldp is None and caps != Caps():
        later.warn(
            "warning: cap and cap_token add up within one metric. Set cap_ldp as well, which holds over all metrics."
            if caps.delta is None
            else "warning: cap holds for words that differ by a distance of at most 1, and each metric measures "
            "distance in its own way. Set cap_ldp as well, which holds for any two words."
        )
    engine = engine or settings.engine.make()
    if settings.engine.name == "spark":
        watch.warn("starting Spark")
    outcome = prepared.run(
        settings, debug=debug, watch=watch.shards, begun=later.begin,
        look=lambda batch: tell_first(batch, prepared.columns.path, release, later),
    ).privatize(engine)  # fmt: skip
    _describe(outcome, settings, watch)
    return outcome


def plan(settings: Settings, watch: Watch | None = None, *, duplicates: bool = False) -> None:
    """Print the forecast of the release; with ``duplicates``, also read everything and count equal documents.

    Nothing is written, and no key is made. Raises UserError, after all was printed, if the ledger would refuse the
    release.
    """
    watch = watch or Watch()
    (corpus,) = settings.needed("corpus")
    refuse_published(settings)
    prepared = prepare(settings, watch, make_key=False)
    made = forecast(prepared.run(settings))
    for line in made.lines(settings.engine.workers or 1):
        watch.say(line)
    if settings.denoise is not None:
        watch.say(f"{settings.denoise.path}: denoised from this release; that spends nothing, and no ledger counts it")
    if duplicates:
        watch.say(count_duplicates(find_shards(corpus.input), prepared.columns).sentence())
    if made.refused is not None:
        raise CapError(made.refused)


def _describe(outcome: Outcome, settings: Settings, watch: Watch) -> None:
    """Say what was released, and which columns are copied, outside every guarantee, and which are not."""
    (output,) = settings.needed("output")
    counts, shards = outcome.counts, outcome.shards
    sizes = f"{several(shards, 'shard')}, {several(counts.documents, 'document')}"
    sizes += f", {several(counts.tokens_written, 'token')}"
    if outcome.content_sha256 is None:
        handed = several(shards, "shard was", "shards were")
        watch.say(f"{output.path}: {handed} handed over; the job writes the manifest when all are done")
    elif outcome.finished_before:
        watch.say(f"{output.path}: an earlier run finished this release ({sizes}); nothing was left to do")
    else:
        watch.say(f"{output.path}: {sizes}, {outcome.seconds:.1f} s")
    if outcome.content_sha256 is not None:
        if counts.quarantined:
            rows = several(counts.quarantined, "row could not be read and was", "rows could not be read and were")
            watch.warn(f"warning: {rows} set aside in the private records.")
        words = f"{counts.privatized + counts.fillers:,} of the tokens are replaced words"
        watch.confide(f"{words} (private; a ledger counts these).")
        tell_unknown(counts.unknown_share, watch)
        watch.say(f"content sha256 {outcome.content_sha256}")
    watch.say(f"private records (do not publish): {records_of(settings)}")
    columns = Columns.of(settings.value("corpus.text"), None, settings.value("corpus.keep"))
    if columns.keeps:
        names = "every other column" if columns.others == "keep" else listed(columns.whole)
        watch.say(f"copied in the clear: {names}{f', but for {columns.text}' if columns.path else ''}")
    if outcome.not_copied:
        watch.say(f"not copied: {listed(outcome.not_copied)} (keep all copies every column, in the clear)")
    if not is_given(settings.key):
        own = home.own_key(output.path)
        watch.say(f"key of this output (destroy it when no later run needs it; 'corpusveil key list' finds it): {own}")


def announce(release: Release, watch: Watch, path: Path | None = None, *, explain: bool = False) -> None:
    """Print the expected share of unchanged words, the guarantee and the disclosures; with ``explain`` in full.

    Without a guarantee, always print why there is none. ``path`` is that of texts within a column.
    """
    if release.key.test:
        watch.warn(NOT_PRIVATE)
    mechanism, budget = release.mechanism, release.budget
    if budget.per == "token":
        share = mechanism.retention(budget.epsilon)
        watch.say(f"Expected share of known words that are unchanged: {share:.1%}")
    else:
        share, examples = _shares_by_length(release)
        watch.say(f"Expected share of known words that are unchanged, by the words of a document: {examples}")
    if share > NEARLY_ALL:
        watch.warn(f"warning: at epsilon {budget.epsilon:.4g} nearly all known words are unchanged.")
    guarantee = release.guarantee()
    if guarantee.holds:
        watch.say(f"Guarantee: {in_brief(guarantee.plain_ldp, budget.epsilon, budget.per)}")
        for line in () if explain else documents_in_words(release):
            watch.say(line)
    for line in guarantee.notes if explain or not guarantee.holds else ():
        watch.say(f"- {line}")
    if path is not None:
        watch.say(path.is_alone())
        guarantee = dataclasses.replace(guarantee, disclosed=(*guarantee.disclosed, path.disclosed()))
    watch.say(f"Disclosed: {'; '.join(guarantee.disclosed)}.")
    if guarantee.holds and not explain:
        watch.say("Every condition is in the manifest, as guarantee_in_words.")


def _shares_by_length(release: Release) -> tuple[float, str]:
    """Return the largest share of unchanged words in documents of some lengths, and all shares in words."""
    import numpy as np

    budget = release.budget
    lengths: Any = np.array(EXAMPLE_LENGTHS)
    shares = budget.shares(budget.weight_before(lengths) if budget.weights else lengths)
    stay = [release.mechanism.retention(float(value)) for value in shares]
    return max(stay), ", ".join(f"{k:.1%} of {n}" for k, n in zip(stay, EXAMPLE_LENGTHS, strict=True))

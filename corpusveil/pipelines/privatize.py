"""From a plan to a release: shards, a manifest and private records; and the forecast of both."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from corpusveil.display import several
from corpusveil.errors import CapError, listed
from corpusveil.pipelines.resolve import Plan, resolve
from corpusveil.pipelines.settings import Settings
from corpusveil.pipelines.watch import Watch
from corpusveil.storage import files
from corpusveil.storage.rows import Batch
from corpusveil.text.counts import MANY_UNKNOWN
from corpusveil.transforms.identities import repeated_ids
from corpusveil.transforms.release.corpus import Outcome
from corpusveil.transforms.release.keyed_release import NOT_PRIVATE, AnyRelease
from corpusveil.transforms.release.manifest import MANIFEST
from corpusveil.transforms.release.pages import page_of
from corpusveil.transforms.release.planning import forecast


def run(settings: Settings, watch: Watch | None = None, *, debug: bool = False, explain: bool = False) -> Outcome:
    """Privatize the corpus of the settings; finished work is not done again."""
    plan = resolve(settings)
    return privatize(plan, watch, debug=debug, explain=explain)


def privatize(
    plan: Plan, watch: Watch | None = None, *, debug: bool = False, explain: bool = False, announced: bool = True
) -> Outcome:
    """Make the release of a plan. It is ``announced`` with its guarantee, and with ``explain`` in full."""
    watch = watch or Watch()

    def begun(first: Sequence[Batch]) -> None:
        _note(plan, watch)
        if announced:
            announce(plan.run.release, watch, explain=explain)
            if plan.run.spending is not None and not files.exists(files.join(plan.run.writes.url, MANIFEST)):
                for line in plan.run.spending.promises():  # not of a finished release, which asks no ledger
                    watch.say(line)
                for line in plan.run.spending.doubts():
                    watch.warn(f"warning: {line}")
        for batch in first:
            if plan.run.release.duplicates == "independent" and (said := repeated_ids(batch.ids or [])):
                watch.warn(f"warning: in the first rows, {said}")

    engine = plan.engine.engine()
    if plan.engine.name == "spark":
        watch.warn("starting Spark")
    outcome = dataclasses.replace(plan.run, debug=debug, begun=begun).privatize(engine)
    _describe(outcome, plan, watch)
    return outcome


def foresee(settings: Settings, watch: Watch | None = None) -> None:
    """Print the forecast of the release. Raises UserError, after all was printed, if the ledger would refuse it."""
    watch = watch or Watch()
    plan = resolve(settings, make_key=False)
    _note(plan, watch)
    made = forecast(plan.run)
    for line in made.lines(plan.engine.workers or 1):
        watch.say(line)
    if made.refused is not None:
        raise CapError(made.refused)


def _note(plan: Plan, watch: Watch) -> None:
    """Say what the plan's settings mean: the epsilon of a risk, the key of an output without one, and no id."""
    for line in plan.run.release.remarks():
        watch.say(line)
    if (own := plan.own_key) is not None:
        watch.warn(f"No key was given: {own} is this output's key. Use another for other documents.")
    if plan.run.reads.columns.id is None and plan.run.release.duplicates != "same-noise":
        watch.say(
            "No id column was named, so row numbers identify rows: adding or removing a row changes the noise of all "
            "later rows of its file, which spend again. Name the column that identifies rows (id)."
        )


def _describe(outcome: Outcome, plan: Plan, watch: Watch) -> None:
    """Say what was released, and which columns are copied, outside every guarantee, and which are not."""
    counts, shards, columns, output = outcome.counts, outcome.shards, plan.run.reads.columns, plan.run.writes.url
    sizes = f"{several(shards, 'shard')}, {several(counts.documents, 'document')}"
    sizes += f", {several(counts.tokens_written, plan.run.release.counted)}"
    if outcome.finished_before:
        watch.say(f"{output}: an earlier run finished this release ({sizes}); nothing was left to do")
    else:
        watch.say(f"{output}: {sizes}, {outcome.seconds:.1f} s")
    if counts.bad_rows:
        rows = several(counts.bad_rows, "row could not be read and was", "rows could not be read and were")
        watch.warn(f"warning: {rows} dropped; the private records name the first ones.")
    elif not counts.documents:
        watch.warn("warning: no document was found in the input.")
    if counts.dropped:
        documents = several(counts.dropped, "document was", "documents were")
        watch.warn(f"warning: {documents} left out: those of units above a cap.")
    if counts.unknown_share > MANY_UNKNOWN:
        watch.warn(
            f"warning: more than {MANY_UNKNOWN:.0%} of the words are not in the space, and were replaced regardless of "
            "their meaning (totals.json in the records has their number)."
        )
    watch.say(f"content sha256 {outcome.content_sha256}")
    watch.say(f"to publish: {output} and {page_of(output)}; never {plan.run.writes.private.url}, the private records")
    if columns.keep:
        watch.say(f"copied in the clear: {listed(columns.keep)}")
    watch.hidden(outcome.not_read)
    if outcome.not_copied:
        watch.say(f"not copied: {listed(outcome.not_copied)} (keep names columns to copy, in the clear)")
    if (own := plan.own_key) is not None:
        watch.say(f"key of this output (destroy it when no later run needs it; 'corpusveil key list' finds it): {own}")


def announce(release: AnyRelease, watch: Watch, *, explain: bool = False) -> None:
    """Print the law, the guarantee (with ``explain`` in full, or the reason why it is missing) and the disclosures."""
    if release.key.test:
        watch.warn(NOT_PRIVATE)
    watch.say(release.law())
    guarantee = release.guarantee()
    if guarantee.holds:
        watch.say(f"Guarantee: {release.in_brief()}")
    for line in guarantee.notes if explain or not guarantee.holds else ():
        watch.say(f"- {line}")
    watch.say(f"Disclosed: {'; '.join(guarantee.disclosed)}.")
    if guarantee.holds and not explain:
        watch.say("Every condition is in the manifest, as guarantee_in_words.")

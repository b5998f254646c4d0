"""The schedule: release by release, what came into a corpus since the last one.

Each run privatizes the shards that are new, and those that changed, into a folder of its own: a whole release with its
manifest. The plan of a run is written down before it begins, so a run that was killed is finished by the next start.
The state is private: it names input files and holds keyed digests of them.

One key and one release configuration serve all runs: a document that comes again, under the same identity and with the
same content, gets the noise it had and spends nothing new.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from corpusveil.choices import Compare
from corpusveil.errors import BadRecordError, BadShardsError, CorpusveilError, UserError
from corpusveil.pipelines.schedule_metrics import LeftOut, metrics_of, note
from corpusveil.storage import files
from corpusveil.storage.inputs import NO_MATCH, InputShard, find_shards, lies_at
from corpusveil.storage.records import Line, Record, Records, Shard
from corpusveil.storage.tasks import keyed_digest
from corpusveil.transforms.manifest import read_manifest
from corpusveil.transforms.pages import write_pages

_INTERRUPTED = 130
_UNKNOWN = "unknown"
"""Stands for the digest of a shard that was released and has changed since: no digest is equal to it."""


class Planned(Record):
    """``runs/*.plan.json``: the shards of a run (address, relative path, size, stamp), and why they are in it."""

    shards: list[tuple[str, str, int, str]]
    why: dict[str, str]


class Finished(Record):
    """``runs/*.done.json``: what a run released; of each shard size, stamp and digest."""

    given_up: bool = False
    release: Line = ""
    key_fingerprint: Line = ""
    documents: int = 0
    tokens: int = 0
    shards: dict[str, tuple[int, str, str]]


class Touched(Record):
    """``touched.json``: shards of another stamp and the same content: size and stamp."""

    shards: dict[str, tuple[int, str]]


@dataclass(frozen=True, slots=True)
class Plan:
    """One run: its number, what it privatizes, and why (``new`` or ``changed``) by relative path."""

    number: int
    shards: tuple[InputShard, ...]
    why: Mapping[str, str]

    @property
    def name(self) -> str:
        """The name of the run's folders."""
        return f"run-{self.number:05d}"

    def count(self, why: str) -> int:
        """Return how many shards are in it for one reason."""
        return sum(one == why for one in self.why.values())


@dataclass(frozen=True, slots=True)
class Schedule:
    """A corpus that grows, where its releases go, and what was done so far.

    ``compare`` says when a shard counts as changed: by size and the ``stamp`` that its store gives it whenever it is
    written, then by content; or by ``content`` alone, which reads everything every time.
    """

    inputs: tuple[str, ...]
    root: str
    """The folder that the paths in documents' identities begin at."""
    output: str
    records: str
    state: Records
    record_key: bytes = field(repr=False)
    compare: Compare = "stamp"
    settings: str = ""
    """A digest of everything that decides whether a shard can be used."""

    def output_of(self, plan: Plan) -> str:
        """Return where a run writes its release."""
        return files.join(self.output, plan.name)

    def records_of(self, plan: Plan) -> str:
        """Return where a run writes its private records."""
        return files.join(self.records, plan.name)

    def next(self) -> Plan | None:
        """Return the run to do now, written down: one that was begun, else what is due; None when nothing is.

        A run whose shards are not all there any more is given up: what is left of it is due again, in the next one. One
        that was released, and of which it is not written down any more that it is done, is to be finished once more.
        """
        shards = self._shards()
        numbers = self._numbers("plan")
        for number in numbers:
            if self._done(number) is not None:
                continue
            plan = self._plan(number)
            there = {one.relative for one in plan.shards} <= {one.relative for one in shards}
            if self.is_released(plan) or (there and number == numbers[-1]):
                return plan
            self._give_up(plan)
        found = self._due(shards, numbers[-1] + 1 if numbers else 1)
        if found is not None:
            listed = [(one.url, one.relative, one.size, one.stamp) for one in found.shards]
            self.state.write(f"runs/{found.number:05d}.plan.json", Planned(shards=listed, why=dict(found.why)))
        return found

    def due(self) -> Plan | None:
        """Return what the next run would be, with nothing written."""
        numbers = self._numbers("plan")
        if numbers and self._done(numbers[-1]) is None:
            return self._plan(numbers[-1])
        return self._due(self._shards(), numbers[-1] + 1 if numbers else 1, note=False)

    def is_released(self, plan: Plan) -> bool:
        """Say whether a run's release is finished."""
        return files.exists(files.join(self.output_of(plan), "manifest.json"))

    def finish(self, plan: Plan) -> dict[str, Any]:
        """Write down that a run is done; return its manifest.

        What the records do not say any more of a released shard is taken from the plan, and from the input where that
        is still what the plan says.
        """
        records = Records(self.records_of(plan))
        stamps = {one.relative: (one.size, one.stamp) for one in plan.shards}
        done: dict[str, tuple[int, str, str]] = {}
        for name in records.names("shards"):
            try:
                record = records.read(f"shards/{name}", Shard)
            except BadRecordError:
                continue
            if record is not None and ".piece-" not in name:
                path = record.input.path
                if path not in stamps:
                    raise BadRecordError(
                        f"{records.url}: the record of {name} belongs to another run; restore the record of this run."
                    )
                done[path] = (*stamps[path], record.input.digest)
        if len(done) != len(plan.shards):
            now = {one.relative: (one.size, one.stamp) for one in self._shards()}
            for one in plan.shards:
                same = now.get(one.relative) == (one.size, one.stamp)
                digest = keyed_digest(one.url, self.record_key) if same else _UNKNOWN
                done.setdefault(one.relative, (one.size, one.stamp, digest))
        manifest = read_manifest(self.output_of(plan))
        kept = {name: manifest[name] for name in ("release", "key_fingerprint", "documents", "tokens")}
        write_pages(self.output_of(plan), records)
        self.state.write(f"runs/{plan.number:05d}.done.json", Finished(**kept, shards=done))
        if left_out := self._left_out():
            self._keep_left_out({name: told for name, told in left_out.items() if name not in done})
        return manifest

    def leave_out(self, plan: Plan, sentences: Mapping[int, str]) -> None:
        """Give a run up and leave shards that can't be used, by their numbers in it, out of later ones.

        They come again when they or the settings change, and the others of the run in the next one: what is drawn for
        them then is what was drawn now.
        """
        left_out = self._left_out()
        for number, sentence in sentences.items():
            one = plan.shards[number]
            left_out[one.relative] = (one.size, one.stamp, keyed_digest(one.url, self.record_key), sentence)
        self._keep_left_out(left_out)
        self._give_up(plan)

    def left_out(self) -> list[str]:
        """Return why shards are left out that are still as they were, a sentence each."""
        left_out = self._left_out()
        return [left_out[one.relative][3] for one in self._shards() if self._is(one, left_out.get(one.relative))]

    def release(self) -> str | None:
        """Return the name of the release that earlier runs made, as a ledger writes it; None before the first."""
        for number in reversed(self._numbers("done")):
            done = self._done(number)
            if done is not None and done.release and done.key_fingerprint:
                return f"{done.release[:16]}-{done.key_fingerprint[:16]}"
        return None

    def runs(self) -> Iterator[tuple[int, Finished | None]]:
        """Yield the runs so far by number, with what was written down of those that are done."""
        for number in self._numbers("plan"):
            yield number, self._done(number)

    def refusal(self, number: int) -> str | None:
        """Return why the last start of a run ended without a release; None where that is not known."""
        noted = [line for line in metrics_of(self.state) if line.run == number]
        if not noted or noted[-1].why is None:
            return None
        return f"{'refused' if noted[-1].status == UserError.exit_status else 'failed'}: {noted[-1].why}"

    def last_failure(self) -> str | None:
        """Return when and why the last start failed, and what to do; None where it did not."""
        noted = metrics_of(self.state)
        if not noted or noted[-1].status == 0:
            return None
        last = noted[-1]
        if last.status == _INTERRUPTED:
            return f"{last.time}: it was interrupted; the next start continues the run"
        if last.why is not None:
            return f"{last.time}: {last.why} Correct this and start the schedule again; it continues the run"
        if last.run is None:
            return f"{last.time}: shards were left out (see above); all other shards are released"
        return f"{last.time}: an unexpected error; start the schedule again with --debug to see it"

    def _shards(self) -> Sequence[InputShard]:
        try:
            return find_shards(self.inputs, self.root)
        except UserError as error:
            if NO_MATCH in str(error) and self._numbers("done"):
                return []
            raise

    def _due(self, shards: Sequence[InputShard], number: int, *, note: bool = True) -> Plan | None:
        known: dict[str, tuple[int, str, str]] = {}
        for earlier in self._numbers("done"):
            if (done := self._done(earlier)) is not None:
                known |= done.shards
        read = self.state.read("touched.json", Touched)
        touched = {} if read is None else dict(read.shards)
        left_out = self._left_out()
        why: dict[str, str] = {}
        for shard in shards:
            before = known.get(shard.relative)
            stamp = (shard.size, shard.stamp)
            if self.compare == "stamp" and before is not None and stamp == touched.get(shard.relative):
                continue
            if self._is(shard, left_out.get(shard.relative)):
                continue
            if not self._is(shard, before):
                why[shard.relative] = "new" if before is None else "changed"
            elif before is not None and stamp != before[:2]:
                touched[shard.relative] = stamp
        if note:
            self.state.write("touched.json", Touched(shards=touched))
        return Plan(number, tuple(one for one in shards if one.relative in why), why) if why else None

    def _is(self, shard: InputShard, before: Sequence[Any] | None) -> bool:
        """Say whether a shard is what it was before: size, stamp and digest."""
        if before is None:
            return False
        if self.compare == "stamp" and tuple(before[:2]) == (shard.size, shard.stamp):
            return True
        return bool(keyed_digest(shard.url, self.record_key) == before[2])

    def _left_out(self) -> dict[str, tuple[int, str, str, str]]:
        """Return the shards that can't be used under these settings: size, stamp, digest and why, by relative path."""
        told = self.state.read("left_out.json", LeftOut)
        return dict(told.shards) if told is not None and told.settings == self.settings else {}

    def _keep_left_out(self, shards: dict[str, tuple[int, str, str, str]]) -> None:
        self.state.write("left_out.json", LeftOut(settings=self.settings, shards=shards))

    def _give_up(self, plan: Plan) -> None:
        """Remove what a run left that can't be finished; no reader took it for a release, it has no manifest."""
        files.remove_folder(self.output_of(plan))
        files.remove_folder(self.records_of(plan))
        self.state.write(f"runs/{plan.number:05d}.done.json", Finished(given_up=True, shards={}))

    def _numbers(self, kind: str) -> list[int]:
        ending = f".{kind}.json"
        found = (name.removesuffix(ending) for name in self.state.names("runs") if name.endswith(ending))
        return sorted(int(number) for number in found if re.fullmatch("[0-9]{5,9}", number))

    def _done(self, number: int) -> Finished | None:
        """Return what was written down of a run that is done; None where nothing sound is, whatever happened to it."""
        try:
            return self.state.read(f"runs/{number:05d}.done.json", Finished)
        except BadRecordError:
            return None

    def _plan(self, number: int) -> Plan:
        name = f"runs/{number:05d}.plan.json"
        try:
            plan = self.state.read(name, Planned)
        except BadRecordError:
            plan = None
        if plan is None:
            raise BadRecordError(f"{self.state.address(name)}: this plan of a run is damaged; restore it from a copy.")
        shards = tuple(InputShard(*one) for one in plan.shards)
        for one in shards:
            if not lies_at(one.url, self.root, one.relative):
                raise BadRecordError(
                    f"{self.state.address(name)}: this plan names a shard that is not below {self.root}; restore the "
                    "plan from a copy."
                )
        return Plan(number, shards, plan.why)


def go_on(schedule: Schedule, privatize: Callable[[Plan], Any], tell: Callable[[str], None]) -> tuple[int, bool]:
    """Do what is to be done, run by run, until nothing is due; return the exit status, and whether anything was done.

    ``privatize`` does one run, or raises why it can't. Shards that it can't use are left out, and told; all others are
    released, and the status is 2. A line of metrics is kept for each run, and for a start that had nothing to do.
    """
    did, left_out = False, 0
    while True:
        began, at = time.monotonic(), datetime.now(UTC)
        measured: dict[str, Any] = {"run": None}
        try:
            plan = schedule.next()
            if plan is None:
                break
            did = True
            measured = {"run": plan.number, "documents": 0, "tokens": 0}
            measured |= {why: plan.count(why) for why in ("new", "changed")}
            tell(f"{plan.name}: {measured['new']:,} new and {measured['changed']:,} changed shards")
            try:
                if not schedule.is_released(plan):
                    privatize(plan)
            except BadShardsError as error:
                schedule.leave_out(plan, error.sentences)
                left_out = UserError.exit_status
                for sentence in error.sentences.values():
                    tell(f"corpusveil: {sentence} The shard is left out until it changes.")
                note(schedule.state, at, left_out, time.monotonic() - began, {"run": None})
                continue
            done = schedule.finish(plan)
            measured |= {name: done[name] for name in ("documents", "tokens")}
        except (Exception, KeyboardInterrupt) as error:
            if isinstance(error, CorpusveilError):
                measured["why"] = str(error)
            failed = _INTERRUPTED if isinstance(error, KeyboardInterrupt) else getattr(error, "exit_status", 1)
            note(schedule.state, at, failed, time.monotonic() - began, measured)
            raise
        note(schedule.state, at, 0, time.monotonic() - began, measured)
    if not did:
        note(schedule.state, at, 0, time.monotonic() - began, {"run": None})
        for sentence in schedule.left_out():
            tell(f"left out: {sentence}")
    return left_out, did

"""The schedule: a release for each batch of new and changed shards of a corpus.

Each run privatizes the new and changed shards into a separate folder: a whole release with its manifest. The plan of a
run is written before it begins, so the next start finishes a killed run. The state is private: it names input files and
contains keyed digests of them.

All runs share one key and one release configuration: a document that returns, with the same identity and content, gets
the same noise and spends nothing new.
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
"""Replaces the digest of a shard that changed after its release: no digest is equal to it."""


class Planned(Record):
    """``runs/*.plan.json``: the shards of a run (address, relative path, size, stamp), and why they are in it."""

    shards: list[tuple[str, str, int, str]]
    why: dict[str, str]


class Finished(Record):
    """``runs/*.done.json``: the shards that a run released, with size, stamp and digest."""

    given_up: bool = False
    release: Line = ""
    key_fingerprint: Line = ""
    documents: int = 0
    tokens: int = 0
    shards: dict[str, tuple[int, str, str]]


class Touched(Record):
    """``touched.json``: shards with a new stamp and the same content: size and stamp."""

    shards: dict[str, tuple[int, str]]


@dataclass(frozen=True, slots=True)
class Plan:
    """One run: its number, its shards, and why they are in it (``new`` or ``changed``), by relative path."""

    number: int
    shards: tuple[InputShard, ...]
    why: Mapping[str, str]

    @property
    def name(self) -> str:
        """The name of the run's folders."""
        return f"run-{self.number:05d}"

    def count(self, why: str) -> int:
        """Return the number of shards with one reason."""
        return sum(one == why for one in self.why.values())


@dataclass(frozen=True, slots=True)
class Schedule:
    """A growing corpus, the place of its releases, and the runs so far.

    ``compare`` says when a shard counts as changed: by size and the ``stamp`` that its store sets at each write, then
    by content; or by ``content`` alone, which reads everything every time.
    """

    inputs: tuple[str, ...]
    root: str
    """The folder at which the paths in documents' identities begin."""
    output: str
    records: str
    state: Records
    record_key: bytes = field(repr=False)
    compare: Compare = "stamp"
    settings: str = ""
    """A digest of everything that decides whether a shard can be used."""

    def output_of(self, plan: Plan) -> str:
        """Return the address of a run's release."""
        return files.join(self.output, plan.name)

    def records_of(self, plan: Plan) -> str:
        """Return the address of a run's private records."""
        return files.join(self.records, plan.name)

    def next(self) -> Plan | None:
        """Return the run to do now, after writing its plan: an unfinished run, otherwise the due shards.

        None if nothing is due.

        A run whose shards are not all present any more is abandoned, and its remaining shards are due in the next run.
        A released run whose done record is lost is finished once more.
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
        """Return the next run, without writing anything."""
        numbers = self._numbers("plan")
        if numbers and self._done(numbers[-1]) is None:
            return self._plan(numbers[-1])
        return self._due(self._shards(), numbers[-1] + 1 if numbers else 1, note=False)

    def is_released(self, plan: Plan) -> bool:
        """Say whether a run's release is finished."""
        return files.exists(files.join(self.output_of(plan), "manifest.json"))

    def finish(self, plan: Plan) -> dict[str, Any]:
        """Record that a run is done; return its manifest.

        Lost records of a released shard are replaced from the plan, and from the input if it still matches the plan.
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
        """Abandon a run, and leave unusable shards, given by number, out of later runs.

        They are tried again when they or the settings change. The other shards are in the next run, with the same draws
        as now.
        """
        left_out = self._left_out()
        for number, sentence in sentences.items():
            one = plan.shards[number]
            left_out[one.relative] = (one.size, one.stamp, keyed_digest(one.url, self.record_key), sentence)
        self._keep_left_out(left_out)
        self._give_up(plan)

    def left_out(self) -> list[str]:
        """Return the reason for each shard that is left out and unchanged, as a sentence."""
        left_out = self._left_out()
        return [left_out[one.relative][3] for one in self._shards() if self._is(one, left_out.get(one.relative))]

    def release(self) -> str | None:
        """Return the ledger's name of the release that earlier runs made; None before the first run."""
        for number in reversed(self._numbers("done")):
            done = self._done(number)
            if done is not None and done.release and done.key_fingerprint:
                return f"{done.release[:16]}-{done.key_fingerprint[:16]}"
        return None

    def runs(self) -> Iterator[tuple[int, Finished | None]]:
        """Yield the runs so far by number, with the done records of finished runs."""
        for number in self._numbers("plan"):
            yield number, self._done(number)

    def refusal(self, number: int) -> str | None:
        """Return why the last start of a run ended without a release; None if unknown."""
        noted = [line for line in metrics_of(self.state) if line.run == number]
        if not noted or noted[-1].why is None:
            return None
        return f"{'refused' if noted[-1].status == UserError.exit_status else 'failed'}: {noted[-1].why}"

    def last_failure(self) -> str | None:
        """Return when and why the last start failed, and what to do; None if it did not fail."""
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
        """Say whether a shard is unchanged: size, stamp and digest."""
        if before is None:
            return False
        if self.compare == "stamp" and tuple(before[:2]) == (shard.size, shard.stamp):
            return True
        return bool(keyed_digest(shard.url, self.record_key) == before[2])

    def _left_out(self) -> dict[str, tuple[int, str, str, str]]:
        """Return the shards that are unusable with these settings: size, stamp, digest and reason, by relative path."""
        told = self.state.read("left_out.json", LeftOut)
        return dict(told.shards) if told is not None and told.settings == self.settings else {}

    def _keep_left_out(self, shards: dict[str, tuple[int, str, str, str]]) -> None:
        self.state.write("left_out.json", LeftOut(settings=self.settings, shards=shards))

    def _give_up(self, plan: Plan) -> None:
        """Remove the output of a run that cannot be finished; it has no manifest, so no reader used it as a release."""
        files.remove_folder(self.output_of(plan))
        files.remove_folder(self.records_of(plan))
        self.state.write(f"runs/{plan.number:05d}.done.json", Finished(given_up=True, shards={}))

    def _numbers(self, kind: str) -> list[int]:
        ending = f".{kind}.json"
        found = (name.removesuffix(ending) for name in self.state.names("runs") if name.endswith(ending))
        return sorted(int(number) for number in found if re.fullmatch("[0-9]{5,9}", number))

    def _done(self, number: int) -> Finished | None:
        """Return the done record of a run; None if it is missing or damaged."""
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
    """Do all due runs, one by one; return the exit status, and whether anything was done.

    ``privatize`` does one run, or raises an error. Unusable shards are left out and reported; all others are released,
    and the status is 2. Each run, and each start without work, adds a line of metrics.
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

"""The schedule: a release for each batch of new and changed shards of a corpus.

Each run privatizes the new and changed shards into a separate folder: a whole release with its manifest. The plan of a
run is written before it begins, so the next start finishes a killed run. The state is private: it names input files and
contains keyed digests of them.

All runs share one key and one release configuration: a document that returns, with the same identity and content, gets
the same noise and spends nothing new.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from corpusveil.display import several
from corpusveil.errors import BadRecordError, InUseError, MismatchError
from corpusveil.pipelines.schedule_state import LEFT_OUT, SUMMARY, Finished, LeftOut, Planned, StartSummary
from corpusveil.storage import files, formats
from corpusveil.storage.inputs import InputShard, find_shards, lies_at
from corpusveil.storage.records import R, Records, Shard, Totals
from corpusveil.storage.tasks import keyed_digest
from corpusveil.transforms.release.manifest import INDEX, MANIFEST, read_manifest
from corpusveil.transforms.release.pages import write_pages

_RUN = re.compile(r"([0-9]{5,9})\.(plan|done)\.json")
_SHOWN = 20
"""The last runs that are shown one by one."""
_UNKNOWN = "unknown"
"""Replaces the digest of a shard that changed after its release: no digest is equal to it."""


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """One run: its number, its shards, and why they are in it (``new`` or ``changed``), by relative path."""

    number: int
    shards: tuple[InputShard, ...]
    why: Mapping[str, str]

    @property
    def name(self) -> str:
        return f"run-{self.number:05d}"

    def batch(self) -> str:
        """Return how many shards are new, and how many have changed."""
        counts = Counter(self.why.values())
        return " and ".join(several(counts[why], f"{why} shard") for why in ("new", "changed") if why in counts)


@dataclass(frozen=True, slots=True)
class Ahead:
    """The work of the next start: the run to do, if any, after abandoning others, with reasons.

    ``summary`` and ``left_out`` replace what the state has. ``waiting`` is the number of shards that are too young.
    """

    plan: PlannedRun | None
    abandoned: tuple[tuple[PlannedRun, str], ...]
    summary: StartSummary
    left_out: LeftOut
    waiting: int = 0


@dataclass(frozen=True, slots=True)
class Schedule:
    """A growing corpus, the place of its releases, and the runs so far.

    A shard counts as changed by size and the stamp that its store sets at each write, then by content.
    """

    inputs: tuple[str, ...]
    root: str
    """The folder at which the paths in documents' identities begin."""
    output: str
    records: str
    state: Records
    record_key: bytes = field(repr=False)
    settings: str = ""
    """A digest of everything that decides whether a shard can be used."""
    settle: float = 0.0
    """The age in seconds, by the store's modification time, from which a shard is released."""
    page: bool = True
    """Whether releases have a public page."""
    has_ids: bool = True
    """Whether the noise of documents depends on no place: a column identifies them, or equal texts have the same."""
    left_out_fails: bool = True
    """Whether a start fails while shards are left out."""

    def output_of(self, plan: PlannedRun) -> str:
        return files.join(self.output, plan.name)

    def records_of(self, plan: PlannedRun) -> str:
        return files.join(self.records, plan.name)

    def next(self) -> Ahead:
        """Return the work to do now, after writing its plan: an unfinished run, otherwise the due shards.

        A run whose shards are not all present any more is abandoned, and its remaining shards are due in the next run.
        A released run whose done record is lost is finished once more.
        """
        ahead = self.ahead()
        for abandoned, why in ahead.abandoned:
            self._give_up(abandoned, why)
        for name, record in ((SUMMARY, ahead.summary), (LEFT_OUT, ahead.left_out)):
            if record != (self._sound(name, type(record)) or type(record)()):
                self.state.write(name, record)
        plan = ahead.plan
        if plan is not None and plan.number not in self._numbers():
            self._refuse_others(plan)
            listed = [(shard.url, shard.relative, shard.size, shard.stamp) for shard in plan.shards]
            self.state.write(f"runs/{plan.number:05d}.plan.json", Planned(shards=listed, why=dict(plan.why)))
        return ahead

    def ahead(self) -> Ahead:
        """Return the work of the next start, without doing or writing any of it.

        Raises UserError if no shard is there: a folder that is not mounted must not count as a corpus without news.
        """
        numbers = self._numbers()
        finished, summary, unfinished = self._summaries(numbers)
        shards, aliens = find_usable(self.inputs, self.root, summary)
        there, left_out = {shard.relative for shard in shards}, self.left_out()
        abandoned: list[tuple[PlannedRun, str]] = []
        for number in unfinished:
            plan = self._plan(number)
            gone = sum(shard.relative not in there for shard in plan.shards)
            if self.is_released(plan) or (number == numbers[-1] and plan.shards and not gone):
                return Ahead(plan, tuple(abandoned), finished, left_out)
            was = "was" if gone == 1 else "were"
            removed = f"{_part(gone, plan)} {was} removed" if gone else "another run followed"
            abandoned.append((plan, removed if plan.shards else "its plan is damaged"))
        due, known, waiting = self._due(shards, max(numbers, default=0) + 1, summary)
        now = {shard.relative: (shard.size, shard.stamp) for shard in shards}
        kept = {  # without those that are again as they were released
            path: out for path, out in left_out.shards.items()
            if path in now and (path not in known or tuple(known[path][:2]) != now[path])
        }  # fmt: skip
        return Ahead(
            due, tuple(abandoned), finished if unfinished else summary.model_copy(update={"shards": known}),
            LeftOut(settings=left_out.settings, shards=kept, aliens=aliens) if kept or aliens else LeftOut(), waiting,
        )  # fmt: skip

    def is_released(self, plan: PlannedRun) -> bool:
        return files.exists(files.join(self.output_of(plan), MANIFEST))

    def finish(self, plan: PlannedRun) -> Finished:
        """Record that a run is done, and return the record.

        Lost records of a released shard are replaced from the plan, and from the input if it still matches the plan.
        """
        records = Records(self.records_of(plan))
        stamps = {shard.relative: (shard.size, shard.stamp) for shard in plan.shards}
        digests: dict[str, str] = {}
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
                digests[path] = record.input.digest
        if len(digests) != len(plan.shards):
            there, _ = find_usable(self.inputs, self.root, self.summary())
            now = {shard.relative: (shard.size, shard.stamp) for shard in there}
            for shard in plan.shards:
                same = now.get(shard.relative) == (shard.size, shard.stamp)
                digests.setdefault(
                    shard.relative, keyed_digest(shard.url, self.record_key) if same else _UNKNOWN
                )  # fmt: skip
        manifest = read_manifest(self.output_of(plan))
        kept: dict[str, Any] = {name: manifest[name] for name in ("release", "key_fingerprint", "documents", "tokens")}
        places = [f"{plan.name}/{shard['name']}" for shard in manifest["shards"]]
        if len(places) != len(plan.shards):
            raise InUseError(f"{self.output_of(plan)}: this release is not that of the schedule's plan; move it away.")
        done = {
            shard.relative: (shard.size, shard.stamp, digests[shard.relative], place)
            for shard, place in zip(plan.shards, places, strict=True)
        }
        kept["manifest"] = hashlib.sha256(files.read_bytes(files.join(self.output_of(plan), MANIFEST))).hexdigest()
        with contextlib.suppress(BadRecordError):
            if (totals := records.read("totals.json", Totals)) is not None:
                kept |= {"quarantined": totals.quarantined, "dropped": totals.dropped}
        write_pages(self.output_of(plan), records, None, page=self.page)
        left_out = self.left_out()
        still = {path: out for path, out in left_out.shards.items() if path not in stamps}
        if len(still) < len(left_out.shards):
            self.state.write(LEFT_OUT, LeftOut(settings=left_out.settings, shards=still))
        finished = Finished(**kept, shards=done)
        self.state.write(f"runs/{plan.number:05d}.done.json", finished)
        return finished

    def leave_out(self, plan: PlannedRun, sentences: Mapping[int, str]) -> None:
        """Abandon a run, and leave unusable shards, given by number, out of later runs.

        They are tried again when they or the settings change, or when the record is removed. The other shards are in
        the next run, with the same draws as now.
        """
        left_out = self._left_out_now()
        for number, sentence in sentences.items():
            shard = plan.shards[number]
            left_out[shard.relative] = (shard.size, shard.stamp, keyed_digest(shard.url, self.record_key), sentence)
        self.state.write(LEFT_OUT, LeftOut(settings=self.settings, shards=left_out))
        self._give_up(plan, f"{_part(len(sentences), plan)} could not be used")

    def write_index(self) -> None:
        """Write which shards were released, and by what they were replaced, unless the output says so already."""
        index, address = self.summary().index, files.join(self.output, INDEX)
        if index.runs and files.read_if_there(address) != index.data():
            files.write_bytes(address, index.data())

    def left_out(self) -> LeftOut:
        """Return the shards that were left out, perhaps under other settings; without a sound record all are tried."""
        return self._sound(LEFT_OUT, LeftOut) or LeftOut()

    def released_before(self, plan: PlannedRun) -> int:
        """Return the number of documents of the runs that released shards which have changed."""
        changed = {path for path, why in plan.why.items() if why == "changed"}
        runs = map(self._done, self._numbers() if changed else ())
        return sum(done.documents for done in runs if done is not None and changed & done.shards.keys())

    def summary(self) -> StartSummary:
        """Return the summary of all finished runs."""
        return self._summaries(self._numbers())[1]

    def runs(self) -> dict[int, Finished | None]:
        """Return the last runs by number: the done record of a finished run, None for an unfinished one."""
        return {number: self._done(number) for number in self._numbers()[-_SHOWN:]}

    def _summaries(self, numbers: Sequence[int]) -> tuple[StartSummary, StartSummary, list[int]]:
        """Return the summary up to the first unfinished run, that of all finished runs, and the unfinished runs."""
        kept = self._sound(SUMMARY, StartSummary) or StartSummary()
        if kept.through > max(numbers, default=0):  # of runs that are no longer in the state
            kept = StartSummary()
        runs = {number: self._done(number) for number in numbers if number > kept.through}
        unfinished = [number for number, done in runs.items() if done is None]
        first = min(unfinished, default=math.inf)
        finished = kept.after({number: done for number, done in runs.items() if number < first})
        return finished, kept.after(runs), unfinished

    def _due(
        self, shards: Sequence[InputShard], number: int, summary: StartSummary
    ) -> tuple[PlannedRun | None, dict[str, Any], int]:
        """Return the run of new and changed shards, all stamps of unchanged shards, and how many shards are too young.

        A shard that changed after it was left out is due, and is left out until a run has released it.
        """
        known, left_out = dict[str, Any](summary.shards), self._left_out_now()
        why: dict[str, str] = {}
        waiting = 0
        for shard in shards:
            before, out = known.get(shard.relative), left_out.get(shard.relative)
            if self._is(shard, out, read=False) or self._is(shard, before, read=False):
                continue
            # One of a far future was written by a clock that was wrong, and would wait for years.
            if self.settle and shard.modified is not None and abs(time.time() - shard.modified) < self.settle:
                waiting += 1
            elif self._is(shard, out):
                continue
            elif before is None:
                why[shard.relative] = "new"
            elif not self._is(shard, before):
                why[shard.relative] = "changed"
            else:
                known[shard.relative] = (shard.size, shard.stamp, *before[2:])
        plan = PlannedRun(number, tuple(shard for shard in shards if shard.relative in why), why) if why else None
        return plan, known, waiting

    def _is(self, shard: InputShard, before: Sequence[Any] | None, *, read: bool = True) -> bool:
        """Say whether a shard is unchanged: by size and stamp, or if it may be ``read``, by its digest."""
        if before is None:
            return False
        if tuple(before[:2]) == (shard.size, shard.stamp):
            return True
        return read and bool(keyed_digest(shard.url, self.record_key) == before[2])

    def _left_out_now(self) -> dict[str, tuple[int, str, str, str]]:
        """Return the shards that are unusable with these settings: size, stamp, digest and reason, by relative path."""
        left_out = self.left_out()
        return dict(left_out.shards) if left_out.settings == self.settings else {}

    def _refuse_others(self, plan: PlannedRun) -> None:
        """Raise UserError if a new plan meets a release that is not the state's, or replaces shards of other inputs."""
        if files.exists(files.join(self.output, MANIFEST)):
            raise InUseError(
                f"{self.output}: this is a release, and a schedule writes its releases into folders of output.path; "
                "choose another output.path for one of both."
            )
        if self.is_released(plan):
            raise InUseError(
                f"{self.output_of(plan)}: this release is there, and {self.state.url} does not know it; restore the "
                "state as it last was, or begin another schedule with another output.path."
            )
        last = self._sound(f"runs/{self.summary().last:05d}.plan.json", Planned)
        urls = {shard.url for shard in plan.shards}
        for url, path, *_ in () if last is None else last.shards:
            is_other = url in urls or (path in plan.why and files.exists(url))
            if is_other and not lies_at(url, self.root, path):
                raise MismatchError(
                    f"{url}: an earlier run released this shard as {path}, and paths begin at {self.root} now, so that "
                    "shards would be released again or replace each other. Set inputs and corpus.root as before, or "
                    "begin another schedule with another output.path."
                )

    def _give_up(self, plan: PlannedRun, why: str) -> None:
        """Remove the output of a run that cannot be finished; it has no manifest, so no reader used it as a release."""
        files.remove_folder(self.output_of(plan))
        files.remove_folder(self.records_of(plan))
        self.state.write(f"runs/{plan.number:05d}.done.json", Finished(given_up=True, why=why, shards={}))

    def _numbers(self) -> list[int]:
        matches = (_RUN.fullmatch(name) for name in self.state.names("runs"))
        return sorted({int(match[1]) for match in matches if match is not None})

    def _sound(self, name: str, kind: type[R]) -> R | None:
        """Return a record of the state that can be made again; None if it is missing or damaged."""
        try:
            return self.state.read(name, kind)
        except BadRecordError:
            return None

    def _done(self, number: int) -> Finished | None:
        """Return the done record of a run; None if it is missing or damaged."""
        return self._sound(f"runs/{number:05d}.done.json", Finished)

    def _plan(self, number: int) -> PlannedRun:
        name = f"runs/{number:05d}.plan.json"
        plan = self._sound(name, Planned)
        if plan is None and self.is_released(empty := PlannedRun(number, (), {})):
            raise BadRecordError(f"{self.state.address(name)}: this plan of a run is damaged; restore it from a copy.")
        if plan is None:
            return empty
        shards = tuple(InputShard(*shard) for shard in plan.shards)
        for shard in shards:
            if not lies_at(shard.url, self.root, shard.relative):
                raise BadRecordError(
                    f"{self.state.address(name)}: this plan names a shard that is not below {self.root}; set inputs "
                    "and corpus.root as before, or restore the plan from a copy."
                )
        return PlannedRun(number, shards, plan.why)


def find_usable(inputs: Sequence[str], root: str, summary: StartSummary) -> tuple[list[InputShard], list[str]]:
    """Return the shards of the form that was released before, and sentences about files of none or another one."""
    aliens: list[str] = []
    form = formats.form_of(next(iter(summary.shards))) if summary.shards else ""
    return find_shards(inputs, root, form=form, aliens=aliens), aliens


def _part(number: int, plan: PlannedRun) -> str:
    return "its only shard" if len(plan.shards) == 1 else f"{number:,} of its {len(plan.shards):,} shards"

"""The schedule: each start releases the shards of a corpus that no earlier run has, as a release of its own.

A run is a folder of the output, with a manifest when it is finished, and a folder of the records, whose claim names its
shards. ``schedule.json`` in the records repeats what all finished runs have, with sizes and stamps, so that a start
does not read it all; a lost one is made again. A run with a claim and without a manifest is finished by the next start.
All runs have one key and configuration: a document that returns gets the same noise and spends nothing new.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

from prometheus_client import CollectorRegistry, Gauge, write_to_textfile
from pydantic import Field

from corpusveil.display import several
from corpusveil.errors import AddressError, ArtifactError, CorpusveilError, DataError, SettingError, WorkError
from corpusveil.pipelines.privatize import privatize
from corpusveil.pipelines.resolve import key_of, refuse_published, resolve
from corpusveil.pipelines.settings import needed
from corpusveil.pipelines.settings.toml import Document
from corpusveil.pipelines.watch import Watch
from corpusveil.storage import files, formats, lease
from corpusveil.storage.corpus import Claim, CorpusOut
from corpusveil.storage.failures import failing
from corpusveil.storage.inputs import InputShard, find_shards, root_of
from corpusveil.storage.records import Line, Record, Records, Shard
from corpusveil.storage.tasks import keyed_digest
from corpusveil.transforms.release.corpus import Run, changed_since
from corpusveil.transforms.release.manifest import INDEX, MANIFEST, Index, read_manifest

STATE, STARTS = "schedule.json", "starts.jsonl"
_RUN = re.compile(r"run-[0-9]{5,9}")


class State(Record):
    """``schedule.json``: the finished runs, and the shards that the last start could not use, with reasons.

    ``shards`` has size, stamp, keyed digest and ``RUN/SHARD`` of each shard at its last release, by its path below
    ``root``; ``bytes`` has the size of each ``RUN/SHARD``; ``release`` is the name of the release in a ledger.
    """

    root: str = ""
    release: Line = ""
    shards: dict[str, tuple[int, str, str, Line]] = Field(default_factory=dict)
    bytes: dict[str, int] = Field(default_factory=dict)
    left_out: dict[str, str] = Field(default_factory=dict)
    index: Index = Field(default_factory=Index)


@dataclass(slots=True)
class Look:
    """The shards of the input by path, those to release, how many are too young, and why others are left out."""

    there: dict[str, InputShard]
    left_out: list[str]
    due: list[InputShard] = field(default_factory=list)
    young: int = 0


@dataclass(slots=True)
class Schedule:
    """The runs of a configuration file; the paths in documents' identities begin at the folder ``root``."""

    document: Document
    root: str
    output: str
    records: Records
    record_key: bytes = field(repr=False)
    state: State

    @classmethod
    def from_document(cls, document: Document) -> Schedule:
        """Return the schedule of a file, as its records have it. Raises UserError if its key is not fit."""
        settings = document.settings
        corpus, output = needed(settings.corpus, "corpus"), needed(settings.output, "output")
        root, records = corpus.root or root_of(corpus.input), CorpusOut(output.path, output.records).private
        schedule = cls(document, root, output.path, records, key_of(settings.key).derive("records"), State())
        with contextlib.suppress(ArtifactError):  # then it is made again
            schedule.state = records.read(STATE, State) or State()
        for name in schedule.unknown():
            if _sha256(files.join(output.path, name)):
                schedule.enter(name)
            elif not files.exists(records.address(name, "run.json")):
                schedule._made(name)  # which refuses what another program wrote there
        return schedule

    def look(self) -> Look:
        """Return what the input has. Raises UserError without a shard, as of a folder that is not mounted."""
        known, look, settings = dict(self.state.shards), Look({}, []), self.document.settings
        form = formats.suffix_of_file(next(iter(known))) if known else ""
        inputs = needed(settings.corpus, "corpus").input
        shards = find_shards(inputs, self.root, form=form, aliens=look.left_out)
        look.there = {shard.relative: shard for shard in shards}
        for path, shard in look.there.items():
            before, age = known.get(path), abs(time.time() - (shard.modified or 0.0))
            if before is not None and before[:2] == (shard.size, shard.stamp):
                continue
            if age < settings.schedule.settle_seconds():  # one of a far future was written by a clock that was wrong
                look.young += 1
            elif before is not None and keyed_digest(shard.url, self.record_key) == before[2]:
                known[path] = (shard.size, shard.stamp, *before[2:])
            elif before is not None and settings.schedule.changed == "refuse":
                look.left_out.append(f"{shard.url}: this shard has changed since {before[3].partition('/')[0]}.")
            else:
                look.due.append(shard)
        self.state = self.state.model_copy(update={"shards": known})
        return look

    def next_run(self, look: Look, without: Collection[str] = ()) -> tuple[str, tuple[InputShard, ...]]:
        """Return name and shards of an unfinished run, or of one of what is due, ``without`` some shards; or none."""
        unfinished = self.unknown()
        for name in unfinished:
            if shards := self.shards_of(name, look):
                return name, shards
        shards = tuple(shard for shard in look.due if shard.relative not in without)
        last = max((int(name[4:]) for name in (*unfinished, *self.state.index.runs)), default=0)
        return f"run-{last + 1:05d}", shards

    def give_up(self, names: Collection[str]) -> None:
        """Remove runs without a manifest; no reader used one as a release."""
        for name in names:
            files.remove_folder(files.join(self.output, name))
            files.remove_folder(self.records.address(name))

    def do(self, name: str, shards: Sequence[InputShard], watch: Watch) -> None:
        """Release the shards of a run."""
        settings = self.document.settings.changed(
            corpus={"input": [shard.url for shard in shards], "root": self.root},
            output={"path": files.join(self.output, name), "records": self.records.address(name)},
        )
        plan = resolve(settings)
        self._refuse_other(plan.run)
        run = plan.run.as_claimed() if name in self.state.index.runs else plan.run  # as a repair
        privatize(replace(plan, run=run), watch, announced=not self.state.release)

    def enter(self, name: str, shards: Sequence[InputShard] = ()) -> None:
        """Enter a finished run, from its records; ``shards`` are its input as it was listed before, if known."""
        folder, before = files.join(self.output, name), self.state
        manifest, stamps = read_manifest(folder), {shard.relative: (shard.size, shard.stamp) for shard in shards}
        made, sizes, replaced = dict(before.shards), dict(before.bytes), dict[str, str]()
        for record, shard in zip(self._made(name), manifest["shards"], strict=True):
            path, place = record.input.path, f"{name}/{shard['name']}"
            replaced[place] = before.shards[path][3] if path in before.shards else ""
            made[path] = (*stamps.get(path, (-1, "")), record.input.digest, place)
            sizes[place] = record.output.bytes or 0
        self.state = State(
            root=before.root, release=f"{manifest['release'][:16]}-{manifest['key_fingerprint'][:16]}", shards=made,
            bytes=sizes, left_out=before.left_out, index=before.index.after(name, _sha256(folder), replaced),
        )  # fmt: skip

    def save(self) -> None:
        """Write the state, and the public index of all runs unless it says so already."""
        self.state = self.state.model_copy(update={"root": self.root})
        self.records.write(STATE, self.state)
        index, address = self.state.index, files.join(self.output, INDEX)
        if index.runs and files.read_if_there(address) != index.data():
            files.write_bytes(address, index.data())

    def damage(self) -> dict[str, str]:
        """Return the runs of files that are not as they were written: by name and size, manifests by digest."""
        runs = self.state.index.runs
        folders = {name: files.join(self.output, name) for name in runs}
        there = {name: files.sizes(files.join(folder, "data")) for name, folder in folders.items()}
        damaged = {files.join(folders[run], MANIFEST): run for run, was in runs.items() if _sha256(folders[run]) != was}
        for place, size in self.state.bytes.items():
            name, _, file = place.partition("/data/")
            damaged |= {} if there[name].get(file) == size else {files.join(self.output, place): name}
        return damaged

    def repair(self, watch: Watch) -> None:
        """Write damaged runs again, with the same bytes; one whose input is not as it was stays as it is."""
        look = self.look()
        for name in dict.fromkeys(self.damage().values()):
            folder = files.join(self.output, name)
            if not (shards := self.as_then(name, look, read=True)):
                continue
            files.remove(files.join(folder, MANIFEST))  # without which the run is unfinished
            self.do(name, shards, watch)
            if _sha256(folder) != self.state.index.runs[name]:
                raise SettingError(f"{folder}: this is not the release of before; set caps and names as they were.")
            watch.say(f"{name} was written again, with the same bytes")

    def unknown(self) -> list[str]:
        """Return the names of the runs that have an output or a claim and are not in the state, in order."""
        claims = filter(_RUN.fullmatch, files.listing(self.records.url, folders=True))
        names = {name for name in claims if files.exists(self.records.address(name, "run.json"))}
        names.update(filter(_RUN.fullmatch, files.listing(self.output, folders=True)))
        return sorted(names.difference(self.state.index.runs), key=lambda name: int(name[4:]))

    def _claimed(self, name: str) -> list[str]:
        """Return the paths of a run's shards; none without a sound claim."""
        with contextlib.suppress(ArtifactError):
            claim = self.records.read(f"{name}/run.json", Claim)
            return [] if claim is None else list(claim.claimed["inputs"])
        return []

    def shards_of(self, name: str, look: Look) -> tuple[InputShard, ...]:
        """Return the shards of a run; none if one of them is gone, or if the run has no sound claim."""
        paths = self._claimed(name)
        return tuple(look.there[path] for path in paths) if look.there.keys() >= set(paths) else ()

    def as_then(self, name: str, look: Look, *, read: bool = False) -> tuple[InputShard, ...]:
        """Return the shards of a finished run if they are as they were; else none. All are ``read``, or the changed."""
        shards, known, now = self.shards_of(name, look), self.state.shards, list[str]()
        for shard in shards:
            size, stamp, digest, _ = known[shard.relative]
            same = not read and (size, stamp) == (shard.size, shard.stamp)
            now.append(digest if same else keyed_digest(shard.url, self.record_key))
        with contextlib.suppress(CorpusveilError):  # its records are gone or damaged
            return shards if now == [record.input.digest for record in self._made(name)] else ()
        return ()

    def _made(self, name: str) -> list[Shard]:
        """Return the records of a finished run's shards. Raises UserError without them."""
        paths = self._claimed(name)
        names = [f"{name}/shards/part-{number:05d}-of-{len(paths):05d}.json" for number in range(len(paths))]
        records = [record for each in names if (record := self.records.read(each, Shard)) is not None]
        if not paths or [record.input.path for record in records] != paths:
            raise AddressError(
                f"{files.join(self.output, name)}: this is there, and {self.records.url} does not know it; move it, "
                "restore the records, or begin another schedule with another output.path."
            )
        return records

    def _refuse_other(self, run: Run) -> None:
        """Raise UserError if earlier runs made another release, had a ledger, or began their paths elsewhere."""
        again = "or choose another output.path to begin another schedule, which releases all shards again"
        if files.exists(files.join(self.output, MANIFEST)):
            raise AddressError(f"{self.output}: this is a release, and a schedule writes into folders; choose another.")
        if self.state.root not in ("", self.root) and files.exists(self.state.root):
            raise SettingError(
                f"{self.document.file}: paths began at {self.state.root} before, and begin at {self.root} now. Set "
                f"corpus.input and corpus.root as before, {again}."
            )
        changed = []
        with contextlib.suppress(CorpusveilError, IndexError):  # no run was finished, or its records were moved
            then = self.records.read(f"{list(self.state.index.runs)[-1]}/run.json", Claim)
            changed = [] if then is None else changed_since(then, run)
        if not changed and self.state.release in ("", run.release.name):
            return
        differs = "; ".join(changed) or "space, key, version or configuration are not those of the earlier runs"
        raise SettingError(f"{self.document.file}: {differs}. Set this as before, {again}.")


def _sha256(release: str) -> str:
    """Return the SHA-256 of a release's manifest, empty without one."""
    manifest = files.read_if_there(files.join(release, MANIFEST))
    return "" if manifest is None else hashlib.sha256(manifest).hexdigest()


@dataclass(slots=True)
class Start:
    """What one start did, the ``code`` of its error, the time of the last ``success``, and what remains, if known."""

    time: float
    success: float
    status: int | None = None
    code: str = ""
    seconds: float = 0.0
    run: str = ""
    shards: int = 0
    documents: int = 0
    left_out: int | None = None
    damaged: int | None = None
    due: int | None = None

    def publish(self, document: Document) -> None:
        """Write the numbers for Prometheus' textfile collector, which is another user."""
        registry, file = CollectorRegistry(), os.path.abspath(document.file).encode(errors="replace").decode()
        for name, value in asdict(self).items():
            if isinstance(value, int | float):
                text = f"{name} of the last start of 'corpusveil schedule'"
                Gauge(f"corpusveil_schedule_{name}", text, ["schedule"], registry=registry).labels(file).set(value)
        if (path := document.settings.schedule.metrics) is not None:
            with failing(path, "written"):
                write_to_textfile(path, registry)
                os.chmod(path, 0o644)


def check(document: Document) -> None:
    """Raise UserError for settings that a schedule lacks, and for private files in a public place."""
    settings = document.settings
    if settings.output is None:
        raise SettingError(f"{document.file}, [output]: a schedule makes releases; add this section and all they need.")
    if settings.key.path is None and settings.key.environment is None:
        raise SettingError(
            f"{document.file}, [key]: a schedule needs one key for all its releases; make one with 'corpusveil key new "
            "PATH', and set key.path."
        )
    refuse_published(settings)


def start(document: Document, watch: Watch, *, repair: bool = False) -> int:
    """Do all due runs, after a ``repair``; return the exit status. A second start at the same time does nothing."""
    check(document)
    output = needed(document.settings.output, "output")
    records = CorpusOut(output.path, output.records).private
    records.close()
    held = lease.take(records.url)
    if isinstance(held, str):
        watch.warn(f"{document.file}: another run is in progress ({held}); nothing was done.")
        return 0
    with held:
        starts = files.read_if_there(records.address(STARTS)) or b""
        successes = [float(time) for time in re.findall(rb'"success": ([0-9.]+)', starts)]
        this, began = Start(time.time(), max(successes, default=0.0)), time.monotonic()
        try:
            this.publish(document)  # a start that is killed leaves its time, and that of the last success before it
            schedule = Schedule.from_document(document)
            if repair:
                schedule.repair(watch)
            this.status = _work(schedule, watch, this)
        except BaseException as error:
            known = error if isinstance(error, CorpusveilError) else WorkError()
            this.status, this.code = known.exit_status, known.code
            raise
        finally:
            this.seconds = round(time.monotonic() - began, 3)
            this.success = this.success if this.status else this.time
            line = json.dumps(asdict(this)).encode() + b"\n"
            files.write_bytes(records.address(STARTS), starts + line, private=True)
            this.publish(document)
        return this.status


def _work(schedule: Schedule, watch: Watch, this: Start) -> int:
    """Do all due runs, one by one, and return the exit status; an error leaves its run to the next start.

    Shards that the last start could not use are tried again, in a run after those of the others.
    """
    again, out = schedule.state.left_out, dict[str, str]()
    while True:
        look = schedule.look()
        schedule.give_up([name for name in schedule.unknown() if not schedule.shards_of(name, look)])
        name, shards = schedule.next_run(look, {*again, *out})
        if not shards:
            name, shards = schedule.next_run(look, out)
        if not shards:
            break
        this.run, this.due = name, len(shards)
        watch.warn(f"{name}: {several(len(shards), 'shard')}")
        try:
            schedule.do(name, shards, watch)
        except DataError as error:
            if not error.sentences:
                raise
            out |= {shards[number].relative: sentence for number, sentence in error.sentences.items()}
            schedule.give_up([name])
        else:
            schedule.enter(name, shards)
            this.shards += len(shards)
            this.documents += read_manifest(files.join(schedule.output, name))["documents"]
            schedule.save()
    schedule.state = schedule.state.model_copy(update={"left_out": out})
    schedule.save()
    damage = schedule.damage()
    for line in _told(schedule, look, damage):
        watch.warn(line)
    if not this.run:
        watch.say("there is nothing new")
    this.left_out, this.damaged, this.due = len(look.left_out) + len(out), len(damage), 0
    fails = damage or (this.left_out and schedule.document.settings.schedule.left_out == "fail")
    return DataError.exit_status if fails else 0


def _told(schedule: Schedule, look: Look, damage: Mapping[str, str]) -> Iterator[str]:
    """Yield what a start leaves as it is."""
    for sentence in (*look.left_out, *schedule.state.left_out.values()):
        yield f"left out: {sentence}"
    repair = f"'corpusveil schedule {schedule.document.file} --repair' writes it again"
    restore = "input or records of this run have changed or are gone; restore them, or the release from a copy"
    advice = {name: repair if schedule.as_then(name, look) else restore for name in set(damage.values())}
    yield from (f"damaged: {url}; {advice[name]}" for url, name in damage.items())
    if look.young:
        yield f"{several(look.young, 'shard was', 'shards were')} written too recently, and left for a later start"


def status(document: Document) -> Iterator[str]:
    """Yield what is finished and due, in words; nothing is written. Raises UserError if the input is not there."""
    check(document)
    schedule = Schedule.from_document(document)
    runs, shards = schedule.state.index.runs, schedule.state.index.shards
    yield f"{several(len(runs), 'run')}, {several(len(shards), 'shard')}"
    if (busy := lease.holder(schedule.records.url)) is not None:
        yield f"in progress: {busy}"
    starts = files.read_if_there(schedule.records.address(STARTS)) or b""
    for when, code in re.findall(rb'"time": ([0-9]+).*"code": "([a-z-]+)".*\n\Z', starts):
        yield f"the last start, {time.strftime('%F %R UTC', time.gmtime(int(when)))}, failed with {code.decode()}"
    look = schedule.look()
    yield from _told(schedule, look, schedule.damage())
    name, due = schedule.next_run(look, schedule.state.left_out)
    yield f"{name} is due: {several(len(due), 'shard')}" if due else "nothing is due"

"""A corpus through a release: plan shard tasks, let an engine map over them, commit, write the manifest last."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from corpusveil.display import Card, Shown, several
from corpusveil.errors import AddressError, CapError, UserError, VersionError, file_in_the_way
from corpusveil.ledger.account import AccountPass
from corpusveil.ledger.caps import Spending, reserve
from corpusveil.storage import files, formats
from corpusveil.storage.corpus import Claim, CorpusIn, CorpusOut, words_of
from corpusveil.storage.durable import claimed, forget_failed, once, run_tasks
from corpusveil.storage.durable import run as run_work
from corpusveil.storage.engine import Engine, Here
from corpusveil.storage.inputs import InputShard, find_shards, folder_of, refuse_nested, refuse_overlap
from corpusveil.storage.lease import Lease
from corpusveil.storage.reading import BadRows, checked_columns, first_rows, first_types, names_of
from corpusveil.storage.records import RUN_VERSION, Records, Shard
from corpusveil.storage.rows import Batch, Columns
from corpusveil.storage.tasks import ShardTask, joining_tasks, largest_first, plan, whole_shards
from corpusveil.text.counts import Counts
from corpusveil.transforms.handshake import versions
from corpusveil.transforms.release.job import Progress, ShardJob
from corpusveil.transforms.release.keyed_release import AnyRelease
from corpusveil.transforms.release.left_out import OVER, decided, refusal, without
from corpusveil.transforms.release.manifest import INDEX, draft, read_manifest, write_manifest
from corpusveil.transforms.release.pages import page_of, write_page
from corpusveil.transforms.release.release import differences
from corpusveil.waiting import waiting

SPENDING = "spending"
_FOLDERS = (OVER, SPENDING, "shards", "progress", "failed", "pieces")
"""The folders of a run's records."""
_CHECKED_HERE, _LIKE_A_SHARD = 1 << 30, 1 << 20
"""The bytes that a driver reads itself to check a finished release, and what opening a shard is worth."""


@dataclass(frozen=True, slots=True, repr=False)
class Outcome(Shown):
    """The result of ``privatize_corpus``: sizes, the digest of the content, and where output and records are.

    >>> outcome = cv.privatize_corpus("reviews.csv", "private", release, id="id", keep=["stars"])
    >>> outcome.finished_before
    True
    """

    counts: Counts
    shards: int
    content_sha256: str
    seconds: float
    output: str = ""
    records: str = ""
    counted: str = "token"
    not_copied: tuple[str, ...] = ()
    """The columns of the first shard that the release does not have."""
    not_read: tuple[str, ...] = ()
    """The hidden files and folders of the input."""
    finished_before: bool = False
    """Whether an earlier run finished the release, so that nothing was left to do."""

    def card(self) -> Card:
        """Return the release's public figures, and the place of its private records; no count of the input is shown."""
        sizes = self.counts.public()
        sized = ((self.shards, "shard"), (sizes["documents"], "document"), (sizes["tokens"], self.counted))
        bad = "some rows could not be read; see the records" if self.counts.bad_rows else "none"
        return Card(
            f"Release in {self.output}",
            [
                ("size", ", ".join(several(number, what) for number, what in sized)),
                ("content", f"sha256 {self.content_sha256}"),
                ("left out", bad),
                ("records", f"{self.records} (do not publish)"),
            ],
        )


@dataclass(frozen=True, slots=True)
class Run:
    """A release over a corpus: what is read and where it goes. An engine does it, and may be another one each time.

    ``spending`` names a ledger: the spending of documents is written there before anything is drawn, and the run ends
    if a cap would be exceeded. ``begun`` is called, with the first batch of rows, after arguments, folders, caps and
    these rows are checked, and before anything is drawn.
    """

    release: AnyRelease
    reads: CorpusIn
    writes: CorpusOut
    _: dataclasses.KW_ONLY
    debug: bool = False
    spending: Spending | None = None
    begun: Callable[[Sequence[Batch]], Any] = lambda _: None

    def source(self, hidden: set[str] | None = None) -> tuple[Sequence[InputShard], CorpusIn]:
        """Return the shards, and how they are read, with the names of all columns and that of the corpus.

        What of the input is ``hidden`` is added there. Raises UserError if the input or the columns are wrong.
        """
        shards = find_shards(self.reads.inputs, self.reads.root, hidden=hidden)
        columns = checked_columns(self.reads.columns, shards, formats.suffix_of(self.writes.format))
        if self.reads.on_bad_rows == "drop":
            columns = dataclasses.replace(columns, units=() if self.spending is None else self.spending.columns)
        name = self.reads.name or folder_of(shards)
        return shards, dataclasses.replace(self.reads, columns=columns, name=name)

    def job(self, shards: Sequence[InputShard], reads: CorpusIn, writes: CorpusOut) -> ShardJob:
        """Return the work of each task."""
        release, columns = self.release, reads.columns
        is_table = (formats.suffix_of(writes.format) or formats.suffix_of_file(shards[0].url)) == ".parquet"
        return ShardJob(
            release.kernel(), reads, writes, release.digest, release.key.fingerprint(), release.key.derive("records"),
            self.debug, kept_types=first_types(shards, columns) if is_table and columns.keep else (),
        )  # fmt: skip

    def as_claimed(self) -> Run:
        """Return the run as its claim counts it and leaves rows out; settings may have changed since."""
        claim = self.writes.private.read("run.json", Claim)
        then = {} if claim is None else claim.claimed
        spending = self.spending if then.get("ledger") else None
        if spending is not None:
            spending = dataclasses.replace(spending, over_cap=then.get("over_cap", spending.over_cap))
        reads = dataclasses.replace(self.reads, on_bad_rows=then.get("on_bad_rows", self.reads.on_bad_rows))
        return dataclasses.replace(self, reads=reads, spending=spending)

    def privatize(self, engine: Engine) -> Outcome:
        """Privatize every shard into ``data`` of the output, and write ``manifest.json`` there last.

        A repeated call resumes after an interruption. Only one run at a time works on the same records: it holds a
        lease among them until it ends. Raises UserError if the input or arguments are wrong, or if the output folder
        belongs to another release; WorkError if the engine fails, or if another run is in progress.
        """
        began = time.monotonic()
        writes = dataclasses.replace(self.writes, url=files.absolute(self.writes.url))
        hidden = set[str]()
        shards, reads = self.source(hidden)
        columns = reads.columns
        self._check(shards, columns, writes.url, writes.private)
        form, rows = formats.suffix_of(writes.format), writes.rows_per_task
        tasks = plan(shards, form, rows, lambda: engine.slots())  # noqa: PLW0108 - only asked when it matters
        first: list[Batch] = []
        if not files.exists(files.join(writes.url, "manifest.json")):
            first = first_rows(tasks[0], columns, BadRows() if self.reads.on_bad_rows == "drop" else None)
        for batch in first[:1]:
            self.release.refuse(batch.texts)
        start = _Start(self, engine, self.job(shards, reads, writes), tasks, first[:1], began)
        outcome = once(start.job.records.url, start.claim, start.do, start.tidy)
        names = names_of(shards[0], columns.separator)
        return dataclasses.replace(outcome, not_copied=tuple(columns.beside(names)), not_read=tuple(sorted(hidden)))

    def _check(self, shards: Sequence[InputShard], columns: Columns, output: str, records: Records) -> None:
        """Raise UserError if the places of the run are taken or contain each other, or a form lacks what is asked."""
        form = formats.form_of(shards[0].url)
        refuse_overlap(self.reads.inputs, shards, output, records.url)
        if self.spending is not None:
            refuse_nested(self.spending.ledger, "the ledger", output)
            form.check(self.spending.reading(columns))
        for url in (output, records.url):
            files.refuse_hub(url)
            if (there := files.info(url)) is not None and there["type"] != "directory":
                raise file_in_the_way(url)
        files.refuse_links(files.join(output, "data"), records.url, *map(records.address, _FOLDERS))
        if files.exists(page_of(output)) and records.read("run.json", Claim) is None:
            raise AddressError(
                f"{page_of(output)}: this file is where the page of this release would be, and is not of this run; "
                "remove the file, or choose another output."
            )


WORDS = {
    "release": "another configuration (mechanism, budget, text policy, space or version)",
    "key": "another key",
    **words_of(CorpusIn, CorpusOut, Spending),
}
"""What is the same for all starts of a run, and the words for another run, by the name in a claim."""


@dataclass(slots=True)
class _Start:
    """One start of a run; ``job`` is completed on the way."""

    run: Run
    engine: Engine
    job: ShardJob
    tasks: Sequence[ShardTask]
    first: Sequence[Batch]
    began: float
    fresh: bool = False
    """Whether this start, and no earlier one, claimed the folders."""

    def claim(self) -> Outcome | None:
        """Claim the folders, or check that they belong to this run, and return its outcome if it is finished."""
        run, job, whole = self.run, self.job, whole_shards(self.tasks)
        reads = dataclasses.replace(job.reads, inputs=[task.relative for task in whole])
        writes = dataclasses.replace(job.writes, format=whole[0].suffix)
        mine = Claim.of_run(run.release, reads, writes, *_settled(run.spending), by=versions()["corpusveil"])
        # The output is looked at before the claim is read: the other way round, a run that claims in between looks
        # foreign.
        finished = files.exists(files.join(job.writes.url, "manifest.json"))
        is_schedule = files.exists(files.join(job.writes.url, INDEX))
        written = finished or is_schedule or files.listing(files.join(job.writes.url, "data"))
        foreign = (
            f"{job.writes.url}: this folder has output that does not belong to these records; choose another output."
        )
        theirs = claimed(job.records, "run.json", mine, foreign if written else None)
        self.fresh = theirs is mine
        if not written and not job.records.names("shards") and job.records.names("failed"):
            theirs = mine  # nothing but a first attempt that failed
            job.records.write("run.json", mine)
        _refuse_other(job.records, theirs, mine)
        if theirs.claimed != mine.claimed and not finished:
            job.records.write("run.json", mine)
        forget_failed(job.records)
        if not finished:
            return None
        run.begun(self.first)
        _sweep(job)
        return self._already()

    def do(self, held: Lease) -> Outcome:
        self._prepare(held)
        run, job, tasks = self.run, self.job, self.tasks
        run.begun(self.first)
        drafted, left = draft(run.release, job.reads, run.spending), largest_first(tasks)
        progress = Progress(job.records, left, run.release.counted)
        run_tasks(job, left, self.engine, waiting("privatizing shards", progress.look))
        if split := joining_tasks(tasks):
            run_tasks(job, split, self.engine, waiting("joining pieces of shards"))
        # also left by a run that was split in another way, or by a worker that was killed at the end
        for part in ("pieces", "progress"):
            for name in files.listing(job.records.address(part)):
                files.remove(job.records.address(part, name))
        _sweep(job)
        return self._result(*write_manifest(drafted, job.writes.url, job.records, whole_shards(tasks)))

    def tidy(self, _: Outcome) -> None:
        """Remove what a finished release does not need, and write its page."""
        files.remove_folder(self.job.records.address(OVER))
        write_page(self.job.writes.url)

    def _prepare(self, held: Lease) -> None:
        """If requested, enter the spending in the ledger.

        On an error or a refusal, a fresh run removes its own records, and nothing else in their folder.
        """
        run, job, tasks, spending = self.run, self.job, self.tasks, self.run.spending
        columns, skip_bad = job.reads.columns, job.reads.on_bad_rows == "drop"
        try:
            if spending is not None and spending.over_cap == "drop" and (drops := decided(job.records)) is not None:
                job = dataclasses.replace(job, drops=drops)
            entries = None
            while spending is not None and entries is None:
                accounting = AccountPass(
                    spending.reading(columns), Records(job.records.address(SPENDING)), job.record_key, skip_bad,
                    account=spending.accounting(run.release.account(columns.text)),
                    corpus=job.corpus, drops=job.drops,
                )  # fmt: skip
                seen = run_work(accounting, tasks, self.engine)
                inputs = {task.record_name: record.input for task, record in zip(tasks, seen, strict=True)}
                try:
                    entries = reserve(spending, accounting.account, map(accounting.noted, tasks))
                except CapError as error:
                    refused = refusal(error, accounting, tasks, job.records)
                    if spending.over_cap == "refuse":
                        raise refused from None
                    job = dataclasses.replace(job, drops=without(error, accounting, tasks, job.records, job.drops))
                    continue
                job = dataclasses.replace(job, seen=inputs, entries=entries)
        except UserError:
            if self.fresh and held.is_last():
                for part in ("failed", OVER, SPENDING):
                    files.remove_folder(job.records.address(part))
                job.records.remove("run.json")
            raise
        if held.is_last():  # after an interruption, the next start goes on with what was accounted
            files.remove_folder(job.records.address(SPENDING))
        self.job = job

    def _already(self) -> Outcome:
        """Check a finished release against its input and output. Raises UserError if either has changed."""
        job, counts, tasks = self.job, Counts(), whole_shards(self.tasks)
        is_small = sum(task.size + _LIKE_A_SHARD for task in tasks) < _CHECKED_HERE
        engine = Here() if is_small else self.engine
        run_tasks(dataclasses.replace(job, is_finished=True), tasks, engine, waiting("checking finished files"))
        for task in tasks:
            if (record := job.records.read(f"shards/{task.record_name}", Shard)) is not None:
                counts += Counts.from_record(record.counts, job.records.url)
        content = read_manifest(job.writes.url)["content_sha256"]
        return dataclasses.replace(self._result(counts, content), finished_before=True)

    def _result(self, counts: Counts, content: str) -> Outcome:
        shards, seconds = len(whole_shards(self.tasks)), time.monotonic() - self.began
        return Outcome(
            counts, shards, content, seconds, output=self.job.writes.url, records=self.job.records.url,
            counted=self.run.release.counted,
        )  # fmt: skip


def _sweep(job: ShardJob) -> None:
    """Remove what killed runs left unfinished in the release and in the records."""
    folder, _, page = page_of(job.writes.url).rpartition("/")
    files.sweep(folder, page)
    for url in (job.writes.url, job.records.url):
        files.sweep(url, below=True)


def changed_since(then: Claim, run: Run) -> list[str]:
    """Say in words what decides a run and is not as an earlier run of its schedule had it; a ledger may be added."""
    now = Claim.of_run(run.release, run.reads, run.writes, *_settled(run.spending), by="")
    before, after = (
        {"the fingerprint of the key": claim.claimed["key"], "the address of the ledger": claim.claimed.get("ledger")}
        | {f"corpus.{name}": value for name, value in claim.claimed["columns"].items()}
        | claim.configuration
        for claim in (then, now)
    )
    ledger = now.claimed.get("ledger")
    if "ledger" not in then.claimed:
        before["the address of the ledger"] = ledger
    elif ledger is not None and ledger == then.claimed["ledger"] and not files.listing(ledger):
        return [f"the ledger {ledger} of earlier runs is not there; mount or restore it"]
    return differences(before, after)


def _settled(spending: Spending | None) -> list[Spending]:
    return [] if spending is None else [dataclasses.replace(spending, ledger=files.absolute(spending.ledger))]


def _refuse_other(records: Records, theirs: Claim, mine: Claim) -> None:
    """Raise UserError if a claim is that of another run. Where nothing was to be left out, it may be from now on."""
    if theirs.version != RUN_VERSION:
        raise VersionError(
            f"{records.url}: these records were written by another version of corpusveil; finish the run with that "
            "version, or choose another output."
        )
    then, now = theirs.claimed, mine.claimed
    free = [name for name in ("on_bad_rows", "over_cap") if then.get(name) == "refuse"]
    if name := next((name for name in WORDS if name not in free and then.get(name) != now.get(name)), None):
        changed = differences(theirs.configuration, mine.configuration) if name == "release" else []
        for cause in ("mechanism.name ", "budget.epsilon "):  # from which others follow
            changed = [line for line in changed if line.startswith(cause)] or changed
        words = f"another configuration ({'; '.join(changed)})" if changed else WORDS[name]
        raise AddressError(
            f"{records.url}: these are records of a run with {words}; give what that run had, or choose another "
            "output, which spends again."
        )

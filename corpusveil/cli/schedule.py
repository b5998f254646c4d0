"""``corpusveil schedule``: privatize what is new since the last run, and what starts that regularly."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import corpusveil
from corpusveil.cli.options import ProgressOption
from corpusveil.errors import UserError
from corpusveil.jobs.definitions import KINDS, MARK, Call, parse_times
from corpusveil.pipelines.runners import goes_on_alone

if TYPE_CHECKING:
    from corpusveil.cli.configuration import Configuration
    from corpusveil.jobs.schedule import Plan, Schedule


def schedule(
    file: Annotated[str, typer.Argument(help="The configuration of the release.", metavar="FILE.toml")],
    status: Annotated[bool, typer.Option("--status", help="Say what was done and what is due; do nothing.")] = False,
    write: Annotated[
        str | None, typer.Option(help=f"Write what starts it, for {', '.join(KINDS)}.", metavar="KIND")
    ] = None,
    to: Annotated[str, typer.Option(help="The folder that --write writes to.", metavar="FOLDER")] = ".",
    at: Annotated[
        str | None, typer.Option(help="When, as cron has it, in UTC; default schedule.at, 0 3 * * *.")
    ] = None,
    image: Annotated[str | None, typer.Option(help="For --write kubernetes: the container image.")] = None,
    progress: ProgressOption = "auto",
) -> None:
    """Privatize the shards that are new or changed since the last run, each time as a release of its own.

    Started twice at once, one does it and the other says so. A start that was missed, or killed, is made up for by the
    next.

    Example: corpusveil schedule release.toml

    Example: corpusveil schedule release.toml --write systemd --at '0 3 * * *' --to /etc/systemd/system
    """
    from corpusveil.cli.configuration import read_configuration
    from corpusveil.storage import files, lease
    from corpusveil.storage.records import Records

    configuration = read_configuration(file)
    _check(configuration)
    if write is not None:
        _write(configuration, write, to, at or configuration.values.get("schedule", {}).get("at", "0 3 * * *"), image)
        return
    if image is not None or at is not None:
        raise UserError("--at and --image are for --write; add it or leave them out.")
    found = _schedule(configuration)
    if status:
        _tell(found)
        return
    for private in (found.state, Records(files.absolute(found.records))):
        private.close()
    held = lease.take(found.state.address("lease"))
    if isinstance(held, str):
        print(f"{file}: another run is in progress ({held}); nothing was done.", file=sys.stderr)
        return
    with held:
        outcome = _start(configuration, found, progress)
    if outcome:
        raise typer.Exit(outcome)


def _check(configuration: Configuration) -> None:
    if "output" not in configuration.values:
        raise configuration.fault("[output]", "a schedule makes releases; add it and the sections that it needs")
    if not configuration.values.get("key"):
        raise configuration.fault(
            "[key]",
            "a schedule needs one key for all its releases, or what comes again is noised and spent again; "
            "make one with 'corpusveil key new PATH' and name it with key.path",
        )
    if goes_on_alone(configuration.values.get("engine", {}).get("options", [])):
        raise configuration.fault(
            "engine.options", "a schedule waits for its runs; leave out --no_wait_until_finish and --template_location"
        )


def _schedule(configuration: Configuration) -> Schedule:
    from corpusveil.jobs.schedule import Schedule
    from corpusveil.sampling.keys import Key
    from corpusveil.storage import files
    from corpusveil.storage.inputs import root_of
    from corpusveil.storage.records import Records

    values, key = configuration.values, configuration.values["key"]
    secret = Key.load(key["path"]) if "path" in key else Key.from_environment(key["environment"])
    given, output = values.get("schedule", {}), values["output"]["path"]
    records = values["output"].get("records", output.rstrip("/") + ".records")
    inputs = values["corpus"]["input"]
    return Schedule(
        tuple(inputs),
        values["corpus"].get("root", root_of(inputs)),
        output,
        records,
        Records(files.absolute(given.get("state", output.rstrip("/") + ".schedule"))),
        secret.derive("records"),
        given.get("compare", "stamp"),
        _digest({name: section for name, section in values.items() if name not in ("engine", "schedule")}),
    )


def _digest(settings: dict[str, Any]) -> str:
    told = [corpusveil.__version__, settings]
    return hashlib.sha256(json.dumps(told, sort_keys=True, default=str).encode()).hexdigest()


def _start(configuration: Configuration, found: Schedule, progress: str) -> int:
    from corpusveil.cli.main import perform
    from corpusveil.cli.steps import behind, engine_arguments
    from corpusveil.jobs.schedule import go_on, prometheus
    from corpusveil.storage import files

    def privatize(plan: Plan) -> int:
        pinned = found.release()
        only = [] if pinned is None else ["--only-release", pinned]
        command = ["privatize", *_arguments(configuration, found, plan), *only, "--progress", progress]
        return perform([*command, *engine_arguments(configuration), *behind(configuration)]) or 0

    def tell(line: str) -> None:
        print(line, file=sys.stderr)

    try:
        status, did = go_on(found, privatize, tell)
        if not did:
            print(f"{configuration.file}: nothing is new")
    finally:
        where = configuration.values.get("schedule", {}).get("prometheus")
        if where is not None:
            files.write_bytes(where, prometheus(found.state).encode())
    return status


def _arguments(configuration: Configuration, found: Schedule, plan: Plan) -> list[str]:
    from corpusveil.cli.steps import privatize_arguments

    values = {name: dict(section) for name, section in configuration.values.items()}
    values["corpus"]["input"] = [shard.url for shard in plan.shards]
    values["corpus"]["root"] = found.root
    values["output"] |= {"path": found.output_of(plan), "records": found.records_of(plan)}
    return privatize_arguments(dataclasses.replace(configuration, values=values))


def _tell(found: Schedule) -> None:
    for number, done in found.runs():
        if done is None:
            print(f"run-{number:05d}: {found.refusal(number) or 'begun, not finished'}")
        elif done.get("given_up"):
            print(f"run-{number:05d}: given up, its shards went into a later one")
        else:
            print(f"run-{number:05d}: {len(done['shards']):,} shards, {done['documents']:,} documents")
    for sentence in found.left_out():
        print(f"left out until it changes: {sentence}")
    plan = found.due()
    if plan is None:
        print("nothing is due")
    else:
        print(f"{plan.name} is due: {plan.count('new'):,} new and {plan.count('changed'):,} changed shards")


def _write(configuration: Configuration, kind: str, to: str, at: str, image: str | None) -> None:
    from corpusveil.storage import files

    if kind not in KINDS:
        raise UserError(f"--write {kind}: it may be {', '.join(KINDS)}.")
    parse_times(at)
    path = Path(configuration.file).absolute()  # a link stays one: paths are relative to where it lies
    stem = re.sub("[^a-z0-9]+", "-", path.stem.lower()).strip("-")[:36]
    key = configuration.values["key"]
    program = shutil.which("corpusveil", path=str(Path(sys.executable).parent)) or "corpusveil"
    call = Call(
        f"corpusveil-{stem or 'schedule'}", at, program, str(path), image, path.read_text(encoding="utf-8"),
        key.get("path"), key.get("environment"),
    )  # fmt: skip
    for word in (call.program, call.file):
        if not word.isprintable():
            raise UserError(f"{word!r}: a path with control characters can't stand in a definition; rename it.")
    if kind == "kubernetes":
        _refuse_paths_of_here(configuration)
    made = KINDS[kind](call)
    for name in made:
        target = Path(to) / name
        if target.exists() and MARK not in target.read_text(encoding="utf-8", errors="replace"):
            raise UserError(f"{target}: a file is here that this command did not write; choose another --to.")
    for name, text in made.items():
        files.write_bytes(str(Path(to) / name), text.encode())
        print(Path(to) / name)


def _refuse_paths_of_here(configuration: Configuration) -> None:
    """Raise UserError for relative paths, which mean nothing in a container."""
    for key, one in configuration.paths():
        if not one.startswith("/") and "://" not in one:
            raise configuration.fault(key, f"{one} is a path in this folder; name a store, or a whole path of a volume")

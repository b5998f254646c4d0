"""``corpusveil schedule``."""

from __future__ import annotations

import posixpath
import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from corpusveil.cli.options import ProgressOption
from corpusveil.deployment.schedules import KINDS, MARK, Call, definition, parse_times
from corpusveil.errors import AddressError, BadValueError, ConflictError, InUseError

DAILY = "0 3 * * *"
COMMAND = ("schedule", "Privatize shards that are new since the last run.")

if TYPE_CHECKING:
    from corpusveil.pipelines.settings.toml import Document


def schedule(
    file: Annotated[str, typer.Argument(help="The configuration of the release.", metavar="FILE.toml")],
    status: Annotated[
        bool, typer.Option("--status", help="Show what was done and what is due; do nothing else.")
    ] = False,
    write: Annotated[
        str | None,
        typer.Option(help=f"Write the definition that starts the schedule, for {', '.join(KINDS)}.", metavar="KIND"),
    ] = None,
    to: Annotated[str, typer.Option(help="The folder that --write writes to.", metavar="FOLDER")] = ".",
    at: Annotated[
        str | None,
        typer.Option(
            help="For --write: when to start, as a cron expression; in UTC, for cron in the machine's time zone. "
            "Default: 0 3 * * *."
        ),
    ] = None,
    image: Annotated[str | None, typer.Option(help="For --write kubernetes: the container image.")] = None,
    claim: Annotated[
        str | None,
        typer.Option(help="For --write kubernetes: the claim of a volume that holds the folder of FILE.toml."),
    ] = None,
    progress: ProgressOption = "auto",
) -> None:
    """Privatize the shards that are new or changed since the last run, each time as a separate release.

    If it is started twice, one start does the work and the other says so. The next start makes up for a missed or
    killed start.

    Example: corpusveil schedule release.toml

    Example: corpusveil schedule release.toml --write systemd --at '0 3 * * *' --to /etc/systemd/system
    """
    from corpusveil.cli.progress import Terminal
    from corpusveil.pipelines import scheduled
    from corpusveil.pipelines.settings.toml import read

    document = read(file)
    if write is not None:
        scheduled.check(document)
        if write != "kubernetes" and (image or claim) is not None:
            raise ConflictError("--image and --claim are for --write kubernetes; leave them out.")
        _write(document, write, to, at or DAILY, image, claim)
        return
    if (image or at or claim) is not None:
        raise ConflictError("--at, --image and --claim need --write; add it, or leave them out.")
    if status:
        for line in scheduled.status(document):
            print(line)
    elif outcome := scheduled.start(document, Terminal(progress)):
        raise typer.Exit(outcome)


def _write(document: Document, kind: str, to: str, at: str, image: str | None, claim: str | None) -> None:
    from corpusveil.storage import files

    if kind not in KINDS:
        raise BadValueError(f"--write {kind}: choose one of {', '.join(KINDS)}.")
    parse_times(at)
    path = Path(document.file).absolute()  # a link is not resolved: paths are relative to the link's folder
    stem = re.sub("[^a-z0-9]+", "-", path.stem.lower()).strip("-")[:36]
    key = document.settings.key
    program = shutil.which("corpusveil", path=str(Path(sys.executable).parent)) or "corpusveil"
    call = Call(
        f"corpusveil-{stem or 'schedule'}", at, program, str(path), image, path.read_text(encoding="utf-8"),
        key.path if key.path is None else document.written.value("key.path"), key.environment,
        path.owner(), document.settings.engine.workers or 1, claim,
        document.settings.schedule.seconds("longest"),
    )  # fmt: skip
    for word in (call.program, call.file):
        if not word.isprintable():
            raise AddressError(
                f"{word!r}: a definition cannot contain a path with control characters; rename the path."
            )
    if kind == "kubernetes":
        _refuse_paths_of_here(document, claim)
    made = definition(kind, call)
    for name in made:
        target = Path(to) / name
        if target.exists() and MARK not in target.read_text(encoding="utf-8", errors="replace"):
            raise InUseError(
                f"{target}: this file was not written by this command, and is not overwritten; choose another --to."
            )
    for name, text in made.items():
        files.write_bytes(str(Path(to) / name), text.encode())
        print(Path(to) / name)


def _refuse_paths_of_here(document: Document, claim: str | None) -> None:
    """Raise UserError for paths that a container does not have: relative paths, or with a claim, paths outside it.

    The key is mounted from a secret, whatever its path.
    """
    from corpusveil.spaces.installed import SCHEME

    for key, path in document.paths():
        is_name = str(document.settings.value(key)).startswith(SCHEME)
        if key == "key.path" or path.startswith("/") or "://" in path or is_name:
            continue
        if claim is None:
            advice = "use a URL, an absolute path of a volume, or with --claim the volume that holds this folder"
            raise document.fault(key, f"{path} is a relative path; {advice}")
        if posixpath.normpath(path).startswith(".."):
            raise document.fault(key, f"{path} is outside the folder that the volume {claim} holds; move it inside")

"""``corpusveil`` and ``python -m corpusveil``: the command line as a process of its own."""

import atexit
import contextlib
import gc
import os
import shutil
import signal
import sys
import tempfile
from typing import Any, NoReturn

OBJECTS = 100_000
"""The garbage collector runs after this many new objects instead of 700: modules are needed until the end."""


def main() -> None:
    """Run the command line of this process and exit with its status."""
    ended_by: list[int] = []

    def end(number: int, _: Any) -> NoReturn:
        """End work in order, as Ctrl+C does: workers, temporary files and the lease of the output end with it."""
        signal.signal(number, signal.SIG_IGN)
        ended_by.append(number)
        raise KeyboardInterrupt

    gc.set_threshold(OBJECTS)
    try:
        signal.signal(signal.SIGTERM, end)
        # Beam and multiprocessing leave folders for temporary files, which may hold text. What is registered first for
        # the end of the process is called last.
        os.environ["TMPDIR"] = tempfile.tempdir = tempfile.mkdtemp(prefix="corpusveil-")
        atexit.register(shutil.rmtree, tempfile.tempdir, ignore_errors=True)
        from corpusveil.cli.main import run

        status = run(sys.argv[1:])
    except KeyboardInterrupt:  # while modules are loaded
        status = 128 + signal.SIGINT
        sys.stderr.write("corpusveil: interrupted; run the same command again to continue.\n")
    _exit_with(128 + ended_by[0] if ended_by else status)


def _exit_with(status: int) -> NoReturn:
    """Exit with the status of a finished command, or 1 if its output cannot be delivered."""
    for stream in filter(None, (sys.stdout, sys.stderr)):
        try:
            stream.flush()
        except (OSError, ValueError):  # a full disk, or nobody reads it any more: Python would say so at its end
            status = status or 1
            with contextlib.suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    sys.exit(status)


if __name__ == "__main__":
    main()

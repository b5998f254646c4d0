"""``corpusveil`` and ``python -m corpusveil``: the command line as a process of its own."""

import atexit
import contextlib
import gc
import logging
import os
import shutil
import signal
import sys
import tempfile
from typing import Any, NoReturn

OBJECTS = 100_000
"""The garbage collector runs after this many new objects instead of 700: modules are needed until the end."""

ENDING = (signal.SIGINT, signal.SIGTERM)
INTERRUPTED = 128 + signal.SIGINT


def main() -> None:
    """Run the command line of this process and exit with its status."""
    signals: list[int] = []

    def end(number: int, frame: Any) -> None:
        """End work in order, as Ctrl+C does: workers, temporary files and the lease of the output end with it."""
        while frame is not None:
            if frame.f_code.co_filename.startswith("<frozen importlib"):  # some modules ignore what ends their import
                return later(number)
            frame = frame.f_back
        logging.disable()  # libraries log the calls that this breaks off
        signals.append(number)
        raise KeyboardInterrupt

    def later(number: int) -> None:
        signal.signal(signal.SIGALRM, lambda _, frame: end(number, frame))
        signal.setitimer(signal.ITIMER_REAL, 0.1)

    def end_again(ignored: Any) -> None:
        """Interrupt once more where Python ignores that, as in ``__del__`` of a library."""
        if isinstance(ignored.exc_value, KeyboardInterrupt):
            later(signals[-1])
        else:
            sys.__unraisablehook__(ignored)

    gc.set_threshold(OBJECTS)
    sys.unraisablehook = end_again
    try:
        for each in ENDING:
            signal.signal(each, end)
        # Beam and multiprocessing leave folders for temporary files, which may hold text. What is registered first for
        # the end of the process is called last.
        os.environ["TMPDIR"] = tempfile.tempdir = tempfile.mkdtemp(prefix="corpusveil-")
        atexit.register(shutil.rmtree, tempfile.tempdir, ignore_errors=True)
        from corpusveil.cli.main import run

        status = run(sys.argv[1:], signals)
    except KeyboardInterrupt:  # while modules are loaded
        status = INTERRUPTED
        sys.stderr.write("corpusveil: interrupted; run the same command again to continue.\n")
    for each in (*ENDING, signal.SIGALRM):  # what there was to interrupt has ended
        signal.signal(each, signal.SIG_IGN)
    _exit_with(128 + signals[0] if signals and status == INTERRUPTED else status)


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

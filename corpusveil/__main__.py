"""``corpusveil`` and ``python -m corpusveil``: the command line, which can be ended while it is being loaded."""

import gc
import signal
import sys

from corpusveil.cli import signals, temporary

OBJECTS = 100_000
"""The garbage collector runs after this many new objects instead of 700: modules are needed until the end."""


def main() -> None:
    """Run the command line of this process and exit with its status."""
    gc.set_threshold(OBJECTS)
    signals.install()
    from corpusveil.cli.main import run

    try:
        signals.work_begins()
        temporary.begin()
        status = run(sys.argv[1:])
    except KeyboardInterrupt as interrupted:  # before or after what handles it
        status = 128 + int((interrupted.args or (signal.SIGINT,))[0])
    finally:
        signals.work_ends()
    signals.exit_with(status)


if __name__ == "__main__":
    main()

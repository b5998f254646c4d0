"""``corpusveil`` and ``python -m corpusveil``: the command line, which can be ended while it is being loaded."""

import signal
import sys

from corpusveil.cli import signals, temporary


def main() -> None:
    """Run the command line of this process and exit with its status."""
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
    sys.exit(status)


if __name__ == "__main__":
    main()

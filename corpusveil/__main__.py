"""``corpusveil`` and ``python -m corpusveil``: the command line, which can be ended while it is being loaded."""

import sys

from corpusveil.cli import signals, temporary


def main() -> None:
    """Run the command line of this process and exit with its status."""
    signals.install()
    from corpusveil.cli.main import run

    signals.work_begins()
    temporary.begin()
    try:
        status = run(sys.argv[1:])
    finally:
        signals.work_ends()
    sys.exit(status)


if __name__ == "__main__":
    main()

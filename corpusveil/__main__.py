"""``python -m corpusveil``: the command line."""

from corpusveil.cli.main import main

if __name__ == "__main__":
    main()

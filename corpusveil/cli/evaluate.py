"""``corpusveil evaluate``."""

from __future__ import annotations

from corpusveil.cli.options import group
from corpusveil.errors import PackageError
from corpusveil.registry import MISSING

COMMAND = ("evaluate", "Measure the privacy and the utility of a release.")

app = group("Measure what a release discloses and how useful it still is.")


def _missing() -> None:
    raise PackageError(MISSING)


# Without corpusveil-evaluate, whose commands replace these.
for _name, _line in (
    ("release", "Compare a release with its original."),
    ("readers", "Print what readers guess."),
    ("study", "Run a published study."),
):
    _any = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}
    app.command(_name, context_settings=_any, help=f"{_line} Needs corpusveil-evaluate.")(_missing)

"""``corpusveil evaluate``: a group whose commands are those of corpusveil-evaluate."""

from __future__ import annotations

from corpusveil.cli.options import group

COMMAND = ("evaluate", "Measure the privacy and the utility of a release.")

app = group("Measure what a release discloses and how useful it still is.")
app.callback()(lambda: None)  # without which typer makes no group that is empty

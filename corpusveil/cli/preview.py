"""``corpusveil preview``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from corpusveil.cli.derived import derived
from corpusveil.cli.options import ProgressOption
from corpusveil.errors import BadValueError
from corpusveil.pipelines.settings import Settings, needed

COMMAND = ("preview", "Show a few texts before and after. Writes nothing.")

if TYPE_CHECKING:
    from corpusveil.pipelines.preview import Drawn, Preview

EPSILONS = (0.5, 1.0, 3.0)
SHOWN = 400
"""Characters of each text."""
PRIVATE = "PRIVATE: this shows original text. Nothing was written, and nothing was spent."


@derived("preview")
def preview(
    settings: Settings,
    epsilon: Annotated[
        list[float] | None,
        typer.Option(help="An epsilon of a word. Repeatable. Default: 0.5, 1 and 3.", rich_help_panel="How private"),
    ] = None,
    progress: ProgressOption = "auto",
) -> None:
    """Show the first five texts before, after and denoised, at several epsilons. Writes and spends nothing.

    Without --space, the installed space 'en' is used. Without --key, a key is made and thrown away.

    Example: corpusveil preview reviews.csv --text review --epsilon 0.5 --epsilon 1
    """
    from corpusveil.cli.progress import Terminal
    from corpusveil.pipelines.preview import preview as shown
    from corpusveil.pipelines.watch import tell_unknown

    epsilons = epsilon or list(EPSILONS)
    for value in epsilons:
        if not 0 < value < float("inf"):
            raise BadValueError(f"--epsilon {value:g}: give a number above 0.")
    watch = Terminal(progress)
    made = shown(settings, epsilons, watch)
    if not sys.stdout.isatty():
        watch.warn("warning: a preview is private, and this preview goes into a file or a pipe.")
    print("\n".join(lines(made, settings)))
    tell_unknown(made.counts.unknown_share, watch)


def lines(made: Preview, settings: Settings) -> list[str]:
    from corpusveil.display import Card
    from corpusveil.language.denoise import NO_FACTS
    from corpusveil.spaces.installed import SCHEME

    mechanism = needed(settings.mechanism, "mechanism")
    path = needed(settings.space, "space").path.removeprefix(SCHEME)
    key = "A throwaway key: the next preview will differ." if settings.key.path is None else f"Key {settings.key.path}."
    printed = [PRIVATE, f"Space {path}, mechanism {mechanism.name}. {key}", "", *map(_risk, made.drawn)]
    for number, text in enumerate(made.before):
        fields = [("before", _shown(text))]
        for drawn in made.drawn:
            fields.append((f"epsilon {drawn.epsilon:.4g}", _shown(drawn.texts[number])))
            if drawn.denoised is not None:
                fields.append(("denoised", _shown(drawn.denoised[number])))
        printed += ["", Card(f"Text {number + 1}", fields).text()]
    return [*printed, "", NO_FACTS] if any(drawn.denoised is not None for drawn in made.drawn) else printed


def _risk(drawn: Drawn) -> str:
    """Say what an epsilon means."""
    unchanged = f"epsilon {drawn.epsilon:.4g}: {drawn.unchanged:.1%} of known words are unchanged"
    return f"{unchanged}." if drawn.risk is None else f"{unchanged}; {drawn.risk.sentence()}."


def _shown(text: str) -> str:
    """Return the beginning of a text, without terminal control characters."""
    plain = " ".join("".join(character if character.isprintable() else " " for character in text).split())
    return plain[:SHOWN] + ("…" if len(plain) > SHOWN else "")

"""``corpusveil preview``: show a few texts before and after. Writes nothing."""

from __future__ import annotations

import shutil
import sys
import textwrap
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corpusveil.cli.derived import Grouped, derived
from corpusveil.cli.options import ProgressOption
from corpusveil.errors import BadValueError
from corpusveil.pipelines.settings import Settings

if TYPE_CHECKING:
    from corpusveil.pipelines.preview import Drawn, Preview

EPSILONS = (0.5, 1.0, 3.0)
SHOWN = 400
"""Characters of each text."""
PRIVATE = "PRIVATE: this shows original text. Nothing was written, and nothing was spent."


class Several(Grouped):
    """A command whose ``--epsilon`` takes several numbers: ``--epsilon 0.5 1 3``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Write ``--epsilon`` before each number that follows one."""
        written: list[str] = []
        for word in args:
            if len(written) > 1 and written[-2] == "--epsilon" and _is_number(word):
                written.append("--epsilon")
            written.append(word)
        return super().parse_args(ctx, written)


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


@derived("preview", kind=Several)
def preview(
    settings: Settings,
    epsilon: Annotated[
        list[float] | None,
        typer.Option(
            help="Epsilons of a word: --epsilon 0.5 1 3 (default).",
            rich_help_panel="How private",
        ),
    ] = None,
    progress: ProgressOption = "auto",
) -> None:
    """Show the first five texts before, after and denoised, at several epsilons. Writes and spends nothing.

    Without --space, a small space of bundled text is used. Without --key, a key is made and thrown away.

    Example: corpusveil preview reviews.csv --text review --epsilon 0.5 1 3
    """
    from corpusveil.cli.progress import Shown
    from corpusveil.pipelines.preview import preview as shown
    from corpusveil.pipelines.watch import tell_unknown

    epsilons = epsilon or list(EPSILONS)
    for value in epsilons:
        if not 0 < value < float("inf"):
            raise BadValueError(f"--epsilon {value:g}: give a number above 0.")
    watch = Shown(progress)
    made = shown(settings, epsilons, watch)
    if not sys.stdout.isatty():
        watch.warn("warning: a preview is private, and this preview goes into a file or a pipe.")
    print("\n".join(lines(made, settings)))
    tell_unknown(made.counts.unknown_share, watch)


def lines(made: Preview, settings: Settings) -> list[str]:
    """Return the printed text."""
    from corpusveil.language.denoise import NO_FACTS

    (space, mechanism) = settings.needed("space", "mechanism")
    key = "A throwaway key: the next preview will differ." if settings.key.path is None else f"Key {settings.key.path}."
    width = min(110, shutil.get_terminal_size((110, 24)).columns)
    said = [PRIVATE, f"Space {space.path}, mechanism {mechanism.name}. {key}", "", *map(_risk, made.drawn)]
    names = ["before", *(f"{drawn.epsilon:g}" for drawn in made.drawn)]
    margin = max(len("denoised"), *(len(f"epsilon {name}") for name in names[1:])) + 2
    for number, text in enumerate(made.before):
        said += ["", f"Text {number + 1}", *_wrapped("before", text, margin, width)]
        for drawn in made.drawn:
            said += _wrapped(f"epsilon {drawn.epsilon:g}", drawn.texts[number], margin, width)
            if drawn.denoised is not None:
                said += _wrapped("denoised", drawn.denoised[number], margin, width)
    return [*said, "", NO_FACTS] if any(drawn.denoised is not None for drawn in made.drawn) else said


def _risk(drawn: Drawn) -> str:
    """Say what an epsilon means."""
    said = f"epsilon {drawn.epsilon:g}: {drawn.unchanged:.1%} of known words are unchanged"
    if drawn.risk is None:
        return f"{said}."
    return f"{said}; {drawn.risk.sentence()}."


def _wrapped(name: str, text: str, margin: int, width: int) -> list[str]:
    """Return a text as lines after its name, without terminal control characters."""
    plain = " ".join("".join(character if character.isprintable() else " " for character in text).split())
    return textwrap.wrap(
        plain[:SHOWN] + ("…" if len(plain) > SHOWN else ""), width, initial_indent=f"  {name}".ljust(margin + 2),
        subsequent_indent=" " * (margin + 2), break_long_words=True, break_on_hyphens=False,
    )  # fmt: skip

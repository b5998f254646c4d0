"""Pages of evaluations and studies: titles, tables and notes, in one HTML file that fetches nothing."""

from __future__ import annotations

import functools
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from importlib import resources

import jinja2


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a page below its title: text, a table, notes.

    A cell of ``rows`` is a text or several lines; a row of one cell is a heading. The columns ``numbers`` are numbers.
    """

    title: str
    text: str = ""
    heads: Sequence[str] = ()
    rows: Sequence[Sequence[str | Sequence[str]]] = ()
    numbers: Collection[int] = ()
    look: str = ""
    notes: Sequence[str] = ()
    folded: bool = False


def render_blocks(title: str, intro: str, blocks: Sequence[Block]) -> str:
    """Return a page of blocks."""
    return environment().get_template("page.html").render(title=title, intro=intro, blocks=blocks)


@functools.lru_cache
def environment() -> jinja2.Environment:
    """Return the templates of this package."""
    loader = jinja2.FunctionLoader(
        lambda name: (resources.files(__package__) / "templates" / name).read_text(encoding="utf-8")
    )
    made = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    made.globals["warning"] = ""
    return made

"""The documentation's index for assistants, ``llms.txt`` of https://llmstxt.org: mkdocs calls it as a hook.

Each page is listed with its first sentence, and lies in the site as Markdown, too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

Nav = Sequence[Mapping[str, Any]]
START = "Start"
"""The section of pages that the navigation has outside of all sections."""


def on_post_build(config: Any) -> None:
    """Write the index, and the pages as Markdown, into the site that mkdocs has built."""
    docs, site = Path(config["docs_dir"]), Path(config["site_dir"])
    text = index(config["site_name"], config["site_description"], config["nav"], docs)
    (site / "llms.txt").write_text(text, encoding="utf-8")
    for _, _, page in pages(config["nav"]):
        if page.endswith(".md"):
            (site / page).write_text(markdown(docs / page), encoding="utf-8")


def index(name: str, summary: str, nav: Nav, docs: Path) -> str:
    """Return the index: a title, a summary, and for each section the links of its pages with a description."""
    lines, shown = [f"# {name}", "", f"> {summary}."], ""
    for section, title, page in pages(nav):
        if section != shown:
            lines += ["", f"## {section}", ""]
            shown = section
        lines.append(f"- [{title}]({page.replace('.ipynb', '.html')}): {first_sentence(markdown(docs / page))}")
    return "\n".join(lines) + "\n"


def pages(nav: Nav) -> Iterator[tuple[str, str, str]]:
    """Yield the section, title and file of each page of a navigation."""
    for entry in nav:
        for title, inside in entry.items():
            if isinstance(inside, str):
                yield START, title, inside
            else:
                yield from ((title, own, page) for _, own, page in pages(inside))


def markdown(page: Path) -> str:
    """Return a page as Markdown: with what it includes from the repository, or a notebook's text."""
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        return "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    included = re.fullmatch(r'--8<-- "(.+)"\n', text)
    return (Path(__file__).parents[1] / included[1]).read_text(encoding="utf-8") if included else text


def first_sentence(text: str) -> str:
    """Return the first sentence of a page's prose, without marks."""
    prose = re.sub(r"^```.*?^```$|<!--.*?-->|^#.*?$", "", text, flags=re.MULTILINE | re.DOTALL)
    paragraph = next(part for part in re.split(r"\n\s*\n", prose) if re.match(r"\s*[\w`*\[]", part))
    sentence = re.split(r"(?<=[.!?:])\**\s+(?=[A-Z\d`*\[])", " ".join(paragraph.split()), maxsplit=1)[0]
    return re.sub(r"\[([^\]]+)\]\([^)]*\)|[`*]", lambda match: match[1] or "", sentence)

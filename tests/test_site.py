"""The documentation: pages that are linked, notebooks and definitions that work, and a site that fetches nothing."""

from __future__ import annotations

import ast
import configparser
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from croniter import croniter

from corpusveil.cli import main
from tests.engines.corpora import HANG_SECONDS

ROOT = Path(__file__).parents[1]
PAGES = sorted(path.name for path in (ROOT / "docs").glob("*.md"))
MOST_WORDS = 26_000
KINDS = ["Start", "Choose and prepare", "Release", "What is promised", "Evaluation and studies", "Reference", "Design"]
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(#[^)\s]+)?\)")
NAV = (ROOT / "mkdocs.yml").read_text().partition("nav:")[2]
OUTSIDE = re.compile(
    r'<(?:script|img|iframe)[^>]*\bsrc="(?:https?:)?//|<link[^>]*rel="stylesheet"[^>]*href="(?:https?:)?//'
)


def test_every_page_is_in_the_navigation_once() -> None:
    """A page that nobody finds is not read; make docs says so, too, where somebody runs it."""
    assert sorted(re.findall(r": ([\w-]+\.md)$", NAV, re.MULTILINE)) == PAGES


def headings(path: Path) -> set[str]:
    """Return the anchors of a page's headings, as the site makes them."""
    text = re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {
        "#" + re.sub(r"[^\w\- ]", "", re.sub(r"\]\([^)]*\)", "", title)).lower().replace(" ", "-") for title in titles
    }


def test_links_between_pages_lead_somewhere() -> None:
    """To a page, and to a heading of it, in the quick suite as well."""
    pages = [*(ROOT / "docs").rglob("*.md"), *(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "SECURITY"))]
    links = [(path, to, anchor) for path in pages for to, anchor in LINK.findall(path.read_text())]
    assert len(links) > 50
    assert [(path.name, to) for path, to, _ in links if not (path.parent / to).exists()] == []
    anchored = [(path, path.parent / to if to else path, anchor) for path, to, anchor in links if anchor]
    assert [(path.name, to.name, a) for path, to, a in anchored if to.suffix == ".md" and a not in headings(to)] == []


def test_every_page_is_linked_from_the_index_in_the_groups_of_the_navigation() -> None:
    """A reader of the index finds each page without the navigation, and under the kind that it is."""
    index = (ROOT / "docs" / "index.md").read_text()
    linked = {to for to, _ in LINK.findall(index)}
    written = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")} - {"index.md"}
    assert written - linked == set()
    groups = re.split(r"^  - (.*):$", NAV, flags=re.MULTILINE)[1:]
    assert groups[::2] == KINDS
    for kind, pages in zip(groups[::2], groups[1::2], strict=True):
        (section,) = re.findall(rf"^## {kind}$(.*?)(?=^## |\Z)", index, re.MULTILINE | re.DOTALL)
        assert set(re.findall(r": (\S+\.(?:md|ipynb))$", pages, re.MULTILINE)) == {
            to for to, _ in LINK.findall(section)
        }


def test_the_documentation_can_be_read_in_an_afternoon() -> None:
    """Whoever adds a page shortens another; decisions are beside, and ``test_first_hour.py`` counts README.md."""
    assert sum(len((ROOT / "docs" / page).read_text().split()) for page in PAGES) <= MOST_WORDS


def command_lines() -> Iterator[tuple[str, str]]:
    """Yield the command lines of all pages: lines of code blocks, continued ones joined."""
    for path in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        text = path.read_text().replace("\\\n", " ")
        blocks = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        fenced = "\n".join(block for kind, block in blocks if kind in ("", "sh", "bash"))
        typed = "\n".join(
            line[2:] for kind, block in blocks if kind == "console" for line in block.splitlines() if line[:2] == "$ "
        )
        indented = "\n".join(re.findall(r"^    (corpusveil .*)$", text, re.MULTILINE))
        inline = "\n".join(" ".join(one.split()) for one in re.findall(r"`(corpusveil [a-z][^`]+)`", text))
        for line in f"{fenced}\n{typed}\n{indented}\n{inline}".splitlines():
            if line.lstrip().startswith("corpusveil "):
                yield path.name, line.partition("    #")[0].partition(" # ")[0].strip()


COMMAND_LINES = sorted(set(command_lines()))


def test_commands_in_the_documents_exist_with_their_options() -> None:
    """A command that was renamed, or an option that went, is found where it is shown; most commands are shown."""
    for page, line in COMMAND_LINES:
        words = line.partition(" -- ")[0].split()[1:]
        if words[0].startswith("-"):
            assert words[0] in ("--install-completion", "--help", "--version"), (page, line)
            continue
        command = main.command(words[0])
        if words[0] in ("evaluate", "key", "ledger"):
            command = command.commands[words[1]]
        known = {option for parameter in command.params for option in parameter.opts} | {"--help", "--debug"}
        assert {word.partition("=")[0] for word in words if word.startswith("--")} <= known, (page, line)
    assert len({line.split()[1] for _, line in COMMAND_LINES} & set(main.COMMANDS)) >= len(main.COMMANDS) - 4


@pytest.mark.site
def test_the_site_is_built_strictly_and_fetches_nothing(tmp_path: Path) -> None:
    """No warning, no dead link or anchor, no script, style or picture from elsewhere; the API has its names."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    built = sorted((tmp_path / "site").glob("*.html"))
    assert len(built) == len(PAGES) + 1, "and the page of what is not found"
    everything = (tmp_path / "site").rglob("*.html")  # notebooks, too
    assert [path.name for path in everything if OUTSIDE.search(path.read_text())] == []
    assert all((tmp_path / "site" / page).exists() for page in ("llms.txt", *PAGES))
    reference = (tmp_path / "site" / "api.html").read_text()
    for name in ("corpusveil.transforms.table.privatize", "corpusveil.mechanisms.ring_geometric.RingGeometric"):
        assert f'id="{name}"' in reference


PAGE = Path(__file__).parents[1] / "docs/schedules.md"


def blocks(kind: str) -> list[str]:
    text = PAGE.read_text().partition("## Deployments")[2]
    return re.findall(rf"```{kind}\n(.*?)```", text, re.DOTALL)


def test_each_definition_is_read_and_starts_the_schedule() -> None:
    (cron,), (python,), (manifest,), units = (blocks(kind) for kind in ("cron", "python", "yaml", "ini"))
    assert croniter.is_valid(" ".join(cron.split()[:5]))
    job = yaml.safe_load(manifest)
    kubernetes_validate.validate(job, "1.31", strict=True)
    (container,) = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    assert container["command"][:2] == ["corpusveil", "schedule"]
    ast.parse(python)
    parsed = configparser.ConfigParser()
    for unit in units:
        parsed.read_string(unit)
    assert set(parsed.sections()) == {"Service", "Timer", "Install"}
    for text in (cron, python, parsed["Service"]["ExecStart"]):
        assert "corpusveil schedule /srv/veil/release.toml" in text


NOTEBOOKS = sorted((Path(__file__).parents[1] / "docs/notebooks").glob("*.ipynb"))
NAMES = [path.stem for path in NOTEBOOKS]


def _outputs(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    return [output for cell in notebook["cells"] for output in cell.get("outputs", ())]


def _pictures(notebook: dict[str, Any]) -> int:
    return sum("image/png" in output.get("data", {}) for output in _outputs(notebook))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=NAMES)
def test_a_notebook_is_stored_with_its_outputs(path: Path) -> None:
    """In the order of its cells, with a picture, without an error and without a path of the machine that ran it."""
    notebook = json.loads(path.read_text())
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == [*range(1, len(code) + 1)]
    assert _pictures(notebook) >= 1
    assert not [output for output in _outputs(notebook) if output["output_type"] == "error"]
    assert not any(place in path.read_text() for place in ("/home/", "/work/", "/root/", "/tmp/", "/Users/"))


@pytest.mark.site
@pytest.mark.parametrize("path", NOTEBOOKS, ids=NAMES)
def test_a_notebook_runs(path: Path, tmp_path: Path) -> None:
    """By Jupyter, from an empty folder: it shows as many pictures as are stored."""
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    notebook = nbformat.read(path, as_version=4)
    stored = _pictures(notebook)
    nbclient.NotebookClient(notebook, timeout=HANG_SECONDS, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert _pictures(notebook) == stored

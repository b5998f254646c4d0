"""The first hour of a user with only the README: its first commands and lines, unchanged."""

from __future__ import annotations

import html
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import corpusveil as cv
from corpusveil.cli import demonstration
from corpusveil.collocations.public_texts import public_texts
from corpusveil.transforms.release.risk import epsilon_at
from corpusveil_evaluate.readers.ngrams.modelling import load_model
from scripts import readme_output
from tests.calls import refused
from tests.test_documentation import blocks

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
LONGEST, WORDS = 70, 600

pytestmark = pytest.mark.slow


def shell_commands(page: str) -> list[str]:
    """Return the shell commands of a page that come after the installation."""
    install, *others = "".join(blocks(page, "sh")).splitlines()
    assert install.startswith(("pip install corpusveil corpusveil-space-en", "pip install 'corpusveil[en"))
    return others


def run_commands(commands: Sequence[str], folder: Path, path: str) -> str:
    """Run shell commands in a folder with programs of ``path`` first; return what they print."""
    environment = {**os.environ, "PATH": path + os.pathsep + os.environ["PATH"], "HOME": str(folder / "home")}
    done = subprocess.run(
        ["sh", "-ec", "\n".join(commands)], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def assert_replaced(said: str, folder: Path) -> None:
    """Check what commands said, and that each text has other words."""
    assert said.startswith("PRIVATE:")
    (shard,) = (folder / "private" / "data").iterdir()
    (notes,) = folder.glob("notes.*")
    before, after = (path.read_text().splitlines()[notes.suffix == ".csv" :] for path in (notes, shard))
    assert not any(private.lower() in text.lower() for private, text in zip(after, before, strict=True))


class TestTheReadme:
    def test_is_short_and_shows_what_its_example_prints(self) -> None:
        """Word by word: the space is shipped, so it is the same on every machine. Another output would be seen."""
        assert len(README.splitlines()) <= LONGEST
        assert len(re.findall(r"\S*\w\S*", README)) <= WORDS
        assert readme_output.written(README) == README, "run: python scripts/readme_output.py"
        wrong = re.sub(r"(complains of chest pain\. \|)[^|]+", r"\1 somebody ", README)
        assert readme_output.written(wrong) == README != wrong

    @pytest.mark.nightly
    def test_risks_are_those_of_its_readers(self) -> None:
        """The share beside the texts is that of the strongest reader that was measured, not a remembered one."""
        mechanism, said = cv.RingGeometric(cv.load_space("en")), " ".join(README.split())
        (share, *_), *_ = epsilon_at(mechanism, 0.5, cv.TextPolicy()).recovered
        assert "recovers about half of the content words" in said
        assert 0.4 < share < 0.6
        every, content = re.findall(r"at most ([\d.]+) %", (ROOT / "docs" / "guarantees.md").read_text())
        (top,) = (rung for rung in cv.reader_ladder(mechanism, 1.0, load_model("en"), dial=False).rungs if rung.bound)
        assert top.cells[1:3] == (f"at most {every} %", f"at most {content} %")


@pytest.mark.parametrize("page", ["README.md", pytest.param("docs/start.md", marks=pytest.mark.nightly)])
def test_commands_lead_to_private_text(page: str, tmp_path: Path) -> None:
    """Copied as they stand, in an empty folder and an empty home."""
    said = run_commands(shell_commands(page), tmp_path, str(Path(sys.executable).parent))
    assert_replaced(said, tmp_path)


def test_the_demo_shows_both_units_and_says_what_may_be_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On this engine alone; make demo runs it on three. No private text comes back as a passage."""
    with monkeypatch.context() as bare:
        bare.setattr(demonstration, "RULES", ("not_installed",))
        with refused("missing-package", "corpusveil[spans]"):
            demonstration.demonstrate(str(tmp_path / "demo"))
    assert not (tmp_path / "demo").exists()
    monkeypatch.setattr(demonstration, "engines", list)
    monkeypatch.setattr(demonstration, "public_texts", lambda: list(public_texts())[:100])
    demonstration.demonstrate(str(tmp_path / "demo"))
    said, page = capsys.readouterr().out, (tmp_path / "demo" / "index.html").read_text()
    before = [row["text"] for row in demonstration.private_rows()]
    rows = re.findall(r"<tr>\s*" + 4 * r"<td>([^<]*)</td>\s*" + "</tr>", page)
    assert len(rows) == demonstration.SHOWN
    for original, *releases in ([html.unescape(cell.strip()) for cell in row] for row in rows):
        assert original in before
        assert not {original, *before} & set(releases)
    assert said.count("The same bytes from local") == 2
    assert all(path.name in page for path in (tmp_path / "demo").glob("*.toml"))


def test_python_of_pages_that_need_nothing_runs(capsys: pytest.CaptureFixture[str]) -> None:
    for page, printed in (
        ("start", "Guarantee: ring-geometric, epsilon 0.1364"),
        ("choosing-the-unit", "Store en, passage-exchange."),
        ("mechanisms", "Space(57,701 words, 96 dimensions"),
        ("passages", "passage-exchange"),
    ):
        exec(compile(readme_output.example((ROOT / "docs" / f"{page}.md").read_text()), page, "exec"), {})
        assert printed in capsys.readouterr().out
    assert all("ε = 0.1364" in page for page in (README, (ROOT / "docs/start.md").read_text())), "as it was printed"


def test_the_example_of_spans_runs() -> None:
    """Of a function that finds tickets."""
    names: dict[str, Any] = {}
    for block in blocks("docs/spans.md"):
        exec(compile(block, "spans", "exec"), names)
    assert names["tickets"](["see TCK-123456"]) == [[(4, 14, "ticket")]]
    own = cv.Release(
        cv.RingGeometric(cv.load_space("en")), cv.Budget(4.0), key=cv.Key.generate(),
        spans=cv.SpanPolicy(find=names["tickets"]),
    )  # fmt: skip
    assert "[ticket]" in cv.privatize(["see TCK-123456"], own, ids=[1])[0]


@pytest.mark.nightly
def test_the_flow_of_collocations_gives_text(tmp_path: Path) -> None:
    """The page's commands lead from public text to a release, most of whose words are words of the vocabulary."""
    (program,) = blocks("docs/collocations.md")
    (tmp_path / "texts.py").write_text(program)
    (commands,) = blocks("docs/collocations.md", "sh")
    run_commands(commands.splitlines(), tmp_path, str(Path(sys.executable).parent))
    (shard,) = (tmp_path / "private" / "data").iterdir()
    before, after = (path.read_text().lower().split() for path in (tmp_path / "private.txt", shard))
    assert 0.3 < len(set(before) & set(after)) / len(set(after)) < 0.9


def test_the_schedule_of_its_page_releases_each_day_once_under_the_cap(tmp_path: Path) -> None:
    """The file and the commands as they stand, and what the comments say that they print."""
    settings, commands = (blocks("docs/schedules.md", kind)[0] for kind in ("toml", "sh"))
    (tmp_path / "release.toml").write_text(settings)
    said = run_commands(["exec 2>&1", *commands.splitlines()], tmp_path, str(Path(sys.executable).parent))
    promised = re.findall(r" # (run-.*|.* shards|it has .*)$", commands, re.MULTILINE)
    assert len(promised) == 4
    assert [line for line in promised if line not in " ".join(said.split())] == []
    assert len(list((tmp_path / "private").glob("run-*/data/*.jsonl"))) == 2


def test_no_page_has_python_that_nobody_runs() -> None:
    """Here, or in test_documentation.py."""
    pages = {path.stem for path in (ROOT / "docs").glob("*.md") if "```python" in path.read_text()}
    ran = {"choosing-the-unit", "collocations", "files", "frames", "mechanisms", "passages", "schedules"}
    assert pages == ran | {"evaluation", "left-out", "spans", "start", "streaming"}

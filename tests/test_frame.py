"""What the repository promises before any code of it runs."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parents[1]
LARGEST = 1_000_000
REGISTERS = (
    ("corpusveil/cli/*.py", "\nCOMMAND = "),
    ("corpusveil/storage/forms/*.py", "\nSUFFIXES = "),
    ("corpusveil/mechanisms/*.py", "\n@register\n"),
    ("evaluate/corpusveil_evaluate/statistics/*.py", "register("),
    ("fuzz/*.py", "\ndef readers("),
)
"""Folders whose files are found, and what such a file declares."""
NEED_A_GROUP = {"__main__", "worker", "doctest_blocks"}
"""Programs, and what imports what make fuzz or make docs installs."""
EMPTY_NAMES = {"told", "found", "one"}
WORST = re.compile(
    r"\bbehind\b|(?<![Tt]here )\b(?:is|are) none\b(?! of)|\b[Ss]o many\b(?! that)|(?<![\w.)\]}])\.\d+ ?%"
)
"""Write after; is not one, or is ignored; ``n``, or this number of; 0.4%."""
CODE = re.compile(r"(?m)``[^`]*``|licence!|^ *(?:>>>|\.\.\.) .*$")
BRITISH = re.compile(
    r"(?<![-\w`])(?:artefact(?!Error)|behaviour|(?:dis)?colour|favour|honour|neighbour|centre[ds]?\b|grey\b|"
    r"licences?\b(?![:,)] )|"
    r"(?:analy|anonymi|authori|capitali|customi|emphasi|finali|generali|initiali|materiali|maximi|minimi|normali|optimi|"
    r"organi|privati|pseudonymi|randomi|reali|recogni|seriali|speciali|summari|synchroni|tokeni|utili|vectori|visuali)"
    r"s(?:e[ds]?|er|ers|ing|ation)\b|(?:cancel|label|model|signal|total|travel)l(?:ed|ing)\b|judgement|learnt\b|"
    r"(?:mis)?spelt\b|whilst\b|amongst\b|towards\b|fulfils?\b)",
    re.IGNORECASE,
)
"""Write artifact, behavior, center, gray, license (but --licence), analyze, tokenize, labeled, toward and so on."""


def test_no_tracked_file_is_large() -> None:
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a git work tree")
    listed = subprocess.run(
        ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    files = [ROOT / name for name in listed.stdout.split("\0") if name]
    large = {path.name for path in files if path.is_file() and path.stat().st_size > LARGEST}
    assert large <= {"space.zip"}, "whose size test_installed.py limits"


def test_the_readme_leads_with_the_two_commands_and_every_make_command_in_the_documents_exists() -> None:
    assert {"demo", "test"} <= set(re.findall(r"^make (\w+)", (ROOT / "README.md").read_text(), re.MULTILINE))
    workflows = [path.relative_to(ROOT) for path in (ROOT / ".github" / "workflows").glob("*.yml")]
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for document in ("README.md", "CONTRIBUTING.md", ".ci/run", *workflows):
        named = set(re.findall(r"(?:^|`|exec |run: )make ([a-z-]+)", (ROOT / document).read_text(), re.MULTILINE))
        assert named <= targets, document


def test_every_action_of_a_workflow_is_pinned_to_a_commit() -> None:
    """A tag can be moved to other code, a commit cannot."""
    texts = [path.read_text() for path in (ROOT / ".github" / "workflows").glob("*.yml")]
    used = [line for text in texts for line in text.splitlines() if "uses:" in line]
    assert used
    assert [line for line in used if not re.search(r"uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line)] == []


def test_a_file_in_a_folder_that_is_searched_declares_something_or_is_used() -> None:
    """A new command or mechanism that forgot its declaration was silently none."""
    sources = [*ROOT.glob("corpusveil/**/*.*"), *ROOT.glob("fuzz/*.py"), *ROOT.glob("evaluate/**/*.py")]
    text = "\n".join(file.read_text() for file in sources if file.suffix in (".py", ".in"))
    for pattern, declaration in REGISTERS:
        files = [file for file in ROOT.glob(pattern) if not file.stem.startswith("__")]
        assert any(declaration in file.read_text() for file in files), pattern
        for file in files:
            room, name = file.parent.name, file.stem
            used = re.search(rf"{room}\.{name}\b|import_module\(.*{name}|{room} import .*\b{name}\b", text)
            assert used or declaration in file.read_text(), f"{file}: add{declaration.rstrip()} …, or import the file"


def test_the_lock_resolves_anywhere_and_is_that_of_pyproject() -> None:
    text = (ROOT / "uv.lock").read_text()
    hosts = set(re.findall(r'"https?://([^/"]+)', text))
    assert hosts == {"pypi.org", "files.pythonhosted.org"}
    locked = next(p for p in tomllib.loads(text)["package"] if p["name"] == "corpusveil")["metadata"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    named = set(project["project"]["dependencies"]).union(*project["project"]["optional-dependencies"].values())
    assert {_name(d) for d in named} == {d["name"] for d in locked["requires-dist"]}
    assert {_name(d) for d in project["dependency-groups"]["dev"]} == {d["name"] for d in locked["requires-dev"]["dev"]}
    for dependency in locked["requires-dist"]:
        if "editable" in dependency:  # a member of the workspace is locked as it stands there
            continue
        wanted = next(re.sub(r"^[\w-]+(\[\w+\])?|;.*", "", d) for d in named if _name(d) == dependency["name"])
        assert set(dependency.get("specifier", "").split(",")) == set(wanted.replace(" ", "").split(","))


def _name(dependency: str) -> str:
    found = re.match(r"[\w-]+", dependency)
    assert found
    return found.group()


@pytest.mark.parametrize("turn", range(4))
def test_the_tests_of_a_file_run_in_one_process(turn: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Each process would make spaces, keys and a Spark session of its own."""
    own = tmp_path_factory.getbasetemp()
    with ((own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "processes").open("a+") as file:
        file.write(f"{os.getpid()}\n")
        file.seek(0)
        assert set(file.read().split()) == {str(os.getpid())}


def test_every_benchmark_attack_reader_and_script_can_be_imported() -> None:
    """They run outside the tests, so that a name that moved would be noticed only by whoever runs them."""
    folders = ("benchmarks", "attacks", "fuzz", "scripts")
    paths = [path for folder in folders for path in sorted((ROOT / folder).glob("*.py"))]
    names = [f"{path.parent.name}.{path.stem}" for path in paths if path.stem not in NEED_A_GROUP]
    program = f"import importlib\nfor name in {names}: importlib.import_module(name)"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert len(names) > 20
    assert done.returncode == 0, done.stderr


def test_privatizing_depends_on_two_thirds_of_what_it_did() -> None:
    """What ``corpusveil privatize`` imports on local processes with JSON lines, and what that imports: 24,000 lines, of
    which passages take 1,400."""
    graph = grimp.build_graph("corpusveil", exclude_type_checking_imports=True)
    waiting = [f"corpusveil.{name}" for name in ("cli.main", "cli.privatize", "jobs.local", "storage.forms.jsonlines")]
    reached: set[str] = set()
    while waiting:
        module = waiting.pop()
        if module not in reached:
            reached.add(module)
            waiting += graph.find_modules_directly_imported_by(module)
    files = [ROOT / Path(*module.split(".")) for module in reached]
    sources = [path.with_suffix(".py") if path.with_suffix(".py").exists() else path / "__init__.py" for path in files]
    assert len(reached) > 100, "the graph is there"
    assert sum(len(path.read_text().splitlines()) for path in sources) <= 24_000
    for outside in ("collocations.training", "spaces.build"):
        assert f"corpusveil.{outside}" in graph.modules
        assert f"corpusveil.{outside}" not in reached


def test_a_local_has_the_name_of_what_it_is() -> None:
    """Not ``told``, ``found`` or ``one``, which in this package were once bound in 87 files, and meant 87 things."""
    bound = {
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in (ROOT / "corpusveil").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in EMPTY_NAMES)
        or (isinstance(node, ast.arg) and node.arg in EMPTY_NAMES)
    }
    assert not bound, "these say nothing: name the thing"


def test_a_type_means_one_thing() -> None:
    """No two classes or aliases of the package share a name."""
    places: dict[str, list[str]] = {}
    for path in (ROOT / "corpusveil").rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            named = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
            is_alias = isinstance(named, ast.Name) and re.fullmatch("[A-Z][a-z][A-Za-z0-9]*", named.id)
            name = named.id if is_alias else node.name if isinstance(node, ast.ClassDef) else "_"
            if not name.startswith("_"):
                places.setdefault(name, []).append(str(path.relative_to(ROOT)))
    assert len(places) > 200, "types are found"
    assert not {name: some for name, some in places.items() if len(some) > 1}


def prose() -> Iterator[tuple[str, str]]:
    """Yield every docstring and page, without code."""
    for path in [*(ROOT / "corpusveil").rglob("*.py"), *(ROOT / "evaluate" / "corpusveil_evaluate").rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Expr)
                and isinstance(node.value, ast.Constant)
                and isinstance(node.value.value, str)
            ):
                yield f"{path.relative_to(ROOT)}:{node.lineno}", CODE.sub("", node.value.value)
    for path in [*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")]:
        if path.name != "CHANGELOG.md":  # which is history
            yield path.name, re.sub(r"^```.*?^```$|`[^`\n]*`", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)


def test_docstrings_and_pages_avoid_the_worst_english() -> None:
    assert all(WORST.search(bad) for bad in ("zeros stand behind", "a blank span is none", "so many bytes", "is .4%"))
    assert not any(WORST.search(good) for good in ("if there are none", "so many that", "0.4%", "ε = .4", "it is None"))
    places = {place: words for place, text in prose() if (words := WORST.findall(text))}
    assert places == {}


def messages() -> Iterator[tuple[str, str]]:
    """Yield every text of several words in code, but for lists of words that are data."""
    for path in {*(ROOT / "corpusveil").rglob("*.py")} - {ROOT / "corpusveil" / "recognizers" / "cues.py"}:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
                yield f"{path.relative_to(ROOT)}:{node.lineno}", CODE.sub("", node.value)


def test_one_spelling_the_american_in_docstrings_messages_and_pages() -> None:
    """But for names that a promise keeps, such as the codes and classes of errors."""
    for bad in ("An artefact", "behaviour", "neighbours", "centred", "a licence", "tokenises", "realised", "labelled"):
        assert BRITISH.search(bad), bad
    for good in ("missing-file", "behavior", "a promise", "advertise", "labels", "a premise", "central", "license"):
        assert not BRITISH.search(good), good
    places = [*prose(), *messages()]
    others = {"data-protection.md"}  # a page that stays as it was approved
    assert {place: words for place, text in places if place not in others and (words := BRITISH.findall(text))} == {}

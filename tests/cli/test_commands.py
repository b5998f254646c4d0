"""What each command says, and with which status it ends."""

from __future__ import annotations

import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import typer

import corpusveil
from corpusveil.cli import main
from corpusveil.cli.main import ADDED
from tests.calls import command, fails, succeeds
from tests.engines.corpora import Ground, manifest, rows, write_corpus, write_shard


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_corpus(tmp_path / "in", [rows(20, number) for number in range(2)])


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home and a configuration folder that are the test's own."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return tmp_path / "home"


@pytest.fixture
def call(ground: Ground, source: Path, tmp_path: Path) -> list[str]:
    """Return an ordinary privatize."""
    return ground.arguments(source, tmp_path / "out")


def test_commands_of_another_package_join_and_without_it_the_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("evaluate.study", "greet"):
        monkeypatch.setitem(ADDED.entered, name, lambda: typer.echo("here"))
        assert succeeds(*name.split(".")).out == "here\n"
    assert "\n  greet " in succeeds("--help").out
    monkeypatch.undo()
    monkeypatch.setattr("corpusveil.registry.points", lambda _: {})
    assert "denoise" not in succeeds("--help").out
    for words in ("evaluate study --list", "evaluate release a", "audit", "denoise a --help", "model --help"):
        fails(words.split(), "missing-package", "pip install 'corpusveil[evaluate]'")


class TestKey:
    def test_is_not_made_for_what_is_refused(self, call: list[str], home: Path) -> None:
        """What promises nothing is one rule for Python and here, and it is asked before a key is made."""
        words = changed(call, "--mechanism", "custext-per-word")
        fails(changed(words, "--key", None), "wrong-setting", "custext-per-word")
        assert not home.exists()
        assert "No guarantee holds" in succeeds(*words, "--accept-no-guarantee").out

    def test_that_is_not_named_is_made_named_and_found_again(
        self, call: list[str], tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """In the configuration folder, also one that is set; each output has its own."""
        made = succeeds(*changed(call, "--key", None))
        first = made.err
        (key,) = (home / ".config" / "corpusveil" / "keys").glob("*.key")
        assert str(key) in first
        assert made.out.splitlines()[-1].endswith(f": {key}"), "where it is seen last"
        assert stat.S_IMODE(key.stat().st_mode) == 0o600
        secret = key.read_bytes()
        assert len(secret) == 32
        assert f"No key was given: {key} is this output's key" in succeeds(*changed(call, "--key", None)).err
        assert key.read_bytes() == secret
        assert manifest(tmp_path / "out")["key_fingerprint"] == corpusveil.Key(secret).fingerprint()
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "set"))
        succeeds(*changed(changed(call, "--output", str(tmp_path / "other")), "--key", None))
        assert len(list((tmp_path / "set" / "corpusveil" / "keys").glob("*.key"))) == 1
        assert manifest(tmp_path / "other")["key_fingerprint"] != manifest(tmp_path / "out")["key_fingerprint"]

    def test_of_an_output_is_not_that_of_another_corpus_at_its_place(
        self, call: list[str], tmp_path: Path, home: Path
    ) -> None:
        """Another input, or another name of the corpus; the first corpus has its own key again."""
        given = Path(call[1])
        other = shutil.copytree(given, given.with_name("other"))
        fingerprints = []
        for words in (call, [call[0], str(other), *call[2:]], [*call, "--corpus", "b"], call):
            succeeds(*changed(words, "--key", None))
            fingerprints.append(manifest(tmp_path / "out")["key_fingerprint"])
            for made in tmp_path.glob("out*"):
                made.unlink() if made.is_file() else shutil.rmtree(made)
        assert fingerprints[0] == fingerprints[3]
        assert len(set(fingerprints)) == 3
        listed = succeeds("key", "list").out
        assert all(f"made for {tmp_path}/out, from {path}\n" in listed for path in (given, other))

    def test_is_shown_as_an_environment_variable_holds_it_with_a_warning(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        succeeds("key", "new", tmp_path / "a.key")
        key = corpusveil.Key.load(tmp_path / "a.key")
        shown = succeeds("key", "show", tmp_path / "a.key", "--hex")
        assert shown.err.startswith("warning: ")
        monkeypatch.setenv("CORPUSVEIL_KEY", shown.out)
        assert corpusveil.Key.from_environment("CORPUSVEIL_KEY") == key
        shown = succeeds("key", "show", tmp_path / "a.key")
        assert key.fingerprint() in shown.out
        assert key.secret.hex() not in shown.out + shown.err

    def test_for_tests_marks_all_that_it_touches_and_one_s_own_marks_nothing(
        self, call: list[str], tmp_path: Path
    ) -> None:
        assert succeeds(*changed(call, "--key", None), "--test-key").err.startswith("NOT PRIVATE")
        assert (tmp_path / "out" / "manifest.json").read_text().splitlines()[1].startswith(' "warning": "NOT PRIVATE')
        assert "NOT PRIVATE" not in succeeds(*changed(call, "--output", str(tmp_path / "own"))).err
        assert "NOT PRIVATE" not in (tmp_path / "own" / "manifest.json").read_text()


def changed(arguments: list[str], option: str, value: str | None) -> list[str]:
    at = arguments.index(option) if option in arguments else len(arguments)
    return arguments[:at] + ([] if value is None else [option, value]) + arguments[at + 2 :]


class TestWhatIsPrinted:
    def test_is_what_is_disclosed_the_digest_and_the_records(self, call: list[str], tmp_path: Path) -> None:
        """With the guarantee in full, of which transforms/test_release.py compares every line."""
        out, made = succeeds(*call, "--explain").out, manifest(tmp_path / "out")
        shown = *made["guarantee_in_words"], made["content_sha256"], f"{tmp_path / 'out'}.records"
        assert all(said in out for said in shown)

    @pytest.mark.parametrize("bad", ["column", "line", "package"])
    def test_is_no_promise_of_a_run_that_the_first_rows_stop(
        self, bad: str, ground: Ground, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Nothing is announced, no shard is counted as failed, and nothing is left in the way of the next run."""
        more = {"column": ("--text", "body"), "package": ("--engine", "spark")}.get(bad, ())
        if bad == "line":
            source = write_shard(tmp_path / "damaged" / "a.jsonl", [{"text": "a"}, {"text": 1}])
        monkeypatch.setitem(sys.modules, "pyspark.sql", None)
        words = changed(ground.arguments(source, tmp_path / "out", *more), "--progress", "lines")
        fails(words, "missing-package" if bad == "package" else "unsuitable-data")
        ended = command(*words)
        assert (ended.out, ended.err.count("\n")) == ("", 1)
        assert not (tmp_path / "out.records").exists()


HELP = """
import sys, corpusveil
assert not [name for name in sys.modules if name.startswith("corpusveil.")]
from corpusveil.cli.main import COMMANDS, run
for words in (["--help"], ["--version"], *([name, "--help"] for name in COMMANDS)):
    assert run(words) == 0
print("LOADED", *sys.modules)
"""


def test_the_package_alone_and_help_load_no_library_that_they_do_not_show() -> None:
    """The control: a command that does something loads them."""
    named = "numpy scipy pandas pyarrow numba pyspark apache_beam gensim rich asyncio ssl"
    slow = set(named.split())
    call = [sys.executable, "-c", HELP]
    for more, loaded in (("", set[str]()), ("run(['mechanisms'])\nprint('LOADED', *sys.modules)", {"numpy", "numba"})):
        done = subprocess.run([*call[:-1], HELP + more], capture_output=True, text=True, check=True)
        assert loaded <= slow & set(done.stdout.rpartition("LOADED ")[2].split()) <= (slow if loaded else set())


@pytest.mark.parametrize("name", [name for name in main.COMMANDS if name != "evaluate"])
def test_help_names_the_default_of_each_option(name: str) -> None:
    """Help is read one option at a time. Flags are off, and ``run --init`` is an act of its own."""
    made = main.command(name)
    for each in getattr(made, "commands", {name: made}).values():
        options = [option for option in each.params if not getattr(option, "is_flag", True) and option.name != "init"]
        shown = [" ".join(option.get_help_record(typer.Context(each))) for option in options]
        assert not [line for line in shown if not re.search(r"[Dd]efault: |\[required\]", line)]

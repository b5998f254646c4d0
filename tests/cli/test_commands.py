"""What each command says, and with which status it ends."""

from __future__ import annotations

import json
import math
import os
import random
import re
import stat
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer

import corpusveil
from corpusveil.cli import main
from corpusveil.cli.main import GROUP, run, split_arguments
from corpusveil.transforms.release.release import Release
from tests.contracts.spaces import small_space
from tests.engines.corpora import (
    TEST_KEY,
    WORDS,
    Ground,
    data_files,
    manifest,
    read_shard,
    rows,
    text_of,
    write_corpus,
    write_shard,
)
from tests.engines.corpora import run as run_process

COMMANDS = [
    " ".join([name, *sub])
    for name in main.COMMANDS
    for sub in ([[one] for one in getattr(main.command(name), "commands", ())] or [[]])
]


WORDS_COMMAND = '''"""``corpusveil words``: count to a number."""

def words(number: int) -> None:
    """Count."""
    print(*range(1, number + 1))
'''


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_corpus(tmp_path / "in", [rows(20, number) for number in range(2)])


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home and a configuration folder that are the test's own."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return tmp_path / "home"


def sentence(capsys: pytest.CaptureFixture[str]) -> str:
    """Return the one line that was said on standard error."""
    (line,) = capsys.readouterr().err.splitlines()
    assert "Traceback" not in line
    return str(line)


class TestHelp:
    @pytest.mark.parametrize("command", COMMANDS)
    def test_of_a_command_has_an_example_of_it(self, command: str, capsys: pytest.CaptureFixture[str]) -> None:
        assert run([*command.split(), "--help"]) == 0
        assert f"Example: corpusveil {command} " in " ".join(capsys.readouterr().out.split())

    def test_names_a_command_as_soon_as_there_is_its_file(self, tmp_path: Path) -> None:
        """And the command runs: it is in no list."""
        (tmp_path / "words.py").write_text(WORDS_COMMAND)
        code = (
            f"import corpusveil.cli as cli\ncli.__path__.append({str(tmp_path)!r})\nfrom corpusveil.cli.main import run"
        )
        done = subprocess.run(
            [sys.executable, "-c", f"{code}\nrun(['--help'])\nrun(['words', '5'])"], capture_output=True, text=True,
            check=True,
        )  # fmt: skip
        assert re.search(r"^ *words +Count to a number\.$", done.stdout, re.MULTILINE)
        assert done.stdout.endswith("1 2 3 4 5\n")

    def test_of_privatize_names_every_option_of_the_interface(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["privatize", "--help"]) == 0
        told = capsys.readouterr().out
        for option in (
            "--space", "--output", "--mechanism", "--epsilon", "--per", "--engine", "--text", "--id", "--keep", "--key",
            "--test-key", "--records", "--workers", "--master", "--runner", "--accept-no-guarantee", "--progress",
        ):  # fmt: skip
            assert option in told, option

    def test_the_version_is_told(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["--version"]) == 0
        assert capsys.readouterr().out == f"corpusveil {corpusveil.__version__}\n"

    @pytest.mark.parametrize(
        ("missing", "remedy"), [("--space", "--space demo"), ("--mechanism", "--mechanism ring-geometric")]
    )
    def test_an_option_that_a_new_user_cannot_know_comes_with_a_value(
        self, missing: str, remedy: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        given = ["--space", "s"] if missing == "--mechanism" else []
        assert run(["privatize", "in", *given]) == 2
        told = capsys.readouterr().err
        assert f"Missing option '{missing}'" in told
        assert remedy in told

    def test_a_command_of_another_package_joins_its_group_and_without_it_the_package_is_named(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        point = metadata.EntryPoint("evaluate.study", "builtins:dict", GROUP)
        monkeypatch.setattr(metadata, "entry_points", lambda *, group: [point] if group == GROUP else [])
        monkeypatch.setattr(metadata.EntryPoint, "load", lambda _: lambda: typer.echo("here"))
        assert run(["evaluate", "study"]) == 0
        assert capsys.readouterr().out == "here\n"
        monkeypatch.setattr(metadata, "entry_points", lambda **_: [])
        for rest in (["--list"], ["1-diffractor", "--quick", "--output", "x"]):
            assert run(["evaluate", "study", *rest]) == 2
            assert "pip install corpusveil-studies. [missing-package]" in capsys.readouterr().err

    def test_the_command_line_is_parted_at_two_dashes(self) -> None:
        assert split_arguments(["a", "--debug", "--", "--x", "--debug"]) == (["a"], ["--x", "--debug"], True)
        assert split_arguments(["a"]) == (["a"], [], False)


class TestCompletion:
    @pytest.mark.parametrize(
        ("typed", "offered"),
        [
            ("corpusveil priv", ["privatize"]),
            ("corpusveil evaluate s", ["study"]),
            ("corpusveil preview --ep", ["--epsilon"]),
            ("corpusveil privatize --engine be", ["beam"]),
            ("corpusveil privatize --per ", ["token", "document"]),
            ("corpusveil privatize --mechanism ring", ["ring-geometric"]),
        ],
    )
    def test_offers_what_there_is(
        self, typed: str, offered: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """As a shell asks: commands, options, and the names that an option may be."""
        monkeypatch.setenv("_CORPUSVEIL_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", typed)
        monkeypatch.setenv("COMP_CWORD", str(len(typed.split(" ")) - 1))
        with pytest.raises(SystemExit) as ended:
            run([])
        assert ended.value.code == 0
        assert capsys.readouterr().out.split() == offered

    def test_is_written_for_a_shell(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        monkeypatch.setattr("shellingham.detect_shell", lambda: ("bash", "/bin/bash"))
        with pytest.raises(SystemExit):
            run(["--show-completion"])
        assert "complete -o default -F _corpusveil_completion corpusveil" in capsys.readouterr().out


class TestMechanisms:
    def test_are_listed_after_which_to_take(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("COLUMNS", "200")
        assert run(["mechanisms"]) == 0
        told = capsys.readouterr().out
        assert told.startswith("Which to take:\n  ring-geometric")
        assert set(corpusveil.mechanism_names()) <= set(told.split())

    def test_are_explained(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["mechanisms", "ring-geometric"]) == 0
        told = capsys.readouterr().out
        assert "paper:" in told
        assert "parameters:" in told

    @pytest.mark.parametrize("epsilons", [(), (2.5,), (0.5, 7.0)], ids=str)
    def test_say_at_which_epsilon_a_guarantee_is(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], epsilons: tuple[float, ...]
    ) -> None:
        """At those that are named, else at 1: it was that of the table's last one, 50, which the page did not say."""
        options = [word for epsilon in epsilons for word in ("--epsilon", str(epsilon))]
        space = small_space(20).save(str(tmp_path / "space"))
        assert run(["mechanisms", "tem", "--space", str(tmp_path / "space"), *options]) == 0
        told = capsys.readouterr().out
        assert "known words unchanged" in told
        mechanism = corpusveil.mechanism("tem", space)
        parts = told.split("\nguarantee at epsilon ")[1:]
        assert [part.partition(":")[0] for part in parts] == [f"{epsilon:g}" for epsilon in epsilons or (1.0,)]
        for part, epsilon in zip(parts, epsilons or (1.0,), strict=True):
            guarantee, words = mechanism.guarantee(epsilon), " ".join(part.split())
            assert f"epsilon {epsilon:g} a token distance {guarantee.metric}" in words
            assert all(line in words for line in (*guarantee.disclosed, *guarantee.assumptions, *guarantee.notes))

    @pytest.mark.parametrize(
        ("name", "said"), [("custext-per-word", "No guarantee: custext-per-word"), ("truncated-gumbel", "is defined only above")]
    )
    def test_say_where_there_is_none(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, said: str
    ) -> None:
        """Of one that promises nothing, and of one that is not defined at that epsilon."""
        small_space(20).save(tmp_path / "space")
        large = ["--epsilon", "100000", "--epsilon", "0.001"] if name == "truncated-gumbel" else []
        assert run(["mechanisms", name, "--space", str(tmp_path / "space"), *large]) == 0
        assert said in capsys.readouterr().out.rpartition("guarantee at epsilon")[2]

    def test_have_a_nearest_name(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["mechanisms", "ring-geometrik"]) == 2
        assert "did you mean ring-geometric?" in sentence(capsys)


class TestKey:
    def test_is_32_bytes_for_its_owner_alone(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        path = tmp_path / "deep" / "a.key"
        assert run(["key", "new", str(path)]) == 0
        assert len(path.read_bytes()) == 32
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        told = capsys.readouterr()
        assert path.read_bytes().hex() not in told.out + told.err
        assert corpusveil.Key.load(path).fingerprint() in told.out

    def test_that_others_may_read_is_refused(
        self, ground: Ground, source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        arguments = ground.arguments(source, tmp_path / "out")
        key = tmp_path / "mine.key"
        corpusveil.Key(TEST_KEY).save(key)
        key.chmod(0o644)
        assert run(changed(arguments, "--key", str(key))) == 2
        assert f"chmod 600 {key}" in sentence(capsys)
        assert not (tmp_path / "out").exists()

    def test_is_not_made_for_what_is_refused(
        self, ground: Ground, source: Path, tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """What promises nothing is one rule for Python and here, and it is asked before a key is made."""
        arguments = changed(ground.arguments(source, tmp_path / "out"), "--mechanism", "custext-per-word")
        at = arguments.index("--key")
        without = [*arguments[:at], *arguments[at + 2 :]]
        assert run(without) == 2
        assert "custext-per-word has no guarantee" in sentence(capsys)
        assert not home.exists()
        assert run([*arguments, "--accept-no-guarantee"]) == 0
        assert "No guarantee holds" in capsys.readouterr().out

    def test_is_known_before_the_release_is_built_and_checked_once(
        self, ground: Ground, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """No release has a key that stands in for another."""
        built = []
        check = Release.__post_init__
        monkeypatch.setattr(Release, "__post_init__", lambda release: (built.append(release.key), check(release)))
        assert run([*without_key(ground.arguments(source, tmp_path / "out")), "--no-page"]) == 0
        (key,) = built
        assert manifest(tmp_path / "out")["key_fingerprint"] == key.fingerprint()

    def test_is_never_overwritten(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (tmp_path / "a.key").touch(mode=0o600)
        (tmp_path / "a.key").write_bytes(TEST_KEY)
        assert run(["key", "new", str(tmp_path / "a.key")]) == 2
        assert "never overwritten" in sentence(capsys)
        assert (tmp_path / "a.key").read_bytes() == TEST_KEY

    @pytest.mark.parametrize(
        ("content", "said"),
        [
            (TEST_KEY[:31], "has 31"),
            (TEST_KEY + b"x", "has 33"),
            (b"", "has 0"),
            (b"correct horse battery staple!!!!", "passphrase"),
            (bytes(32), "passphrase"),
        ],
        ids=["short", "long", "empty", "passphrase", "zeros"],
    )
    def test_of_another_kind_is_refused(
        self,
        ground: Ground,
        source: Path,
        tmp_path: Path,
        capsys: pytest.CaptureFixture[str],
        content: bytes,
        said: str,
    ) -> None:
        (tmp_path / "bad.key").write_bytes(content)
        assert run([*ground.arguments(source, tmp_path / "out"), "--key", str(tmp_path / "bad.key")]) == 2
        told = sentence(capsys)
        assert str(tmp_path / "bad.key") in told
        assert said in told
        assert not content or content.decode("latin-1") not in told
        assert not (tmp_path / "out").exists()

    def test_that_is_not_named_is_made_named_and_found_again(
        self, ground: Ground, source: Path, tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        arguments = without_key(ground.arguments(source, tmp_path / "out"))
        assert run(arguments) == 0
        first = sentence(capsys)
        (key,) = (home / ".config" / "corpusveil" / "keys").iterdir()
        assert str(key) in first
        assert stat.S_IMODE(key.stat().st_mode) == 0o600
        secret = key.read_bytes()
        assert len(secret) == 32
        assert run(arguments) == 0
        assert sentence(capsys) == first
        assert key.read_bytes() == secret
        assert manifest(tmp_path / "out")["key_fingerprint"] == corpusveil.Key(secret).fingerprint()

    def test_is_another_for_another_output(self, ground: Ground, source: Path, tmp_path: Path, home: Path) -> None:
        for name in ("one", "two"):
            assert run(without_key(ground.arguments(source, tmp_path / name))) == 0
        assert manifest(tmp_path / "one")["key_fingerprint"] != manifest(tmp_path / "two")["key_fingerprint"]

    def test_is_made_in_the_configuration_folder_that_is_set(
        self, ground: Ground, source: Path, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "set"))
        assert run(without_key(ground.arguments(source, tmp_path / "out"))) == 0
        assert len(list((tmp_path / "set" / "corpusveil" / "keys").iterdir())) == 1
        assert not home.exists()

    def test_for_tests_marks_all_that_it_touches(
        self, ground: Ground, source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run([*without_key(ground.arguments(source, tmp_path / "out")), "--test-key"]) == 0
        assert sentence(capsys).startswith("NOT PRIVATE")
        assert (tmp_path / "out" / "manifest.json").read_text().splitlines()[1].startswith(' "warning": "NOT PRIVATE')

    def test_of_ones_own_marks_nothing(self, ground: Ground, source: Path, tmp_path: Path) -> None:
        assert run(ground.arguments(source, tmp_path / "out")) == 0
        assert "NOT PRIVATE" not in (tmp_path / "out" / "manifest.json").read_text()


def without_key(arguments: list[str]) -> list[str]:
    at = arguments.index("--key")
    return arguments[:at] + arguments[at + 2 :]


def changed(arguments: list[str], option: str, value: str | None) -> list[str]:
    at = arguments.index(option)
    return arguments[:at] + ([] if value is None else [option, value]) + arguments[at + 2 :]


class TestAWrongCall:
    """Ends with status 2 and one sentence that names what is wrong, before anything is written."""

    @pytest.mark.parametrize(
        ("option", "value", "said"),
        [
            ("--epsilon", "nan", "epsilon"),
            ("--epsilon", "-1", "epsilon"),
            ("--epsilon", "0", "epsilon"),
            ("--epsilon", "inf", "epsilon"),
            ("--epsilon", "one", "epsilon"),
            ("--epsilon", None, "epsilon"),
            ("--mechanism", "ring-geometrc", "did you mean ring-geometric?"),
            ("--mechanism", "something", "'corpusveil mechanisms' lists"),
            ("--space", "nowhere/space", "nowhere/space"),
            ("--key", "nowhere.key", "no such key file"),
            ("--progress", "loud", "loud"),
        ],
    )
    def test_in_an_option(
        self,
        ground: Ground,
        source: Path,
        tmp_path: Path,
        capsys: pytest.CaptureFixture[str],
        option: str,
        value: str | None,
        said: str,
    ) -> None:
        assert run(changed(ground.arguments(source, tmp_path / "out"), option, value)) == 2
        told = capsys.readouterr()
        assert said in told.err.splitlines()[-1]
        assert "Traceback" not in told.err
        assert told.out == ""
        assert not (tmp_path / "out").exists()

    @pytest.mark.parametrize(
        ("more", "said"),
        [
            (("--epsilonn", "1"), "--epsilonn"),
            (("--engine", "flink"), "flink"),
            (("--master", "local[2]"), "--master: this option needs --engine connect or spark"),
            (("--", "--some_option=1"), "--engine beam"),
            (("--test-key",), "exclude each other"),
            (("--engine", "beam", "--runner", "DaskRunner"), "DaskRunner"),
            (("--workers", "0"), "workers"),
            (("--rows-per-task", "1000"), "8192"),
            (("--unknown-words", "privatize"), "unknown_words"),
            (("--numbers", "hide"), "hide"),
            (("--per", "corpus"), "corpus"),
        ],
    )
    def test_in_what_is_added(
        self, ground: Ground, source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], more: Any, said: str
    ) -> None:
        assert run(ground.arguments(source, tmp_path / "out", *more)) == 2
        told = capsys.readouterr().err
        assert said in told.splitlines()[-1]
        assert "Traceback" not in told
        assert not (tmp_path / "out").exists()

    def test_in_a_name_of_a_command(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["privatise"]) == 2
        assert "privatise" in capsys.readouterr().err.splitlines()[-1]

    def test_with_debug_shows_where(self, ground: Ground, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["--debug", *ground.arguments(tmp_path / "missing", tmp_path / "out")]) == 2
        told = capsys.readouterr().err
        assert "Traceback" in told
        assert told.splitlines()[-1].startswith(f"corpusveil: {tmp_path}/missing: this matches no file")

    def test_ends_a_process_as_it_ends_here(self, ground: Ground, tmp_path: Path) -> None:
        told = run_process(*ground.arguments(tmp_path / "missing", tmp_path / "out"), home=tmp_path)
        assert (told.returncode, told.stderr.count("\n")) == (2, 1)


class TestTheWorkFailed:
    def test_with_status_1_and_a_sentence(
        self,
        ground: Ground,
        source: Path,
        tmp_path: Path,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        def full(*_: object) -> None:
            raise OSError(28, os.strerror(28))

        monkeypatch.setattr("os.fsync", full)
        assert run(ground.arguments(source, tmp_path / "out")) == 1
        assert "No space left on device" in sentence(capsys)


class TestWhatIsPrinted:
    def retention(self, capsys: pytest.CaptureFixture[str]) -> float:
        found = re.search(r"share of known words that are unchanged: ([\d.]+)%", capsys.readouterr().out)
        assert found
        return float(found.group(1)) / 100

    @pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
    def test_is_the_share_that_stays(
        self, ground: Ground, source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], epsilon: float
    ) -> None:
        assert run(changed(ground.arguments(source, tmp_path / "out"), "--epsilon", str(epsilon))) == 0
        assert self.retention(capsys) == pytest.approx(math.tanh(epsilon / 2), abs=0.002)

    def test_is_a_warning_when_nearly_all_stays(
        self, ground: Ground, source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run(changed(ground.arguments(source, tmp_path / "out"), "--epsilon", "10")) == 0
        assert sentence(capsys) == "warning: at epsilon 10 nearly all known words are unchanged."

    def test_is_the_share_by_length_for_a_budget_per_document(
        self, ground: Ground, source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run(ground.arguments(source, tmp_path / "out", "--per", "document")) == 0
        said = "share of known words that are unchanged, by the words of a document: .* of 10, .* of 1000"
        assert re.search(said, capsys.readouterr().out)

    def test_is_what_is_promised_what_is_disclosed_and_the_digest(
        self, ground: Ground, source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run([*ground.arguments(source, tmp_path / "out"), "--explain"]) == 0
        told = capsys.readouterr().out
        for line in manifest(tmp_path / "out")["guarantee_in_words"]:
            assert f"- {line}" in told
        assert "Disclosed: how many tokens" in told
        assert f"content sha256 {manifest(tmp_path / 'out')['content_sha256']}" in told
        assert f"{tmp_path / 'out'}.records" in told

    @pytest.mark.parametrize("bad", ["input", "output", "cap"])
    def test_is_nothing_but_the_error_of_a_release_that_is_refused(
        self, bad: str, ground: Ground, source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """An error comes before announcements: they would bury it."""
        if bad == "output":
            (tmp_path / "out" / "data").mkdir(parents=True)
            (tmp_path / "out" / "data" / "part-00000-of-00001.jsonl").write_text("{}")
        cap = (
            ("--ledger", str(tmp_path / "ledger"), "--unit", "content", "--cap", "0.1", "--cap-ldp", "9")
            if bad == "cap"
            else ()
        )
        assert run(ground.arguments(tmp_path / "none" if bad == "input" else source, tmp_path / "out", *cap)) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith("corpusveil: ")

    @pytest.mark.parametrize("bad", ["column", "id", "line", "archive", "csv", "parquet", "package"])
    def test_is_no_promise_of_a_run_that_the_first_rows_stop(
        self, bad: str, ground: Ground, source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:  # fmt: skip
        """Nothing is announced, no shard is counted as failed, and nothing is left in the way of the next run."""
        damaged = {
            "line": ("a.jsonl", b'{"text": "a"}\n{"text": 1}\n'), "archive": ("a.jsonl.gz", b"\x1f\x8b\x08\x00"),
            "csv": ("a.csv", b'text\n"never closed\n'), "parquet": ("a.parquet", b"PAR1"),
        }  # fmt: skip
        more: tuple[str, ...] = {"column": ("--text", "body"), "id": ("--id", "nobody")}.get(bad, ())
        if bad in damaged:
            source = tmp_path / "damaged"
            source.mkdir()
            (source / damaged[bad][0]).write_bytes(damaged[bad][1])
        if bad == "package":
            monkeypatch.setitem(sys.modules, "pyspark.sql", None)
            more = ("--engine", "spark")
        assert run(changed(ground.arguments(source, tmp_path / "out", *more), "--progress", "lines")) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert len(err.splitlines()) == 1
        assert err.endswith("[missing-package]\n" if bad == "package" else "[bad-shards]\n")
        assert ("(1 more shard cannot be used.)" in err) == (bad in ("column", "id"))
        assert not (tmp_path / "out.records").exists()

    def test_is_the_promise_before_a_fault_far_in_the_corpus(
        self, ground: Ground, source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """The look is at the first shard alone, so that a run on 100,000 shards begins at once."""
        (source / "zz.json.gz").write_bytes(b"\x1f\x8b\x08\x00")
        assert run(ground.arguments(source, tmp_path / "out")) == 2
        assert "Guarantee: " in capsys.readouterr().out

    def test_is_that_a_finished_release_was_finished(
        self, ground: Ground, source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        said = []
        for _ in range(2):
            assert run(ground.arguments(source, tmp_path / "out")) == 0
            said.append(capsys.readouterr().out)
        assert [" finished this release (2 shards, 40 documents, " in told for told in said] == [False, True]

    @pytest.mark.parametrize("per", ["token", "document"])
    def test_is_two_sentences_unless_asked(
        self, per: str, ground: Ground, source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Prints the guarantee and the disclosures; the conditions are in the manifest."""
        assert run(ground.arguments(source, tmp_path / "out", "--per", per)) == 0
        told = capsys.readouterr().out.splitlines()
        assert [line for line in told if line.startswith("- ")] == []
        (promised,) = (line for line in told if line.startswith("Guarantee: "))
        assert "nats" in promised
        assert any("guarantee_in_words" in line for line in told)

    @pytest.mark.parametrize("explain", [(), ("--explain",)])
    def test_has_the_figure_that_was_asked_for(
        self, explain: tuple[str, ...], ground: Ground, source: Path, tmp_path: Path,
        capsys: pytest.CaptureFixture[str],
    ) -> None:  # fmt: skip
        """A call with a delta prints its meaning once, without ``--explain``."""
        assert run([*ground.arguments(source, tmp_path / "out", "--delta", "1e-6"), *explain]) == 0
        assert capsys.readouterr().out.count("(epsilon, delta) of documents at delta = 1e-06") == 1

    def test_is_why_there_is_no_guarantee(
        self, ground: Ground, source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Without one, nothing is left for --explain."""
        arguments = [str(word) for word in ground.arguments(source, tmp_path / "out")]
        arguments[arguments.index("--mechanism") + 1] = "custext-per-word"
        assert run([*arguments, "--accept-no-guarantee"]) == 0
        told = capsys.readouterr().out
        assert "- No guarantee holds: " in told
        assert "Guarantee: " not in told

    def test_is_progress_in_lines_where_no_terminal_is(
        self, ground: Ground, source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run(changed(ground.arguments(source, tmp_path / "out"), "--progress", "lines")) == 0
        assert re.match(r"2 of 2 shards, [\d,]+ tokens", sentence(capsys))


@pytest.fixture(scope="module")
def unchanged(ground: Ground, tmp_path_factory: pytest.TempPathFactory) -> dict[float, tuple[int, int]]:
    folder = tmp_path_factory.mktemp("retention")
    rng = random.Random(4)
    write_shard(folder / "in" / "a.json.gz", [{"text": text_of(rng, 100)} for _ in range(3000)])
    found = {}
    for epsilon in (1.0, 0.95):
        output = folder / str(epsilon)
        assert run(changed(ground.arguments(folder / "in", output), "--epsilon", str(epsilon))) == 0
        totals = json.loads((folder / f"{epsilon}.records" / "totals.json").read_text())
        found[epsilon] = (totals["unchanged"], totals["privatized"])
    return found


class TestRetention:
    """As many words come back as the mathematics says, and at another epsilon another number of them."""

    @staticmethod
    def deviation(found: tuple[int, int], epsilon: float) -> float:
        share = math.tanh(epsilon / 2)
        return (found[0] - share * found[1]) / math.sqrt(found[1] * share * (1 - share))

    @pytest.mark.parametrize("epsilon", [1.0, 0.95])
    def test_is_tanh_of_half_epsilon(self, unchanged: dict[float, tuple[int, int]], epsilon: float) -> None:
        assert unchanged[epsilon][1] > 200_000
        assert abs(self.deviation(unchanged[epsilon], epsilon)) < 5

    def test_is_not_that_of_another_epsilon(self, unchanged: dict[float, tuple[int, int]]) -> None:
        assert abs(self.deviation(unchanged[0.95], 1.0)) > 10
        assert abs(self.deviation(unchanged[1.0], 0.95)) > 10


class TestSpace:
    def vectors(self, folder: Path) -> Path:
        rng = np.random.default_rng(0)
        lines = [" ".join([word, *(f"{value:.4f}" for value in rng.standard_normal(4))]) for word in WORDS[:50]]
        (folder / "vectors.txt").write_text("\n".join(lines) + "\n")
        return folder / "vectors.txt"

    def test_is_built_and_used(
        self, source: Path, ground: Ground, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run(["space", "--vectors", str(self.vectors(tmp_path)), "--output", str(tmp_path / "space")]) == 0
        told = capsys.readouterr().out
        assert "50 words, 4 dimensions, 1 list" in told
        assert corpusveil.load_space(str(tmp_path / "space")).digest in told
        assert run(changed(ground.arguments(source, tmp_path / "out"), "--space", str(tmp_path / "space"))) == 0
        words = {word for path in data_files(tmp_path / "out") for word in read_words(path)}
        assert words <= {*WORDS[:50], "contact"}

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (["--vectors", "nowhere.txt", "--output", "x"], "nowhere.txt"),
            (["--output", "x"], "--vectors"),
            (["--vectors", "v", "--output", "x", "--lists", "-1"], "lists"),
            (["--vectors", "v", "--output", "x", "--order", "random"], "order"),
        ],
    )
    def test_is_refused(self, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["space", *arguments]) == 2
        assert said in capsys.readouterr().err.splitlines()[-1]


def read_words(path: Path) -> set[str]:
    return {word for row in read_shard(path) for word in re.findall(r"[a-z]+", row["text"])}


def test_an_interruption_has_a_status_of_its_own(
    ground: Ground, source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("corpusveil.transforms.release.corpus.Run.privatize", interrupt)
    assert run(ground.arguments(source, tmp_path / "out")) == 130
    assert "run the same command again" in capsys.readouterr().err.splitlines()[-1]

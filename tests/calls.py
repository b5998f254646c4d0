"""Calls that a test makes, and how they are refused: by code and by what the sentence names, not by its wording."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from corpusveil import errors
from corpusveil.cli.main import run
from corpusveil.errors import CorpusveilError, WorkError
from corpusveil.pipelines.settings.toml import value_of
from corpusveil.storage.corpus import CorpusIn, CorpusOut
from corpusveil.storage.engine import Engine, Here
from corpusveil.text.tokens import Tokens
from corpusveil.transforms.release.corpus import Outcome, Run
from corpusveil.transforms.release.keyed_release import AnyRelease

QUIET = ("--progress", "none")
OF_CODE: dict[str, type[CorpusveilError]] = {
    kind.code: kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, CorpusveilError) and "code" in vars(kind)
}


def texts_of(tokens: Tokens, document: int = 0) -> list[str]:
    """Return the tokens of a document."""
    return [tokens.text(token) for token in range(tokens.offsets[document], tokens.offsets[document + 1])]


@dataclass(frozen=True)
class Halting(Here):
    """An engine that does some tasks and then fails, as one that was killed between two tasks."""

    tasks: int

    def run(self, function: Callable[[Any], Any], tasks: Sequence[Any]) -> None:
        super().run(function, tasks[: self.tasks])
        raise WorkError("halted")


@dataclass(frozen=True)
class Ended:
    """How a command line ended, and what it wrote."""

    status: int
    out: str
    err: str


def command(*words: object) -> Ended:
    """Run a command line in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = run([str(word) for word in words])
    return Ended(status, out.getvalue(), err.getvalue())


def succeeds(*words: object) -> Ended:
    """Run a command line that has to end well."""
    ended = command(*words)
    assert ended.status == 0, ended.err
    return ended


def fails(words: Sequence[object], code: str, *names: object) -> str:
    """Run a command line that has to end with an error of this code; return its sentence, in which every name is."""
    ended = command(*words)
    sentence = ended.err.splitlines()[-1] if ended.err else ""
    assert sentence.endswith(f" [{code}]"), ended
    assert ended.status == OF_CODE[code].exit_status, ended
    assert all(str(name) in sentence for name in names), (sentence, names)
    assert "Traceback" not in ended.err
    return sentence


@contextlib.contextmanager
def refused(code: str, *names: object) -> Iterator[pytest.ExceptionInfo[CorpusveilError]]:
    """Expect an error of this code, whose sentence has every name."""
    with pytest.raises(OF_CODE[code]) as caught:
        yield caught
    assert caught.value.code == code
    sentence = str(caught.value)
    assert all(str(name) in sentence for name in names), (sentence, names)


def save(path: Path, values: dict[str, dict[str, Any]]) -> str:
    """Write settings as a TOML file; return its path."""
    lines = []
    for section, keys in values.items():
        lines += [f"[{section}]", *(f"{name} = {value_of(value)}" for name, value in keys.items())]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def privatize_corpus(
    release: AnyRelease, inputs: Sequence[str], output: str, engine: Engine, **settings: Any
) -> Outcome:  # fmt: skip
    """Privatize a corpus once; ``settings`` are fields of ``CorpusIn``, ``CorpusOut`` and ``Run``."""
    given = {"name" if name == "corpus" else name: value for name, value in settings.items() if value is not None}
    parts = [
        {name: given.pop(name) for name in list(given) if name in kind.__dataclass_fields__}
        for kind in (CorpusIn, CorpusOut)
    ]
    return Run(release, CorpusIn(inputs, **parts[0]), CorpusOut(output, **parts[1]), **given).privatize(engine)

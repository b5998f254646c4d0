"""Every error that the package raises has a code, which stays, is documented, and survives a way between processes."""

from __future__ import annotations

import ast
import pickle
from collections.abc import Iterator
from pathlib import Path

from corpusveil import errors
from corpusveil.errors import DataError, bad_shards
from scripts import error_codes

ROOT = Path(__file__).parents[2]
BASES = {"CorpusveilError", "UserError"}
"""To be caught, and in this package never to be raised: another one's engine or mechanism may."""


def made_without_code(source: str) -> Iterator[int]:
    """Yield the lines of a module on which an error is made that has no code."""
    for node in ast.walk(ast.parse(source)):
        made = node.func if isinstance(node, ast.Call) else node.exc if isinstance(node, ast.Raise) else None
        if isinstance(made, ast.Name | ast.Attribute) and ast.unparse(made).rpartition(".")[2] in BASES:
            yield node.lineno  # type: ignore[attr-defined]


class TestTheCodes:
    def test_every_error_that_the_package_makes_has_one(self) -> None:
        found = [
            f"{path.relative_to(ROOT)}:{line}: choose a class of corpusveil/errors.py that has a code"
            for path in sorted((ROOT / "corpusveil").rglob("*.py"))
            for line in made_without_code(path.read_text())
        ]
        assert found == []

    def test_one_without_would_be_seen(self) -> None:
        """The control."""
        for line in ("raise UserError('x')", "found = errors.UserError('x')", "raise UserError"):
            assert list(made_without_code(f"import errors\n{line}\n")) == [2], line

    def test_each_class_has_its_own(self) -> None:
        """Who catches a code catches one kind of error."""
        coded = list(error_codes.coded())
        assert len({kind.code for kind in coded}) == len(coded)
        kinds = {name for name, kind in vars(errors).items() if isinstance(kind, type)}
        assert kinds - {kind.__name__ for kind in coded} == {"CorpusveilError"}

    def test_the_page_says_what_there_is(self) -> None:
        """Written by ``scripts/error_codes.py``: a code that goes or changes is seen in the page's difference."""
        assert error_codes.page() == (ROOT / "docs" / "errors.md").read_text()


class TestTheWay:
    def test_between_processes(self) -> None:
        """Class, sentence and code arrive as they were raised."""
        for kind in error_codes.coded():
            came = pickle.loads(pickle.dumps(kind("in/c.csv: this is damaged.")))
            assert (type(came), str(came), came.code) == (kind, "in/c.csv: this is damaged.", kind.code)
        assert pickle.loads(pickle.dumps(bad_shards({3: "a."}))).sentences == {3: "a."}

    def test_out_of_an_engine_s_traceback(self) -> None:
        """Another library's error of the same name may quote a document, and is not told."""
        text = "\n".join([
            "Traceback (most recent call last):",
            "pandas.errors.DataError: private text",
            "DataError: private text",
            f"{DataError.__module__}.DataError: There are no texts.",
        ])  # fmt: skip
        assert errors.sentences_in(text) == ["There are no texts."]

"""Every public name has an example that runs, on small data: what people copy from ``help()`` works."""

from __future__ import annotations

import doctest
import inspect
import re
from typing import Any

import pytest

import corpusveil as cv
from scripts.public_names import tasks
from tests.contracts.spaces import small_space

PUBLIC = """The supreme court of New York met in New York, and the river was cold.
My sister flew from New York to the lake, and the bread there was warm.
The room was clean and quiet, but the breakfast in New York was cold.
"""
WORDS = sorted(set(re.findall("[a-z]+", PUBLIC.lower() + "works as a nurse please refund my payment")))
REVIEWS = """id,text,stars
1,The room was clean and quiet.,4
2,Breakfast was cold.,2
3,Please refund my payment.,1
"""
NAMES = [name for names in tasks().values() for name in names]
NAMES += sorted({*cv.__all__} - {*NAMES, "__version__"})  # mechanisms of other packages


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the package's own lines make, with a small space instead of a large one."""
    folder = tmp_path_factory.mktemp("examples")
    (folder / "public.txt").write_text(PUBLIC * 2)
    (folder / "reviews.csv").write_text(REVIEWS)
    (folder / "glove.txt").write_text("".join(f"{word} {len(word)} {at}\n" for at, word in enumerate(WORDS)))
    small = small_space(words=WORDS, counts=range(len(WORDS), 0, -1)).save(folder / "space")
    made: dict[str, Any] = {"folder": folder}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cv, "load_space", lambda _: small)
        lines = doctest.DocTestParser().get_examples(str(cv.__doc__))
        exec("".join(line.source for line in lines), made)
    return made


def test_an_example_of_each_public_name_runs(names: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """One after the other, in one folder, each on the names that all begin with."""
    monkeypatch.chdir(names["folder"])
    for name in NAMES:
        example = doctest.DocTestParser().get_doctest(
            inspect.getdoc(getattr(cv, name)) or "", dict(names), name, None, None
        )
        said: list[str] = []
        assert example.examples, f"help() of {name} shows a line to copy"
        result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(example, out=said.append)
        assert not result.failed, "".join(said)

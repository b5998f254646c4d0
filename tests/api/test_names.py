"""``import corpusveil as cv``: mechanisms are classes, editors know every name, and nothing is imported early."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import corpusveil as cv
from corpusveil.mechanisms import registry
from scripts import public_names

ROOT = Path(__file__).parents[2]

EVALUATED = """
[collocations]
input = ["public.txt"]
counts = "counts"
[evaluate]
original = "in"
private = "out"
path = "report"
"""
WITHOUT = """
import sys
from importlib import metadata
sys.path = [folder for folder in sys.path if not folder.endswith("/evaluate")]
of_all = metadata.entry_points
metadata.entry_points = lambda **of: [p for p in of_all(**of) if "evaluate" not in p.value] if of else of_all()
import corpusveil as cv
from corpusveil.cli.main import run
assert "evaluate_release" not in dir(cv) and "TruncatedGumbel" not in dir(cv) and "SanText" in dir(cv)
space = cv.load_space("en")
made = [lambda name=name: cv.mechanism(name, space) for name in ("truncated-gumbel", "tight-exponential")]
for call in (lambda: cv.evaluate_release, lambda: cv.reader_ladder, *made):
    try:
        call()
    except cv.UserError as error:
        assert error.code == "missing-package" and "pip install 'corpusveil[evaluate]'" in str(error), error
    else:
        raise AssertionError
"""


class TestMechanisms:
    def test_a_mechanism_is_a_class(self, space: cv.Space) -> None:
        """The class and the name from a configuration make equal values."""
        assert cv.RingGeometric(space, gamma=18) == cv.mechanism("ring-geometric", space, gamma=18)
        assert cv.SanText(space).guarantee(1.0).holds

    @pytest.mark.parametrize("name", cv.mechanism_names())
    def test_each_is_there_by_its_class(self, name: str) -> None:
        cls = registry.find(name)
        assert getattr(cv, cls.__name__) is cls
        assert cls.__name__ in dir(cv)


class TestNames:
    def test_every_name_is_there_and_no_other(self) -> None:
        assert all(getattr(cv, name) is not None for name in dir(cv) if not name.startswith("_"))
        for name in ("RingGeometrc", "_secret"):
            with pytest.raises(AttributeError, match=f"has no attribute '{name}'"):
                getattr(cv, name)
        names: dict[str, Any] = {}
        exec("from corpusveil import *", names)
        assert {"privatize", "RingGeometric", "Local", "__version__"} <= set(names)

    def test_without_the_evaluation_its_names_are_refused_by_how_to_install_it(self, tmp_path: Path) -> None:
        """Functions, mechanisms and the step of a file, which is refused before the steps that come first."""
        (tmp_path / "run.toml").write_text(EVALUATED)
        (tmp_path / "public.txt").write_text("the river was cold\n")
        code = WITHOUT + f"assert run(['run', {str(tmp_path / 'run.toml')!r}]) == 2\n"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert done.stderr.endswith("pip install 'corpusveil[evaluate]'. [missing-package]\n")
        assert not (tmp_path / "counts").exists()

    def test_the_stub_is_what_there_is(self) -> None:
        """``make lint`` writes it; type checkers and editors read nothing else."""
        assert public_names.stub() == (ROOT / "corpusveil" / "__init__.pyi").read_text()

    def test_engines_load_no_engine(self) -> None:
        """``cv.Spark()`` and ``cv.Beam()`` are values; what they run on is imported when they run."""
        code = "import corpusveil as cv, sys\ncv.Spark(), cv.Beam(), cv.Local(workers=2)\n"
        code += "print({'pyspark', 'apache_beam'} & set(sys.modules))"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
        assert done.stdout.strip() == "set()"

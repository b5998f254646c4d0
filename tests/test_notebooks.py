"""The notebooks: what they show was made by their own cells, and they run from the first cell to the last."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.engines.corpora import HANG_SECONDS

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

"""The documentation's Python examples run unchanged, each in its own process or namespace."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pytest

import corpusveil as cv
from corpusveil.spaces.vectors import Vectors

ROOT = Path(__file__).parents[1]
LINE = "the river lake is cold warm bread and cheese good bad wine water fine one another document"
WORDS = LINE.split()
SENTENCE = "another fine document and the river is warm"
KEY = cv.Key(bytes(range(100, 132)))


def blocks(document: str, kind: str = "python") -> list[str]:
    """Return the examples of a document in a language."""
    return re.findall(rf"^```{kind}\n(.*?)^```$", (ROOT / document).read_text(), re.MULTILINE | re.DOTALL)


def title(example: str) -> str:
    """Name an example after what it imports."""
    found: list[str] = re.findall(r"^(?:import|from) ([\w.]+)", example, re.MULTILINE)
    return " ".join(name for name in found if not name.startswith("corpusveil")) or "corpusveil"


OTHERS = "ray|dask"
"""Engines that are not installed beside the tests."""
SLOW = "word_risk|evaluate_release"
"""What reads with a whole language model: at night."""
STARTS, EXAMPLES = {}, []
for page in ("docs/frames.md", "docs/files.md", "docs/left-out.md"):
    STARTS[page], *others = blocks(page)
    EXAMPLES += [(page, one) for one in others]
STARTS["docs/evaluation.md"] = ""
EXAMPLES += [("docs/evaluation.md", one) for one in blocks("docs/evaluation.md")]
START = STARTS["docs/frames.md"]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with what the examples name: a space of words that they use."""
    random = np.random.default_rng(2)
    vectors = Vectors(WORDS, random.standard_normal((len(WORDS), 4)).astype(np.float32))
    counts = 1 + np.arange(len(WORDS)) % 7
    for name in ("glove", "german"):
        cv.build_space(vectors, counts=counts).save(str(tmp_path / "spaces" / name))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return tmp_path


def run_here(program: str, **names: Any) -> dict[str, Any]:
    names["__name__"] = "example"
    exec(compile(program, "example", "exec"), names)
    return names


def run_apart(program: str, place: Path) -> None:
    """Run an example in a process of its own, since a process has one Spark."""
    paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": paths, "SPARK_TESTING": "1"}  # a Connect server on any free port
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=place, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("page", "example"), [
    pytest.param(*one, marks=[pytest.mark.nightly] * bool(re.search(SLOW, one[1]))) for one in EXAMPLES
    if not re.search(f"pyspark|import ({OTHERS})", one[1])
], ids=title)  # fmt: skip
def test_an_example_runs(page: str, example: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each goes on from the first lines of its page, and from nothing that another one made."""
    assert re.search("assert|print", example), "an example shows something"
    run_here(STARTS[page] + example)
    assert ("print" not in example) == (capsys.readouterr().out == "")


@pytest.mark.nightly
@pytest.mark.spark
@pytest.mark.parametrize("number", range(2))
def test_an_example_with_spark_runs(number: int, place: Path) -> None:
    """Of a frame, and of SQL: each starts a Java of its own."""
    run_apart(START + [example for _, example in EXAMPLES if "pyspark" in example][number], place)


@pytest.mark.engines
@pytest.mark.parametrize("engine", OTHERS.split("|"))
def test_an_example_of_another_engine_gives_the_bytes_of_a_frame_by_words_and_by_passages(
    engine: str, place: Path
) -> None:
    pytest.importorskip(engine, reason=f"{engine} is not installed: make engines installs ray, and pip the others")
    (example,) = (one for _, one in EXAMPLES if re.search(f"^import {engine}", one, re.MULTILINE))
    run_apart(f"{START}{example}\nrelease = cv.release(store='en', epsilon=10, key=key)\n{example}", place)


@pytest.mark.parametrize("number", [0, pytest.param(1, marks=pytest.mark.spark)])
@pytest.mark.nightly
def test_a_program_of_streaming_runs(number: int, place: Path) -> None:
    """Its asserts hold: of Beam, and of Spark's structured streaming."""
    KEY.save("release.key")
    program = blocks("docs/streaming.md")[number]
    assert "assert" in program
    run_apart(program, place)
    assert number or len(list(Path("private").glob("*.jsonl"))) == 4


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.engines
def test_the_declarative_pipeline_of_streaming_runs(place: Path) -> None:
    """By ``spark-pipelines run``, twice: files that came meanwhile are added, and each text is that of a table."""
    KEY.save("release.key")
    *_, definitions = blocks("docs/streaming.md")
    (spec,) = blocks("docs/streaming.md", "yaml")
    (place / "spark-pipeline.yaml").write_text(spec.replace("file:///srv/reviews/state", (place / "state").as_uri()))
    (place / "definitions").mkdir()
    (place / "definitions" / "private.py").write_text(definitions)
    (place / "incoming").mkdir()
    rows = [{"review_id": str(number), "customer_id": number % 2, "review": SENTENCE} for number in range(6)]
    scripts, said = sysconfig.get_path("scripts"), ""
    for number, more in enumerate(((), (), ("--full-refresh", "private_reviews"))):
        some = "".join(f"{json.dumps(row)}\n" for row in rows[3 * number : 3 * number + 3])
        (place / "incoming" / f"{number}.json").write_text(some)
        done = subprocess.run(
            [f"{scripts}/spark-pipelines", "run", "--conf", "spark.sql.catalogImplementation=hive", *more],
            cwd=place, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
            env={**os.environ, "PATH": f"{scripts}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        assert done.returncode == 0, done.stdout
        said += done.stdout
    release = cv.Release(
        cv.RingGeometric(cv.load_space("spaces/glove")), cv.Budget(1.0), cv.TextPolicy(), key=cv.Key.load("release.key")
    )
    keep = ["review_id", "customer_id"]
    expected = cv.privatize(pa.Table.from_pylist(rows), release, "review_id", "review", keep=keep)
    tables = {path.name: pa.dataset.dataset(list(map(str, path.glob("*.parquet")))).to_table()
              for path in (place / "spark-warehouse").iterdir()}  # fmt: skip
    assert tables["private_reviews"].sort_by("review_id").to_pylist() == expected.to_pylist()
    assert tables["reviews_by_customer"].sort_by("customer_id")["count"].to_pylist() == [3, 3]
    assert set(tables) == {"private_reviews", "reviews_by_customer"}
    left = b"".join(path.read_bytes() for folder in ("state", "spark-warehouse")
                    for path in (place / folder).rglob("*") if path.is_file()) + said.encode()  # fmt: skip
    key = cv.Key.load("release.key").secret
    assert left
    assert not any(secret in left for secret in (SENTENCE.encode(), key, key.hex().encode(), base64.b64encode(key)))


def test_figures_of_the_readme_are_those_of_the_page_of_figures() -> None:
    page, readme = (ROOT / "docs/evaluation-figures.md").read_text(), (ROOT / "README.md").read_text()
    at_10 = r"(?:[^|]+\|){2} ([\d.]+)"
    (found,) = re.findall(
        rf"originals\s+has ([\d.]+); the most frequent service has ([\d.]+)\.\n.*^\| `en`, ([\d,]+) \|{at_10}"
        rf".*^\| 500 of their own kind \|{at_10}.*^\| words at risk 0.5, .* \| ([\d.]+); ([\d.]+) \| "
        r".*labels has ([\d.]+) ",
        page, re.DOTALL | re.MULTILINE,
    )  # fmt: skip
    originals, guessing, pieces, *others, labels = found
    assert pieces == f"{len(cv.load_store('en')):,}"
    (row,) = re.findall(r"^\| \*\*accuracy\*\*.*$", readme, re.MULTILINE)
    assert re.findall(r"\d\.\d+", row) == [f"{float(one):.2f}" for one in (originals, guessing, *others)]
    assert f"labeled public texts, you need no release: from them, a classifier reaches {float(labels):.2f}" in readme

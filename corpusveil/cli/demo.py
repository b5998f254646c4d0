"""``corpusveil demo``: the whole flow on text that the dependencies ship."""

from __future__ import annotations

import importlib.util
import shutil
import sys
import time
from pathlib import Path
from typing import Annotated

import orjson
import pyarrow.compute as pc
import pyarrow.parquet as pq
import typer
from isal import igzip

from corpusveil.budget import Budget
from corpusveil.collocations.connectors import connector_words
from corpusveil.collocations.count import CountOptions, count_corpus
from corpusveil.collocations.measures import Scoring
from corpusveil.collocations.score import score_counts
from corpusveil.collocations.table import Collocations, load_collocations
from corpusveil.collocations.tokenize import tokenize_corpus
from corpusveil.collocations.training import train_vectors
from corpusveil.collocations.word2vec import Training
from corpusveil.errors import UserError
from corpusveil.evaluation.bundled import public_texts
from corpusveil.evaluation.matching import match
from corpusveil.evaluation.question import Question
from corpusveil.evaluation.release import evaluate_release
from corpusveil.evaluation.report import write_report
from corpusveil.jobs.java import java_home
from corpusveil.mechanisms import make
from corpusveil.pipelines.local import LocalEngine
from corpusveil.sampling.keys import Key
from corpusveil.spaces import Space, build_space, read_vectors
from corpusveil.spaces.improve import neighbors
from corpusveil.text.policy import TextPolicy
from corpusveil.transforms.corpus import Engine, Outcome, privatize_corpus
from corpusveil.transforms.identities import RowNumbers
from corpusveil.transforms.manifest import read_manifest
from corpusveil.transforms.release import Release
from corpusveil.transforms.table import privatize

MARK = ".corpusveil-demo"
PUBLIC_SHARDS = 4
PRIVATE_SHARDS = 2
FREQUENT = 10
TOP = 8
SAMPLES = 6
EPSILONS = (0.5, 1.0, 3.0)
SHOWN = 320
TRIED = (0.5, 1.0, 3.0, 6.0)
TOLD = ("words unchanged", "words guessed from context", "similarity of meaning", "one unknown word recovered")


def demo(
    output: Annotated[
        str, typer.Option(help="A folder for everything; an earlier demo's is replaced.")
    ] = "demo-output",
) -> None:
    """Find collocations in bundled public text, train vectors, build a list, privatize documents on every engine here.

    Example: corpusveil demo --output demo-output
    """
    folder = _fresh(Path(output))
    report = _Report()
    public = write_public(folder / "public")
    report.step("Public text: news and encyclopedia articles that gensim ships")
    space, table = build(public, folder, report)
    _collocations(space, folder, report)
    inputs = write_shards(folder / "input")
    report.step(f"Private text: {PRIVATE_SHARDS} shards of C4's form, {folder / 'input'}")
    key = Key.generate()
    key.save(folder / "release.key")
    release = release_at(1.0, space, key, table)
    report("\nThe guarantee:")
    for line in release.guarantee().notes:
        report(f"  - {line}")
    outcomes = {}
    for name, engine in engines().items():
        outcomes[name] = privatize_corpus(release, inputs, str(folder / f"private-{name}"), engine)
        report.step(f"Privatized on the {name} engine: {folder / f'private-{name}'}")
    _compare(outcomes, report)
    _evaluate(inputs, folder, Question(epsilons=TRIED, seeds=2, space=space, collocations=table, keys=(key,)), report)
    _before_after(inputs[0], folder / "private-local", space, key, table, report)
    report.save(folder / "report.txt")
    print(f"\nEverything is in {folder.absolute()}:")
    print("  report.txt, evaluation/report.html        what is above, and what the release gives away: they show")
    print("                                            original text, so both are private")
    print("  private-*/data, private-*/manifest.json   the releases (these two are what may be published)")
    print("  private-*.records, release.key, input     private: keep or destroy, never publish")


class _Report:
    """Prints what was done, found and made, and keeps it for a file."""

    def __init__(self) -> None:
        self._last = time.monotonic()
        self._lines: list[str] = []

    def __call__(self, line: str = "") -> None:
        print(line, flush=True)
        self._lines.append(line)

    def step(self, sentence: str) -> None:
        """Say what was done and how long it took."""
        now = time.monotonic()
        self(f"[{now - self._last:5.1f} s] {sentence}")
        self._last = now

    def save(self, path: Path) -> None:
        """Write everything that was said."""
        path.write_text("\n".join(self._lines) + "\n", encoding="utf-8")


def _fresh(folder: Path) -> Path:
    """Return an empty folder; only an earlier demo's is emptied."""
    if folder.exists() and any(folder.iterdir()):
        if not (folder / MARK).exists():
            raise UserError(f"{folder}: this folder is not empty and not an earlier demo's; name another --output.")
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARK).touch()
    return folder


def write_public(folder: Path) -> list[str]:
    """Write the public documents as shards; return their paths."""
    folder.mkdir()
    texts = list(public_texts())
    paths = []
    for shard in range(PUBLIC_SHARDS):
        path = folder / f"public.{shard:05d}-of-{PUBLIC_SHARDS:05d}.json.gz"
        with igzip.open(path, "wb") as out:
            out.writelines(orjson.dumps({"text": text}) + b"\n" for text in texts[shard::PUBLIC_SHARDS])
        paths.append(str(path))
    return paths


def build(public: list[str], folder: Path, report: _Report) -> tuple[Space, Collocations]:
    """Count n-grams, score them, join the public text's words to collocations, train on it, build a space."""
    engine = LocalEngine()
    parts = {name: str(folder / name) for name in ("counts", "collocations", "tokens", "vectors", "space")}
    counted = count_corpus(public, parts["counts"], engine, CountOptions(3, 3))
    report.step(
        f"Counts: {counted['ngrams']:,} n-grams of 1 to 3 words in {counted['words']:,} words, {parts['counts']}"
    )
    scored = score_counts(parts["counts"], parts["collocations"], engine, Scoring(connectors=connector_words()))
    found = sum(scored["collocations"].values())
    report.step(f"PMI: {found:,} collocations that score 2 and more, {parts['collocations']}")
    told = tokenize_corpus(public, parts["tokens"], engine, "gst", parts["collocations"])
    report.step(f"GST: {told['words']:,} words became {told['tokens']:,} tokens, {parts['tokens']}")
    train_vectors(parts["tokens"], parts["vectors"], engine, Training(dimensions=100, min_count=3, epochs=8, sg=1))
    report.step(f"word2vec: {parts['vectors']}")
    space = build_space(read_vectors(parts["vectors"])).save(parts["space"])
    report.step(f"Space: {len(space):,} words and collocations on one list, {parts['space']}")
    return space, load_collocations(parts["collocations"])


def release_at(epsilon: float, space: Space, key: Key, table: Collocations) -> Release:
    """Return the demonstration's release: words joined by GST, epsilon a unit."""
    return Release(make("ring-geometric", space), Budget(epsilon), TextPolicy(tokenizer="gst"), key, table)


def _collocations(space: Space, folder: Path, report: _Report) -> None:
    """Show what scored highest, and what stands near some collocations."""
    table = pq.read_table(folder / "collocations" / "collocations.parquet")
    frequent = table.filter(pc.greater_equal(table["count"], FREQUENT)).slice(0, TOP).to_pylist()
    report("\nHighest PMI: " + ", ".join(f"{row['ngram']} ({row['score']:.1f})" for row in frequent))
    joined = [id for id in range(len(space)) if "_" in space.word(id)][:SAMPLES]
    near = neighbors(space.vectors, 5)
    report("Nearest to some collocations:")
    for id in joined:
        report(f"  {space.word(id)}: {', '.join(space.word(int(other)) for other in near[id])}")
    report()


def write_shards(folder: Path) -> list[str]:
    """Write the documents to privatize as shards of C4's form; return their paths."""
    from gensim.test.utils import datapath

    folder.mkdir()
    with open(datapath("lee.cor"), encoding="cp1252") as file:
        texts = [line.strip() for line in file]
    paths = []
    for shard in range(PRIVATE_SHARDS):
        path = folder / f"news.{shard:05d}-of-{PRIVATE_SHARDS:05d}.json.gz"
        rows = [{"text": text, "url": f"news/{number}"} for number, text in enumerate(texts)]
        with igzip.open(path, "wb") as out:
            out.writelines(orjson.dumps(row) + b"\n" for row in rows[shard::PRIVATE_SHARDS])
        paths.append(str(path))
    return paths


def engines() -> dict[str, Engine]:
    """Return the engines that this machine can run."""
    found: dict[str, Engine] = {"local": LocalEngine()}
    if importlib.util.find_spec("pyspark") and java_home():
        from corpusveil.jobs.spark import SparkEngine

        found["spark"] = SparkEngine(workers=2)
    if importlib.util.find_spec("apache_beam"):
        from corpusveil.pipelines.beam import BeamEngine

        found["beam"] = BeamEngine()
    return found


def _compare(outcomes: dict[str, Outcome], report: _Report) -> None:
    digests = {outcome.content_sha256 for outcome in outcomes.values()}
    if len(digests) > 1:
        print("The engines wrote DIFFERENT bytes; this must not happen. Please report it.", file=sys.stderr)
        raise typer.Exit(1)
    report(f"\nSame bytes from {', '.join(outcomes)}: sha256 {digests.pop()}")


def _evaluate(inputs: list[str], folder: Path, question: Question, report: _Report) -> None:
    """Hold the release against its original, write the page, and say the figures that matter most."""
    released = str(folder / "private-local")
    found = evaluate_release(match(inputs, [released]), read_manifest(released), question)
    page = write_report(found, str(folder / "evaluation"))
    report.step(f"Evaluated: the release beside its original, and at other epsilons, {page}")
    for name in TOLD:
        for one in found.measures:
            if one.name == name and one.epsilon is None:
                of = f" ({one.of})" if one.of else ""
                report(f"  {name}{of}{f', {one.model}' if 'key' in one.model else ''}: {one}")


def _before_after(source: str, released: Path, space: Space, key: Key, table: Collocations, report: _Report) -> None:
    with igzip.open(source) as file:
        before = orjson.loads(file.readline())["text"]
    shard = min((released / "data").iterdir())
    with igzip.open(shard) as file:
        after = orjson.loads(file.readline())["text"]
    report(f"\nBefore:            {before[:SHOWN]}")
    for epsilon in EPSILONS:
        release = release_at(epsilon, space, key, table)
        text = after if epsilon == 1 else privatize([before], release, ids=RowNumbers("demo"))[0]
        report(f"After, epsilon {epsilon:g}: {text[:SHOWN]}")

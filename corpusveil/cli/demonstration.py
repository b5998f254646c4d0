"""The work of ``corpusveil demo``: the whole flow on text that the dependencies ship."""

from __future__ import annotations

import importlib.util
import shutil
import sys
import time
from pathlib import Path

import orjson
import pyarrow.compute as pc
import pyarrow.parquet as pq
import typer
from isal import igzip

from corpusveil.collocations.public_texts import public_texts
from corpusveil.errors import InUseError
from corpusveil.evaluation.matching import match
from corpusveil.evaluation.report.evaluate_release import evaluate_release
from corpusveil.evaluation.report.question import Question
from corpusveil.evaluation.report.release_page import write_report
from corpusveil.evaluation.statistics.statistic import find
from corpusveil.jobs.java import java_home
from corpusveil.language.denoise import NO_FACTS
from corpusveil.pipelines import collocations
from corpusveil.pipelines.denoise import run as denoise
from corpusveil.pipelines.model import build as build_model
from corpusveil.pipelines.privatize import announce, at_risk, mechanism_of, prepare, run
from corpusveil.pipelines.settings import Settings
from corpusveil.pipelines.space import build as build_space
from corpusveil.pipelines.watch import Watch
from corpusveil.sampling.keys import Key
from corpusveil.spaces import Space
from corpusveil.spaces.tour_improvement import neighbors
from corpusveil.transforms.release.corpus import Outcome
from corpusveil.transforms.release.manifest import read_manifest

MARK = ".corpusveil-demo"
PUBLIC_SHARDS = 4
PRIVATE_SHARDS = 2
FREQUENT = 10
TOP = 8
SAMPLES = 6
RISK = 0.5
"""The risk is that of context, because the release is denoised."""
SHOWN = 320
TRIED = (0.1, 0.5, 1.0, 3.0)
TOLD = ("words unchanged", "words guessed from context", "similarity of meaning", "one unknown word recovered")


def demonstrate(output: str) -> None:
    """Run the demo in a folder. Raises UserError if the folder contains anything but an earlier demo."""
    folder = _fresh(Path(output))
    report = _Report()
    public = write_public(folder / "public")
    report.step("Public text: news and encyclopedia articles that gensim ships")
    inputs = write_shards(folder / "input")
    Key.generate().save(folder / "release.key")
    settings = settings_of(folder, public, inputs)
    space = build(settings, report)
    _collocations(space, folder, report)
    report.step(f"Private text: {PRIVATE_SHARDS} shards in C4's format, {folder / 'input'}")
    risk = at_risk(settings, mechanism_of(settings))
    report.step(f"Epsilon {risk.epsilon:.4g} was chosen by risk, from the space and the language model alone")
    release = prepare(settings, Watch(), risk=risk).release
    announce(release, report)
    outcomes = {}
    for name in engines():
        output = str(folder / f"private-{name}")
        where = {"name": name, "workers": 2 if name == "spark" else None}
        outcomes[name] = run(settings.changed(output={"path": output}, engine=where), risk=risk)
        report.step(f"Privatized on the {name} engine: {output}")
    _compare(outcomes, report)
    made = denoise(settings)
    replaced = made.words - made.unchanged
    report.step(
        f"Denoised with the release and a public model alone: {replaced:,} of {made.words:,} words were replaced"
    )
    asked = Question.of(
        epsilons=TRIED,
        seeds=2,
        space=space,
        collocations=release.collocations,
        keys=(release.key,),
        counts=str(folder / "counts"),
    )
    _evaluate(inputs, folder, asked, report)
    report(f"\n{risk.sentence()}.")
    report(before_after(inputs[0], folder))
    report(NO_FACTS)
    report.save(folder / "report.txt")
    print(f"\nAll files are in {folder.absolute()}:")
    print("  report.txt, evaluation/report.html        this output, and what the release discloses; both show")
    print("                                            original text, so both are private")
    print("  private-*/data, private-*/manifest.json   the releases (only these two may be published)")
    print("  readable/data, readable/manifest.json     the denoised release; may be published, too")
    print("  private-*.records, release.key, input     private: keep or destroy, never publish")


class _Report(Watch):
    """Prints a report of the demo, and keeps it for a file."""

    def __init__(self) -> None:
        self._last = time.monotonic()
        self._lines: list[str] = []

    def __call__(self, line: str = "") -> None:
        print(line, flush=True)
        self._lines.append(line)

    say = warn = __call__

    def step(self, sentence: str) -> None:
        """Print a step and its duration."""
        now = time.monotonic()
        self(f"[{now - self._last:5.1f} s] {sentence}")
        self._last = now

    def save(self, path: Path) -> None:
        """Write everything that was printed."""
        path.write_text("\n".join(self._lines) + "\n", encoding="utf-8")


def _fresh(folder: Path) -> Path:
    """Return an empty folder; only an earlier demo's is emptied."""
    if folder.exists() and any(folder.iterdir()):
        if not (folder / MARK).exists():
            raise InUseError(f"{folder}: this folder has other contents than a demo; choose another --output.")
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


def settings_of(folder: Path, public: list[str], inputs: list[str]) -> Settings:
    """Return the demonstration's settings: words joined by GST, a balanced list, epsilon by risk."""
    made = ("counts", "collocations", "tokens", "vectors", "space", "model", "readable")
    at = {name: str(folder / name) for name in made}
    sections = {
        "collocations": {
            "input": public, "counts": at["counts"], "table": at["collocations"], "tokens": at["tokens"],
            "min_count": 3,
        },
        "embeddings": {"vectors": at["vectors"], "dimensions": 100, "min_count": 3, "epochs": 5, "alpha": 0.15},
        "model": {"path": at["model"]},
        "space": {"path": at["space"]},
        "corpus": {"input": inputs},
        "mechanism": {"name": "ring-geometric"},
        "budget": {"risk": RISK, "risk_of": "context"},
        "text": {"tokenizer": "gst", "collocations": at["collocations"]},
        "key": {"path": str(folder / "release.key")},
        "output": {"path": str(folder / "private-local")},
        "denoise": {"path": at["readable"]},
    }  # fmt: skip
    return Settings.model_validate(sections)


def build(settings: Settings, report: _Report) -> Space:
    """Count n-grams, score them, join the public text's words to collocations, train on it, build a space."""
    flow, quiet = settings.needed("collocations")[0], Watch()
    counted = collocations.count(settings, quiet)
    report.step(f"Counts: {counted['ngrams']:,} n-grams of 1 to 3 words in {counted['words']:,} words, {flow.counts}")
    found = sum(collocations.score(settings, quiet)["collocations"].values())
    report.step(f"PMI: {found:,} collocations with a score of 2 or more, {flow.table}")
    told = collocations.tokenize(settings, quiet)
    report.step(f"GST: {told['words']:,} words became {told['tokens']:,} tokens, {flow.tokens}")
    collocations.train(settings, quiet)
    report.step(f"word2vec: {settings.value('embeddings.vectors')}")
    space = build_space(settings, quiet)
    report.step(f"Space: {len(space):,} words and collocations on one balanced list, {settings.value('space.path')}")
    sizes = build_model(settings, quiet)
    report.step(f"Language model: {sizes['bigrams']:,} bigrams, {sizes['trigrams']:,} trigrams, {flow.counts}")
    return space


def _collocations(space: Space, folder: Path, report: _Report) -> None:
    """Show the collocations with the highest scores, and the words nearest to some of them."""
    table = pq.read_table(folder / "collocations" / "collocations.parquet")
    frequent = table.filter(pc.greater_equal(table["count"], FREQUENT)).slice(0, TOP).to_pylist()
    report("\nHighest PMI: " + ", ".join(f"{row['ngram']} ({row['score']:.1f})" for row in frequent))
    joined = [id for id in range(len(space)) if "_" in space.word(id)][:SAMPLES]
    near = neighbors(space.vectors, 5)
    report("Nearest words to some collocations:")
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


def engines() -> list[str]:
    """Return the engines that this machine can run."""
    found = ["local"]
    if importlib.util.find_spec("pyspark") and java_home():
        found.append("spark")
    if importlib.util.find_spec("apache_beam"):
        found.append("beam")
    return found


def _compare(outcomes: dict[str, Outcome], report: _Report) -> None:
    digests = {outcome.content_sha256 for outcome in outcomes.values()}
    if len(digests) > 1:
        print("The engines wrote DIFFERENT bytes. Please report this; it must not happen.", file=sys.stderr)
        raise typer.Exit(1)
    report(f"\nThe same bytes from {', '.join(outcomes)}: sha256 {digests.pop()}")


def _evaluate(inputs: list[str], folder: Path, question: Question, report: _Report) -> None:
    """Compare the release with its original, write the page, and print the most important figures."""
    released = str(folder / "private-local")
    found = evaluate_release(match(inputs, [released]), read_manifest(released), question)
    page = write_report(found, str(folder / "evaluation"))
    report.step(f"Evaluated: the release compared with its original, and other epsilons, {page}")
    for name in TOLD:
        for one in found.measures:
            if one.name == name and one.epsilon is None:
                of = f" ({words})" if (words := find(name).of) else ""
                report(f"  {name}{of}{f', {one.model}' if 'key' in one.model else ''}: {one}")


def before_after(source: str, folder: Path) -> str:
    """Return the same text: the original, as released, and denoised."""
    released = [str(min((folder / name / "data").iterdir())) for name in ("private-local", "readable")]
    texts = zip(("Before", "After", "Denoised"), (source, *released), strict=True)
    return "\n".join(f"{name + ':':10}{_first_text(shard)[:SHOWN]}" for name, shard in texts)


def _first_text(shard: str | Path) -> str:
    with igzip.open(shard) as file:
        text: str = orjson.loads(file.readline())["text"]
    return text

"""The work of ``corpusveil demo``: the whole flow on text that the dependencies ship."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import orjson
import typer
from isal import igzip

import corpusveil as cv
from corpusveil.collocations.collocation_table import load_collocations
from corpusveil.collocations.public_texts import of_gensim, public_texts
from corpusveil.errors import InUseError, PackageError
from corpusveil.jobs.java import java_home
from corpusveil.language.denoise import NO_FACTS
from corpusveil.pipelines.privatize import privatize
from corpusveil.pipelines.resolve import resolve
from corpusveil.pipelines.run import run
from corpusveil.pipelines.settings import needed, toml
from corpusveil.pipelines.watch import Watch
from corpusveil.sampling.keys import Key
from corpusveil.spaces import load_space
from corpusveil.transforms.release.manifest import read_manifest
from corpusveil.transforms.release.risk import risk_of

CONFIGURATION = Path(__file__).with_name("demo.toml")
MARK = ".corpusveil-demo"
PUBLIC_SHARDS = 4
PRIVATE_SHARDS = 2
HELD_OUT = 10
"""One public text in this many is not counted, for the risk."""
SHOWN = 320
TOLD = (
    "words unchanged", "content words guessed from context", "words guessed from context", "similarity of meaning",
    "one unknown word recovered",
)  # fmt: skip


def demonstrate(output: str) -> None:
    """Run the demo in a folder. Raises UserError if the folder contains anything but an earlier demo."""
    datapath = of_gensim("test.utils").datapath
    folder = _fresh(Path(output))
    report = _Report()
    texts = [{"text": text} for text in public_texts()]
    write_shards(folder / "held-out", 1, texts[::HELD_OUT])
    del texts[::HELD_OUT]
    write_shards(folder / "public", PUBLIC_SHARDS, texts)
    with open(datapath("lee.cor"), encoding="cp1252") as file:
        news = [{"text": line.strip(), "url": f"news/{number}"} for number, line in enumerate(file)]
    inputs = write_shards(folder / "input", PRIVATE_SHARDS, news)
    Key.generate().save(folder / "release.key")
    document = toml.read(shutil.copyfile(CONFIGURATION, folder / CONFIGURATION.name).as_posix())
    report.say(f"{document.file}: the whole flow, on public text and {len(news)} news articles that gensim ships")
    run(document, report)
    settings = document.settings
    manifest = read_manifest(needed(settings.output, "output").path)
    risk = risk_of(manifest)
    digests = {"local": manifest["content_sha256"]}
    for name in engines():
        where = {"name": name, "workers": 2 if name == "spark" else None}
        output = str(folder / f"private-{name}")
        again = resolve(settings.changed(output={"path": output}, engine=where), choose=lambda *_: risk)
        digests[name] = privatize(again).content_sha256
        report.say(f"Privatized on the {name} engine, too: {output}")
    if len(set(digests.values())) > 1:
        print("The engines wrote DIFFERENT bytes. Please report this; it must not happen.", file=sys.stderr)
        raise typer.Exit(1)
    report.say(f"\nThe same bytes from {', '.join(digests)}: sha256 {digests['local']}")
    _evaluate(folder, {
        "space": load_space(str(folder / "space")), "collocations": load_collocations(str(folder / "collocations")),
        "keys": (Key.load(folder / "release.key"),), "counts": folder / "counts", "seeds": 2,
    }, report)  # fmt: skip
    if risk is not None:
        report.say(f"\n{risk.sentence()}.")
    report.say(before_after(inputs[0], folder))
    report.say(NO_FACTS)
    report.save(folder / "report.txt")
    print(f"\nAll files are in {folder.absolute()}:")
    print("  demo.toml                                 the configuration")
    print("  report.txt, evaluation/report.html        this output, and what the release discloses; both show")
    print("                                            original text, so both are private")
    print("  private-*/data, private-*/manifest.json   the releases (only these two may be published)")
    print("  readable/data, readable/manifest.json     the denoised release; may be published, too")
    print("  private-*.records, release.key, input     private: keep or destroy, never publish")


class _Report(Watch):
    """Prints a report of the demo, and keeps it for a file."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def say(self, line: str) -> None:
        print(line, flush=True)
        self._lines.append(line)

    warn = say

    def save(self, path: Path) -> None:
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


def write_shards(folder: Path, shards: int, rows: Iterable[Mapping[str, str]]) -> list[str]:
    """Write documents as shards of C4's form; return their paths."""
    folder.mkdir()
    lines = [orjson.dumps(row) + b"\n" for row in rows]
    paths = [folder / f"{folder.name}.{shard:05d}-of-{shards:05d}.json.gz" for shard in range(shards)]
    for shard, path in enumerate(paths):
        with igzip.open(path, "wb") as out:
            out.writelines(lines[shard::shards])
    return [str(path) for path in paths]


def engines() -> list[str]:
    """Return the engines that this machine can run besides the local one."""
    there = []
    if importlib.util.find_spec("pyspark") and java_home():
        there.append("spark")
    if importlib.util.find_spec("apache_beam"):
        there.append("beam")
    return there


def _evaluate(folder: Path, asked: Mapping[str, Any], report: _Report) -> None:
    """Compare the release with its original, write the page, and print the most important figures."""
    try:
        findings = cv.evaluate_release(folder / "input", folder / "private-local", **asked)
    except PackageError as error:
        report.say(f"Not evaluated. {error}")
        return
    page = cv.write_report(findings, str(folder / "evaluation"))
    report.say(f"Evaluated: the release compared with its original, {page}")
    for line in findings.lines():
        if line.startswith(TOLD):
            report.say(f"  {line}")


def before_after(source: str, folder: Path) -> str:
    """Return the same text: the original, as released, and denoised."""
    released = [str(min((folder / name / "data").iterdir())) for name in ("private-local", "readable")]
    texts = zip(("Before", "After", "Denoised"), (source, *released), strict=True)
    return "\n".join(f"{name + ':':10}{_first_text(shard)[:SHOWN]}" for name, shard in texts)


def _first_text(shard: str | Path) -> str:
    with igzip.open(shard) as file:
        text: str = orjson.loads(file.readline())["text"]
    return text

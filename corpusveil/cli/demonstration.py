"""The work of ``corpusveil demo``: a release by each unit, and public artifacts, of text that the dependencies ship."""

from __future__ import annotations

import importlib.util
import re
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import orjson
import typer
from isal import igzip

from corpusveil.collocations.public_texts import of_gensim, public_texts
from corpusveil.errors import AddressError, PackageError
from corpusveil.jobs.java import java_home
from corpusveil.pipelines.privatize import privatize
from corpusveil.pipelines.resolve import resolve
from corpusveil.pipelines.run import run
from corpusveil.pipelines.settings import needed, toml
from corpusveil.pipelines.watch import Watch
from corpusveil.sampling.keys import Key
from corpusveil.transforms.release.manifest import read_manifest
from corpusveil.transforms.release.pages import Part, page_of, render
from corpusveil.transforms.release.promises import NO_AUTHOR
from corpusveil.transforms.release.risk import risk_of

SETTINGS = Path(__file__).with_name("demo_settings")
MARK = ".corpusveil-demo"
RULES = ("phonenumbers", "stdnum")
"""What the recognizer ``rules`` imports, of the extra ``spans``."""
PUBLIC_SHARDS = 4
PRIVATE_SHARDS = 2
SHOWN, TOLD = 20, 3
"""How many texts the page shows, and how many of them the terminal."""


def demonstrate(output: str) -> None:
    """Run the demo in a folder. Raises UserError if the folder contains anything but an earlier demo."""
    if not all(map(importlib.util.find_spec, RULES)):
        raise PackageError(
            "The demo masks phone numbers and the like by other packages: pip install 'corpusveil[spans]'."
        )
    rows = list(private_rows())
    folder = _fresh(Path(output))
    inputs = write_shards(folder / "input", PRIVATE_SHARDS, rows)
    write_shards(folder / "public", PUBLIC_SHARDS, ({"text": text} for text in public_texts()))
    Key.generate().save(folder / "release.key")
    for file in SETTINGS.iterdir():
        shutil.copyfile(file, folder / file.name)
    before = _texts(inputs)
    shown = [*before][:: max(1, len(before) // SHOWN)][:SHOWN]

    print(f"{len(rows)} public film reviews and news items serve as private texts: {folder / 'input'}")
    print("\nPassages: each text becomes a public passage near it, at 10 nats a text (passages.toml)")
    passages = _released(folder, "passages")
    _print_beside([before, passages], shown[1 : TOLD + 1])
    print(NO_AUTHOR)
    print("\nWords: each word becomes a word near it, at risk 0.5 (words.toml)")
    words = _released(folder, "words")
    _print_beside([before, words], shown[1 : TOLD + 1])
    risk = risk_of(read_manifest(str(folder / "words")))
    if risk is not None:
        print(f"{risk.sentence()}.")

    print("\nPublic artifacts from public text, as a cluster makes them from C4 (public.toml)")
    run(toml.read(str(folder / "public.toml")), _Printed())
    print("\nA store of your own public texts, and a release with it (own-store.toml)")
    run(toml.read(str(folder / "own-store.toml")), _Printed())
    own = _texts(_shards(folder / "passages-own-store"))
    _print_beside([before, own], shown[1 : TOLD + 1])
    page = folder / "index.html"
    heads = ("Before", "Passages", "Words", "Passages of an encyclopedia")
    notes = [NO_AUTHOR, KIND, *([] if risk is None else [f"{risk.sentence()}."])]
    beside = [[texts[id] for texts in (before, passages, words, own)] for id in shown]
    table = Part(f"{len(shown)} texts, before and after", notes, heads, beside)
    page.write_text(render("What corpusveil does to text", INTRODUCTION, [table, FILES]), encoding="utf-8")
    print(f"\nOpen {page.absolute()}: {len(shown)} texts before and after, and what may be published.")


KIND = "The last column is from a store of articles of an encyclopedia (own-store.toml), a kind of text unlike these."
INTRODUCTION = (
    "The texts are public: reviews and news that gensim ships. Had they been private, this page would be, too, since "
    "it shows them."
)
FILES = Part(
    "What may be published", heads=("Path", "What it is", "Publish?"), rows=[
        ("passages/, words/, passages-own-store/, and those of engines, as words-spark/",
         "releases: data, and a manifest that states the guarantee", "yes"),
        ("*.report.html", "a page that explains a release", "yes"),
        ("counts, collocations, tokens, vectors, space, store", "artifacts, made of public text alone", "yes"),
        ("passages.toml, words.toml, public.toml, own-store.toml", "settings: corpusveil run FILE does it again",
         "yes"),
        ("*.records/", "what runs resume from, and private counts", "never"),
        ("release.key", "lets its holder test guesses against a release", "never"),
        ("input/, this page", "the original texts", "never"),
        ("public/", "the public text that artifacts were made of", "if its license allows it"),
    ],
)  # fmt: skip


class _Printed(Watch):
    """Prints what each step made; digests are in the artifacts, and these texts need no warning: they are public."""

    def say(self, line: str) -> None:
        print(f"  {line.splitlines()[0]}", flush=True)


def private_rows() -> Iterable[dict[str, str]]:
    """Yield the rows that are privatized: film reviews, and the first sentences of news."""
    datapath = of_gensim("test.utils").datapath
    for number, line in enumerate(Path(datapath("pang_lee_polarity.cor")).read_text(encoding="cp1252").splitlines()):
        text = re.sub(r" (?=[.,;:!?)])|(?<=[(]) ", "", line.partition(" ")[2].strip())
        yield {"id": f"review-{number}", "text": text[:1].upper() + text[1:]}
    for number, line in enumerate(Path(datapath("lee.cor")).read_text(encoding="cp1252").splitlines()):
        yield {"id": f"news-{number}", "text": re.split(r"(?<=[.!?]) (?=[A-Z])", line.strip())[0]}


def _released(folder: Path, name: str) -> dict[str, str]:
    """Make a release on each engine of this machine; return the texts by id. Exits if the bytes differ."""
    settings = toml.read(str(folder / f"{name}.toml")).settings
    output = needed(settings.output, "output").path
    digests = {"local": privatize(resolve(settings)).content_sha256}
    for engine in engines():
        where = {"output": {"path": f"{output}-{engine}"}, "engine": {"name": engine}}
        again = resolve(settings.changed(**where))
        digests[engine] = privatize(again).content_sha256
    if len(set(digests.values())) > 1:
        print("The engines wrote DIFFERENT bytes. Please report this; it must not happen.", file=sys.stderr)
        raise typer.Exit(1)
    print(f"The same bytes from {', '.join(digests)}: sha256 {digests['local']}")
    print(f"Explained in {page_of(output)}", flush=True)
    return _texts(_shards(Path(output)))


def engines() -> list[str]:
    """Return the engines that this machine can run besides the local one."""
    there = []
    if importlib.util.find_spec("pyspark") and java_home():
        there.append("spark")
    if importlib.util.find_spec("apache_beam"):
        there.append("beam")
    return there


def _fresh(folder: Path) -> Path:
    """Return an empty folder; only an earlier demo's is emptied."""
    if folder.exists() and any(folder.iterdir()):
        if not (folder / MARK).exists():
            raise AddressError(f"{folder}: this folder has other contents than a demo; choose another --output.")
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARK).touch()
    return folder


def write_shards(folder: Path, shards: int, rows: Iterable[Mapping[str, str]]) -> list[Path]:
    """Write documents as shards of C4's form; return their paths."""
    folder.mkdir()
    lines = [orjson.dumps(row) + b"\n" for row in rows]
    paths = [folder / f"{folder.name}.{shard:05d}-of-{shards:05d}.json.gz" for shard in range(shards)]
    for shard, path in enumerate(paths):
        with igzip.open(path, "wb") as out:
            out.writelines(lines[shard::shards])
    return paths


def _shards(release: Path) -> list[Path]:
    return sorted((release / "data").iterdir())


def _texts(shards: Iterable[Path]) -> dict[str, str]:
    rows = [orjson.loads(line) for shard in shards for line in igzip.open(shard)]
    return {row["id"]: row["text"] for row in rows}


def _print_beside(releases: Sequence[Mapping[str, str]], ids: Sequence[str]) -> None:
    for id in ids:
        before, after = (texts[id] for texts in releases)
        print(f"  before  {before}\n  after   {after}", flush=True)

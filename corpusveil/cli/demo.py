"""``corpusveil demo``: the whole flow on text that the dependencies ship."""

from __future__ import annotations

import importlib.util
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import numpy as np
import orjson
import typer
from isal import igzip

from corpusveil.budget import Budget
from corpusveil.errors import UserError
from corpusveil.jobs.java import java_home
from corpusveil.mechanisms import make
from corpusveil.pipelines.local import LocalEngine
from corpusveil.sampling.keys import Key
from corpusveil.spaces import Space, Vectors, build_space
from corpusveil.text.policy import TextPolicy
from corpusveil.text.tokens import Tokenizer
from corpusveil.transforms.corpus import Engine, Outcome, privatize_corpus
from corpusveil.transforms.release import Release
from corpusveil.transforms.statement import statement
from corpusveil.transforms.table import privatize

MARK = ".corpusveil-demo"
PRIVATE_SHARDS = 2
ARTICLES = 1000
EPSILONS = (0.5, 1.0, 3.0)
SHOWN = 320


def demo(
    output: Annotated[
        str, typer.Option(help="A folder for everything; an earlier demo's is replaced.")
    ] = "demo-output",
) -> None:
    """Train vectors on bundled public text, build a list, privatize bundled documents on every engine that is here.

    Example: corpusveil demo --output demo-output
    """
    folder = _fresh(Path(output))
    say = _Steps()
    say("Public text: news and encyclopedia articles that gensim ships; trains the vectors")
    public = list(public_texts())
    say(f"word2vec on {len(public)} documents")
    space = train(public).save(str(folder / "space"))
    say(f"Space: {len(space):,} words on one list, {folder / 'space'}")
    inputs = write_shards(folder / "input")
    say(f"Private text: {PRIVATE_SHARDS} shards of C4's form, {folder / 'input'}")
    key = Key.generate()
    key.save(folder / "release.key")
    release = Release(make("ring-geometric", space), Budget(1.0), TextPolicy(), key)
    print("\nThe guarantee:")
    for line in statement(release)["guarantee_in_words"]:
        print(f"  - {line}")
    outcomes = {}
    for name, engine in engines().items():
        outcomes[name] = privatize_corpus(release, inputs, str(folder / f"private-{name}"), engine)
        say(f"Privatized on the {name} engine: {folder / f'private-{name}'}")
    _compare(outcomes)
    _before_after(inputs[0], folder / "private-local", space, key)
    print(f"\nEverything is in {folder.absolute()}:")
    print("  private-*/data, private-*/manifest.json   the releases (these two are what may be published)")
    print("  private-*.records, release.key, input     private: keep or destroy, never publish")


class _Steps:
    """Prints what was done and how long it took."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def __call__(self, sentence: str) -> None:
        now = time.monotonic()
        print(f"[{now - self._last:5.1f} s] {sentence}", flush=True)
        self._last = now


def _fresh(folder: Path) -> Path:
    """Return an empty folder; only an earlier demo's is emptied."""
    if folder.exists() and any(folder.iterdir()):
        if not (folder / MARK).exists():
            raise UserError(f"{folder}: this folder is not empty and not an earlier demo's; name another --output.")
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARK).touch()
    return folder


def public_texts() -> Iterator[str]:
    """Yield the public documents: 300 news texts and some articles of an encyclopedia."""
    from gensim.corpora.wikicorpus import extract_pages, filter_wiki
    from gensim.test.utils import datapath

    with open(datapath("lee_background.cor"), encoding="utf-8") as file:
        yield from file
    import bz2

    with bz2.open(datapath("enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2")) as dump:
        for number, (_, text, _) in enumerate(extract_pages(dump, ("0",))):
            if number == ARTICLES:
                return
            yield filter_wiki(text)


def train(texts: list[str]) -> Space:
    """Train word2vec on the words of the texts and build a space with their public counts."""
    from gensim.models import Word2Vec

    tokenizer = Tokenizer.of_words(["the"])
    sentences = []
    for text in texts:
        tokens = tokenizer.tokenize([text])
        words = [word.lower() for word, kind in zip(tokens.texts(0), tokens.classes, strict=True) if kind == 0]
        sentences.append(words)
    model = Word2Vec(sentences, vector_size=100, min_count=3, epochs=8, sg=1, workers=2, window=5)
    words = model.wv.index_to_key
    counts = np.array([model.wv.get_vecattr(word, "count") for word in words], dtype=np.int64)
    return build_space(
        Vectors(list(words), model.wv.vectors.astype(np.float32), "word2vec on bundled text", counts), counts=counts
    )


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


def _compare(outcomes: dict[str, Outcome]) -> None:
    digests = {outcome.content_sha256 for outcome in outcomes.values()}
    if len(digests) > 1:
        print("The engines wrote DIFFERENT bytes; this must not happen. Please report it.", file=sys.stderr)
        raise typer.Exit(1)
    print(f"\nSame bytes from {', '.join(outcomes)}: sha256 {digests.pop()}")


def _before_after(source: str, released: Path, space: Space, key: Key) -> None:
    with igzip.open(source) as file:
        before = orjson.loads(file.readline())["text"]
    shard = min((released / "data").iterdir())
    with igzip.open(shard) as file:
        after = orjson.loads(file.readline())["text"]
    print(f"\nBefore:            {before[:SHOWN]}")
    for epsilon in EPSILONS:
        release = Release(make("ring-geometric", space), Budget(epsilon), TextPolicy(), key)
        text = after if epsilon == 1 else privatize([before], release)[0]
        print(f"After, epsilon {epsilon:g}: {text[:SHOWN]}")

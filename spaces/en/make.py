"""Make the packages' public knowledge from openly licensed text: ``make space-en`` runs every stage, and resumes.

    python -m spaces.en.make TEXT WORK [--language en] [--engine spark] [--install]

TEXT is a folder of JSON lines (``*.jsonl[.zst|.gz]``, with ``text`` and perhaps ``source``) and, if it has registers, a
``DATA.md`` whose table gives each source its register. WORK keeps the output of every stage; a stage whose output is
there is not made again. The stages are the product's own commands, in this order:

    text         each line once, and of each source at most ``MOST`` words, a folder for each register
    counts       n-grams of 1 to 3 words of all text, and of the registers that the model counts
    words        the vocabulary, its frequencies and vectors (``words.py``, in an environment of its own)
    space        one list by meaning, grammar and frequency
    model        the counts of ``LEAST`` times and more of words of the space; Kneser-Ney trigrams of them, and a sample
                 of held-out text by register for the risk
    collocations the table by PMI, the text as MST tokens, word2vec of 300 dimensions, the space of both
    figures      what readers recover of the sample; ``neural.py`` adds to it
    archive      both archives with fixed times, and their hashes; ``figures.py`` puts the table of risk into the space

Another language is the same recipe with another folder of text: ``--language de``. ``--install`` puts the archives into
``spaces/en``; other archives are another major version of the package.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import subprocess
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import zstandard

from corpusveil.choices import Policy
from corpusveil.mechanisms.registry import make_mechanism
from corpusveil.pipelines import artifacts
from corpusveil.pipelines.settings import Settings
from corpusveil.pipelines.watch import Watch
from corpusveil.spaces import Vocabulary, load_space
from corpusveil.spaces.build import build_space
from corpusveil.spaces.installed import ARCHIVE
from corpusveil.spaces.public_counts import read_neighbors
from corpusveil.spaces.vectors import Vectors, read_vectors
from corpusveil.text.policy import TextPolicy
from corpusveil_evaluate.readers.ngrams.context_risk import GRID
from corpusveil_evaluate.readers.ngrams.modelling import build_model, load_model
from spaces.en.figures import main as put_table
from spaces.en.figures import measured, write_figures
from spaces.en.sample import NAME as SAMPLE
from spaces.en.sample import read_sample

HERE = Path(__file__).parent
PACKAGE = HERE / "corpusveil_space_en"
MOST = 1_500_000
"""Words of a source: goal-scripted dialogues and templates repeat themselves, and would speak for everybody."""
LEAST = (3, 3, 4)
"""The least counts of words, pairs and triples in the archive. docs/mechanisms.md says what this costs."""
STEPS, COLLOCATION_STEPS, COLLOCATION_WORDS = 8, 2.5, 27_000
"""Vectors are rounded to this many whole numbers a standard deviation; the most frequent tokens of the second space."""
BEFORE_ZIP = (1980, 1, 1, 0, 0, 0)
SAMPLE_WORDS = 6_000
"""Words of the sample in each register."""
MEASURED: tuple[tuple[str, Policy], ...] = (
    ("ring-geometric", "privatize"), ("ring-geometric", "keep"), ("diffractor-geometric", "privatize"),
)  # fmt: skip
"""Mechanisms and treatments of stop words whose figures the archive has; for others, a risk needs a text."""
EPSILONS = [epsilon for at, epsilon in enumerate(GRID) if at % 8 == 0 or (at % 4 == 0 and 1 / 8 <= epsilon <= 2)]
UNCOUNTED = ("howto", "news", "speech")
"""Registers that the model does not count: on them is measured what a reader recovers from text unlike the model's.
It loses a point of what it recovers from SST-2, AG News, blogs and C4, and reads these three as it reads those four."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--language", default="en")
    parser.add_argument("--engine", default="local", choices=("local", "spark"))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--install", action="store_true")
    call = parser.parse_args()
    recipe = Recipe(call.text, call.work, call.language, {"name": call.engine, "workers": call.workers})
    for stage in (
        recipe.cleaned,
        recipe.counted,
        recipe.worded,
        recipe.spaced,
        recipe.modelled,
        recipe.figured,
        recipe.collocated,
    ):
        print(stage.__name__, flush=True)
        stage()
    recipe.archived()
    if call.install:
        recipe.installed()


class Recipe:
    """The stages, each a function of what stands in the work folder."""

    def __init__(self, text: Path, work: Path, language: str, engine: dict[str, Any]) -> None:
        self.text, self.work, self.language = text, work.resolve(), language
        self.engine = engine
        self.work.mkdir(parents=True, exist_ok=True)
        self.registers = registers_of(text)

    def at(self, name: str) -> str:
        return str(self.work / name)

    def settings(self, **sections: dict[str, Any]) -> Settings:
        return Settings.model_validate({"engine": self.engine, **sections})

    def cleaned(self) -> None:
        """Write ``text/REGISTER/NN.jsonl`` and the sample."""
        if (self.work / SAMPLE).exists():
            return
        shutil.rmtree(self.work / "text", ignore_errors=True)
        seen: set[int] = set()
        of_source: Counter[str] = Counter()
        outputs: dict[Path, Any] = {}
        for number, shard in enumerate(shards(self.text)):
            for document in documents(shard):
                source = document.get("source", "")
                if of_source[source] >= MOST:
                    continue
                lines = []
                for line in document["text"].split("\n"):
                    key = int.from_bytes(hashlib.blake2b(line.strip().lower().encode(), digest_size=8).digest())
                    if key not in seen:
                        seen.add(key)
                        lines.append(line)
                of_source[source] += sum(line.count(" ") + 1 for line in lines)
                path = self.work / "text" / self.registers.get(source, "text") / f"{number % 4:02d}.jsonl"
                if path not in outputs:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    outputs[path] = path.open("wb")
                if lines:
                    outputs[path].write(orjson.dumps({"text": "\n".join(lines)}) + b"\n")
        for output in outputs.values():
            output.close()
        self.sampled()

    def sampled(self) -> None:
        """Write the sample of held-out text: of each register ``SAMPLE_WORDS`` words in passages of about 120."""
        words: Counter[str] = Counter()
        rows = []
        for document in documents(held_out(self.text)) if held_out(self.text).exists() else ():
            register = self.registers.get(document.get("source", ""), "text")
            passage, length = [], 0
            for line in document["text"].split("\n"):
                passage.append(line)
                length += line.count(" ") + 1
                if length >= 120:
                    break
            if 40 <= length <= 300 and words[register] < SAMPLE_WORDS:
                words[register] += length
                rows.append({"register": register, "counted": register not in UNCOUNTED, "text": "\n".join(passage)})
        data = b"".join(orjson.dumps(row) + b"\n" for row in rows)
        (self.work / SAMPLE).write_bytes(zstandard.ZstdCompressor(level=19).compress(data))

    def counted(self) -> None:
        """Count all text into ``counts``, and that of the model into ``counted``."""
        texts = sorted((self.work / "text").glob("*/*.jsonl"))
        of_model = [path for path in texts if path.parent.name not in UNCOUNTED]
        for name, paths in (("counts", texts), ("counted", of_model)):
            where = {"input": list(map(str, paths)), "counts": self.at(name), "max_n": 3, "min_count": 2}
            artifacts.count(self.settings(collocations=where | self._read_as()), Watch())

    def _read_as(self) -> dict[str, str]:
        return {} if self.language == "en" else {"language": self.language}

    def worded(self) -> None:
        """Choose the words, and make their vectors in an environment of their own."""
        if (self.work / "words.npz").exists():
            return
        table = ngrams(self.work / "counts", 1)
        lines = (f"{word}\t{count}\n" for word, count in zip(*table.to_pydict().values(), strict=True))
        (self.work / "counts.tsv").write_text("".join(lines), "utf-8")
        python = HERE.parents[1] / ".tools/space-en/bin/python"
        excluded = ["--excluded", str(PACKAGE / "excluded.txt")] if self.language == "en" else []
        call = [str(python), str(HERE / "words.py"), self.at("counts.tsv"), self.at("words.part.npz")]
        subprocess.run([*call, "--language", self.language, *excluded], check=True)
        (self.work / "words.part.npz").rename(self.work / "words.npz")

    def spaced(self) -> None:
        """Build the space: vectors of length 1, rounded; one list."""
        if (self.work / "space/_artifact.json").exists():
            return
        with np.load(self.work / "words.npz") as made:
            words = [str(word) for word in made["vocab"]]
            vectors, frequencies = made["vectors"].astype(np.float64), made["frequencies"]
        counts = np.maximum(1, np.round(frequencies * 1e9)).astype(np.int64)
        near = read_neighbors(self.at("counts"), Vocabulary.from_words(words, counts), None, self._spoken())
        chosen = Vectors(words, rounded(vectors), "words", None, None, self._spoken())
        build_space(chosen, counts=counts, balance=None, neighbors=near).save(self.at("space"))

    def _spoken(self) -> str | None:
        return None if self.language == "en" else self.language

    def modelled(self) -> None:
        """Prune the counts to those of the archive, and make the model of them as whoever installs it does."""
        pruned = self.work / "pruned"
        if not (pruned / "_artifact.json").exists():
            prune(self.work / "counted", pruned, load_space(self.at("space")).vocabulary.words)
        build_model(str(pruned), self.at("model"))

    def figured(self) -> None:
        """Measure what readers recover of the sample: its text may not be passed on, these figures may."""
        output = self.work / "figures.json"
        if output.exists():
            return
        chosen, model = load_space(self.at("space")), load_model(self.at("model"))
        sample = read_sample((self.work / SAMPLE).read_bytes())
        write_figures(
            {
                f"{name} {each}": measured(
                    make_mechanism(name, chosen), model, sample, TextPolicy(stop_words=each), EPSILONS
                )
                for name, each in MEASURED
            },
            output,
        )

    def collocated(self) -> None:
        """Score, tokenize and train; build the space of words and collocations."""
        texts = sorted(str(path) for path in (self.work / "text").glob("*/*.jsonl"))
        at = {name: self.at(name) for name in ("counts", "collocations", "tokens")}
        where = {
            "input": texts, "counts": at["counts"], "table": at["collocations"], "tokens": at["tokens"],
            "score_min_count": 30, "tokenizer": "mst", **self._read_as(),
        }  # fmt: skip
        train = {"vectors": self.at("vectors"), "min_count": 60, "threads": self.engine["workers"]}
        settings = self.settings(collocations=where, embeddings=train)
        artifacts.score(settings, Watch())
        artifacts.tokenize(settings, Watch())
        artifacts.train(settings, Watch())
        if (self.work / "collocation-space/_artifact.json").exists():
            return
        trained = read_vectors(self.at("vectors"))
        excluded = set((PACKAGE / "excluded.txt").read_text("utf-8").split()) if self.language == "en" else set()
        known = {*load_space(self.at("space")).vocabulary.words}
        rows = [
            row for row, word in enumerate(trained.words[:COLLOCATION_WORDS])
            if all(part in known and part not in excluded for part in word.split("_"))
        ]  # fmt: skip
        words = [trained.words[row] for row in rows]
        vectors = Vectors(words, rounded(trained.vectors[rows].astype(np.float64), COLLOCATION_STEPS), "mst")
        counts = None if trained.counts is None else trained.counts[rows]
        near = read_neighbors(at["counts"], Vocabulary.from_words(words, counts))
        build_space(vectors, counts=counts, balance=None, neighbors=near).save(self.at("collocation-space"))

    def archived(self) -> None:
        """Write ``archives``: words, model and table in one, the space of collocations in the other."""
        (self.work / "archives/collocations").mkdir(parents=True, exist_ok=True)
        parts = {"space": "space", "counts": "pruned", "collocations": "collocations"}
        archive(self.work, self.work / "archives" / ARCHIVE, parts)
        archive(self.work, self.work / "archives/collocations" / ARCHIVE, {"space": "collocation-space"})

    def installed(self) -> None:
        """Put both archives into the package."""
        for name in (ARCHIVE, f"{ARCHIVE}.sha256"):
            shutil.copy(self.work / "archives" / name, PACKAGE / name)
            shutil.copy(self.work / "archives/collocations" / name, PACKAGE / "collocations" / name)
        shutil.copy(self.work / "figures.json", HERE / "figures.json")
        put_table()


def shards(text: Path) -> list[Path]:
    """Return the shards of a folder but for the held-out text."""
    return sorted(path for path in text.glob("*.jsonl*") if path != held_out(text))


def held_out(text: Path) -> Path:
    return text / "held-out.jsonl.zst"


def documents(shard: Path) -> Iterator[dict[str, Any]]:
    with zstandard.open(shard, "rt", encoding="utf-8") if shard.suffix == ".zst" else shard.open("rt") as lines:
        for line in lines:
            yield orjson.loads(line)


def registers_of(text: Path) -> dict[str, str]:
    """Return the register of each source by the table ``source | register | ...`` of ``DATA.md``."""
    table = text / "DATA.md"
    registers: dict[str, str] = {}
    inside = False
    for line in table.read_text("utf-8").splitlines() if table.exists() else ():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if cells[:2] == ["source", "register"]:
            inside = True
        elif inside and len(cells) > 2 and not cells[0].startswith("-"):
            registers[cells[0]] = cells[1]
    return registers


def ngrams(counts: Path, n: int) -> pa.Table:
    """Return the n-grams of n words and their counts."""
    table = pa.concat_tables([pq.read_table(path) for path in sorted((counts / "ngrams").glob("*.parquet"))])
    return table.filter(pc.equal(table["n"], n)).select(["ngram", "count"])


def prune(counts: Path, output: Path, words: Sequence[str]) -> None:
    """Write counts of n-grams of these words alone that occur ``LEAST`` times, sorted, so that they compress well."""
    (output / "ngrams").mkdir(parents=True, exist_ok=True)
    known = pa.array(words, pa.string())
    kept = []
    for n, least in enumerate(LEAST, 1):
        table = ngrams(counts, n)
        table = table.filter(pc.greater_equal(table["count"], least)).sort_by("ngram")
        parts = pc.index_in(pc.split_pattern(table["ngram"].combine_chunks(), " ").flatten(), value_set=known)
        table = table.filter(pa.array(parts.is_valid().to_numpy(zero_copy_only=False).reshape(-1, n).all(axis=1)))
        kept.append(table.add_column(1, "n", pa.array(np.full(len(table), n, np.int8))))
    sha = hashlib.sha256()
    for number, table in enumerate((kept[0], pa.concat_tables(kept[1:]))):
        path = output / "ngrams" / f"part-{number:05d}-of-00002.parquet"
        encodings = {"ngram": "DELTA_BYTE_ARRAY", "n": "PLAIN", "count": "DELTA_BINARY_PACKED"}
        pq.write_table(table, path, compression="none", use_dictionary=False, column_encoding=encodings)
        sha.update(path.read_bytes())
    described = json.loads((counts / "_artifact.json").read_bytes())
    described |= {"parts": 1, "digest": sha.hexdigest()[:32], "ngrams": sum(map(len, kept)), "inputs": []}
    described["options"] |= {"min_count": min(LEAST)}
    (output / "_artifact.json").write_text(json.dumps(described, indent=1))


def rounded(vectors: np.ndarray, steps: float = STEPS) -> np.ndarray:
    """Return vectors of length 1 times one scale, as whole numbers: float32 [V, d]; ``steps`` are a deviation's."""
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.clip(np.round(unit / unit.std() * steps), -127, 127).astype(np.float32)


def archive(work: Path, path: Path, folders: dict[str, str]) -> None:
    """Write folders under their names with fixed times, so that equal files make an equal archive; and its hash."""
    with zipfile.ZipFile(path, "w") as out:
        for name, folder in folders.items():
            for file in sorted(one for one in (work / folder).rglob("*") if one.is_file()):
                entry = zipfile.ZipInfo(f"{name}/{file.relative_to(work / folder)}", BEFORE_ZIP)
                out.writestr(entry, file.read_bytes(), zipfile.ZIP_LZMA)
    hashed(path)
    print(f"{path}: {path.stat().st_size / 2**20:.2f} MiB", flush=True)


def hashed(path: Path) -> None:
    """Write the SHA-256 of an archive beside it."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    path.with_name(f"{path.name}.sha256").write_text(f"{digest}  {path.name}\n")


if __name__ == "__main__":
    main()

"""Teach the words of ``en`` to add up to sentences, and put their sentence vectors into the archive of words.

    python -m spaces.en.sentences TEXT WORK [--install]

TEXT is the folder of which the archives were made (``make.py``). WORK keeps the output of every stage, and a stage
whose output is there is not made again:

    pieces.json    240,000 runs of one to four sentences, a quarter of them dialogues, of each source about as many; and
                   the lines of the store (``store/*.txt``), but for 3,000, by which the recipe was chosen
    teacher.npy    what all-MiniLM-L6-v2 makes of them (``teacher.py``, in the environment of ``make space-en``)
    sentences.npy  the vectors (``corpusveil/passages/teaching.py``)

The lines of the store teach twice: pieces of a store rank better for texts of their kinds. Held-out text and
``LEFT_OUT``, which benchmarks release, teach nothing. The vectors are in the digest of the space:
after ``--install``, ``python -m spaces.en.make_store WORK`` makes the archive of the store again.
"""

from __future__ import annotations

import argparse
import subprocess
from collections import defaultdict
from pathlib import Path

import numpy as np
import orjson
import pyarrow as pa

import corpusveil as cv
from corpusveil.passages.encoder import mean_vectors
from corpusveil.passages.pieces import normalized, pieces_of
from corpusveil.passages.teaching import SENTENCES, WORDS, taught
from corpusveil.spaces.installed import ARCHIVE, SCHEME
from corpusveil.text.tokens import Tokenizer, string_buffers
from spaces.en.figures import repack, with_space
from spaces.en.make import HERE, PACKAGE, documents, registers_of, shards

PYTHON = HERE.parents[1] / ".tools/space-en/bin/python"
LEFT_OUT = ("multidogo",)
QUOTA, OF_DIALOGUES = 22_000, 60_000
"""Pieces of a register, and of dialogues."""
MEASURED = 3000
"""Lines of the store that teach nothing."""
SHARE, BATCH = 0.6, 2000
"""The share of pieces that is kept before quotas, and the documents that are cut at once."""


def sampled(text: Path, tokenizer: Tokenizer) -> list[str]:
    """Return the pieces, in a random order that is always the same."""
    random, registers = np.random.default_rng(0), registers_of(text)
    of_source: defaultdict[str, list[str]] = defaultdict(list)
    seen: set[str] = set()
    for shard in shards(text):
        rows = [row for row in documents(shard) if row["source"] not in LEFT_OUT]
        for begin in range(0, len(rows), BATCH):
            some = rows[begin : begin + BATCH]
            cut = pieces_of(
                tokenizer, *string_buffers(pa.array([row["text"] for row in some], pa.large_string())), "sentence"
            )
            for number, row in enumerate(some):
                at, end = int(cut.offsets[number]), int(cut.offsets[number + 1])
                while at < end:
                    last = min(at + int(random.integers(1, SENTENCES + 1)), end)
                    if random.random() < SHARE and cut.bounds[last] - cut.bounds[at] >= WORDS[0]:
                        first, stop = cut.tokens.starts[cut.bounds[at]], cut.tokens.ends[cut.bounds[last] - 1]
                        piece = cut.tokens.data[first:stop].tobytes().decode("utf-8", "replace")
                        if WORDS[0] <= piece.count(" ") + 1 <= WORDS[1] and normalized(piece) not in seen:
                            seen.add(normalized(piece))
                            of_source[row["source"]].append(piece)
                    at = last
    of_register: defaultdict[str, list[str]] = defaultdict(list)
    for source in sorted(of_source):
        of_register[registers.get(source, "text")].append(source)
    chosen: list[str] = []
    for register in sorted(of_register):
        sizes = [len(of_source[source]) for source in of_register[register]]
        quota = OF_DIALOGUES if register == "dialogue" else QUOTA
        most = max(each for each in range(max(sizes) + 1) if sum(min(size, each) for size in sizes) <= quota)
        for source in of_register[register]:
            rows_of = of_source[source]
            chosen += [rows_of[row] for row in sorted(random.permutation(len(rows_of))[:most])]
    return [chosen[row] for row in random.permutation(len(chosen))]


def lines_of_store() -> list[str]:
    """Return the lines of the store in a random order that is always the same, but for some."""
    lines = [line for path in sorted((HERE / "store").glob("*.txt")) for line in path.read_text("utf-8").splitlines()]
    return [lines[row] for row in np.random.default_rng(5).permutation(len(lines))[MEASURED:]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--install", action="store_true")
    call = parser.parse_args()
    call.work.mkdir(parents=True, exist_ok=True)
    pieces, teacher, made = (call.work / name for name in ("pieces.json", "teacher.npy", "sentences.npy"))
    space = cv.load_space(SCHEME + "en").with_sentences(None)
    if not pieces.exists():
        pieces.write_bytes(orjson.dumps([sampled(call.text, mean_vectors(space).tokenizer), lines_of_store()]))
    if not teacher.exists():
        subprocess.run([str(PYTHON), str(HERE / "teacher.py"), str(pieces), str(teacher)], check=True)
    if not made.exists():
        texts, lines = orjson.loads(pieces.read_bytes())
        said = np.load(teacher).astype(np.float32)
        np.save(made, taught(space, [*texts, *lines, *lines], np.concatenate([said, said[len(texts) :]])))
    if call.install:
        repack(PACKAGE / ARCHIVE, lambda files: with_space(files, lambda own: own.with_sentences(np.load(made))))


if __name__ == "__main__":
    main()

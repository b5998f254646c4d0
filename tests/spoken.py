"""Short texts in nine languages, a space of each, and the table of docs/languages.md: ``python -m tests.spoken``."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

import corpusveil as cv
from corpusveil.spaces.build import build_space
from corpusveil.spaces.vectors import Vectors
from corpusveil.storage.documents import Documents
from corpusveil.text import languages
from corpusveil.text.classes import WORD
from corpusveil.text.tokens import Tokenizer

PAGE = Path(__file__).parents[1] / "docs" / "languages.md"
BEGIN, END = "<!-- python -m tests.spoken -->\n", "<!-- end -->\n"
EPSILON = 1.5
KEY = cv.Key(bytes(range(32)))

TEXTS = {
    part.partition("]")[0]: part.partition("]")[2].strip().splitlines()
    for part in Path(__file__).with_suffix(".txt").read_text().split("[")[1:]
}
"""Public texts of which a space is made and, last, a private one, in which one name is in no space."""


def public(language: str) -> list[str]:
    """Return the public texts of a language."""
    return TEXTS[language][:-1]


def private(language: str) -> str:
    """Return the private text of a language."""
    return TEXTS[language][-1]


def words_of(text: str, language: str | None) -> list[str]:
    """Return the words of a text as the tokenizer reads them, as they are written."""
    tokens = Tokenizer.of_words([], language=language).tokenize([text])
    return [tokens.text(token) for token in range(len(tokens)) if tokens.classes[token] == WORD]


def space_of(language: str | None, texts: list[str]) -> cv.Space:
    """Return a space of texts: words of a text are near each other; the language is recorded in it."""
    lines = [
        [word.lower() for word in words_of(text, language)]
        for text in languages.read(pa.array(texts), language).to_pylist()
    ]
    words = sorted({word for line in lines for word in line})
    vectors = np.random.default_rng(5).normal(0, 0.01, (len(words), len(lines)))
    counts = np.zeros(len(words), np.int64)
    for number, line in enumerate(lines):
        for word in line:
            vectors[words.index(word), number] += 1
            counts[words.index(word)] += 1
    return build_space(Vectors(words, vectors.astype(np.float32), counts=counts, language=language))


def release_of(language: str | None, policy: cv.TextPolicy | None = None, epsilon: float = EPSILON) -> cv.Release:
    """Return a release over the space of a language."""
    space = space_of(language, public(language or "de"))
    return cv.Release(cv.RingGeometric(space), cv.Budget(epsilon), policy or cv.TextPolicy(), key=KEY)


def unknown_share(release: cv.Release, text: str) -> float:
    """Return the share of the words of a text that the release's space lacks."""
    _, counts = release.kernel().apply(Documents(pa.array([text]), ["row"]))
    return counts.unknown_share


@dataclass(frozen=True)
class Figures:
    """What a release in a language makes of its private text; ``unread`` is the unknown share without a language."""

    retention: float
    unread: float
    unknown: float
    before: str
    after: str


def figures(language: str) -> Figures:
    """Return the figures of a language."""
    release, text = release_of(language), private(language)
    unread = space_of(None, public(language))
    plain = cv.Release(cv.RingGeometric(unread), cv.Budget(EPSILON), cv.TextPolicy(), key=KEY)
    (after,) = cv.privatize([text], release, ["row"])
    shares = unknown_share(plain, text), unknown_share(release, text)
    return Figures(release.mechanism.retention(EPSILON), *shares, text, after)


def table() -> str:
    """Return the table of the page, and the names of all languages."""
    rows = [
        "| language | words unchanged | unknown without | unknown with | before | after |",
        "|---|---|---|---|---|---|",
    ]
    for language in TEXTS:
        of = figures(language)
        shares = f"{of.retention:.0%} | {of.unread:.0%} | {of.unknown:.0%}"
        rows.append(f"| `{language}` | {shares} | {of.before} | {of.after} |")
    names = ", ".join(language["name"] for language in languages.known().values())
    return (
        "\n".join(
            [*rows, "", *textwrap.wrap(f"Names: {names}. Codes are those of ISO 639.", 120, break_on_hyphens=False)]
        )
        + "\n"
    )


def page(text: str) -> str:
    """Return the page with the present table."""
    head, _, rest = text.partition(BEGIN)
    return head + BEGIN + "\n" + table() + "\n" + END + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))

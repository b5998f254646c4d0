"""The report of an evaluation: one self-contained page, with tables and, if it is private, texts."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from corpusveil.storage import files
from corpusveil_evaluate.attacks.attribute_inference import Readable
from corpusveil_evaluate.attacks.word_attacks import BAYES_OPTIMAL, CONTENT_OPTIMAL
from corpusveil_evaluate.readers.ngrams.denoise import NO_FACTS
from corpusveil_evaluate.readers.ngrams.word_risk import reader_guesses
from corpusveil_evaluate.report.findings import Example, Findings
from corpusveil_evaluate.report.page import Block, environment
from corpusveil_evaluate.statistics.statistic import GROUPS, Figure, Statistic, find, statistics

LESS = "Difference from original: the mean of paired differences over seeds, with its 95 % interval."
UNCHANGED = "words unchanged"
EXAMPLES, LONGEST = 5, 400


@dataclass(frozen=True, slots=True)
class Guess:
    """Shares of the words of public text that an informed reader guesses, and guesses blindly, without the release."""

    share: float
    blind: float
    said: str

    def sentence(self) -> str:
        """Say it in one sentence."""
        return self.said[0].upper() + self.said[1:]


def write_report(findings: Findings, folder: str, *, publishable: bool = False) -> str:
    """Write ``report.html``, ``report.json`` and ``report.csv`` into a folder; return the address of the page.

    Unless ``publishable``, they hold original text and figures of it, and get mode 0600 on a local disk.

    >>> findings = cv.evaluate_release(texts, cv.privatize(texts, release, ids=["r-1", "r-2"]), release)
    >>> cv.write_report(findings, "report", publishable=True)
    'report/report.html'
    """
    shown = findings.publishable() if publishable else findings
    private = not publishable
    files.write_bytes(files.join(folder, "report.json"), shown.as_json(), private=private)
    files.write_bytes(files.join(folder, "report.csv"), shown.as_csv(), private=private)
    page = files.join(folder, "report.html")
    files.write_bytes(page, render(shown).encode(), private=private)
    return page


def render(findings: Findings) -> str:
    """Return the page."""
    template = environment().get_template("release.html")
    first_of_models = reversed(findings.measures)
    released = {figure.name: figure for figure in first_of_models}
    examples = [
        {
            "original": example.original,
            "sides": [(label, marked(example.original, text)) for label, text in example.versions],
        }
        for example in findings.examples
    ]
    guess, every = (released.get(name.name) for name in (CONTENT_OPTIMAL, BAYES_OPTIMAL))
    said = None
    if guess is not None and every is not None:
        said = Guess(guess.value, guess.floor or 0.0, reader_guesses(guess.value, every.value, guess.floor or 0.0))
    return template.render(
        findings=findings, examples=examples, unchanged=released.get(UNCHANGED),
        tiles=[
            _tile(statistic, released)
            for group in GROUPS
            for statistic in statistics()
            if statistic.tile and statistic.group == group and statistic.name in released
        ],
        tables=[*_figures(findings.measures)],
        no_facts=NO_FACTS if any("denoised" in dict(example.versions) for example in findings.examples) else None,
        guess=said,
    )  # fmt: skip


def _tile(statistic: Statistic, released: Mapping[str, Figure]) -> dict[str, Any]:
    """Return a figure with its whole, and the floor to compare it with."""
    figure, other = released[statistic.name], released.get(statistic.floor_from)
    floor = figure.floor if other is None else other.value
    return {
        "value": str(figure).split(" ±")[0], "name": figure.name, "of": statistic.of, "model": figure.model,
        "floor": "" if floor is None else f"floor {floor:.1%}: {statistic.floor}", "floor_at": floor,
        "filled": min(max(figure.value, 0.0), 1.0) if figure.unit == "share" else None,
    }  # fmt: skip


def _figures(measures: Sequence[Figure]) -> Iterator[Block]:
    """Yield a table of each group of figures of the release itself."""
    for group, title in GROUPS.items():
        figures = [figure for figure in measures if figure.group == group]
        less = any(figure.less for figure in figures)
        heads = ("Figure", "Value", "Floor", *(["Difference from original, points"] if less else []), "By")
        rows = [
            (
                [figure.name, *filter(None, (find(figure.name).of, figure.note))], str(figure),
                "" if figure.floor is None else f"{figure.floor:.1%}", *([figure.less] if less else []), figure.model,
            )
            for figure in figures
        ]  # fmt: skip
        if rows:
            yield Block(title, heads=heads, rows=rows, numbers=range(1, len(heads) - 1), look="figures",
                        notes=[LESS] if less else [], folded=True)  # fmt: skip


def marked(original: str, private: str) -> list[tuple[str, bool]]:
    """Return the words of a private text, and whether each differs from the original."""
    before = [word.lower() for word in original.split()]
    words = private.split()
    matcher = difflib.SequenceMatcher(None, before, [word.lower() for word in words], autojunk=False)
    same = {at for block in matcher.get_matching_blocks() for at in range(block.b, block.b + block.size)}
    return [(word, at not in same) for at, word in enumerate(words)]


def examples_of(
    originals: Sequence[str],
    privates: Sequence[str],
    readable: Readable | None = None,
) -> tuple[Example, ...]:
    """Return some texts as released, and denoised by ``readable`` if it is there.

    Versions of texts above ``LONGEST`` characters are cut to equal word numbers.
    """
    places = [at for at, text in enumerate(originals) if len(text.split()) > 3][:EXAMPLES]
    shown = {"released": [privates[at] for at in places]}
    if readable is not None:
        shown["denoised"] = readable(shown["released"])
    cut = [None if len(originals[at]) <= LONGEST else len(originals[at][:LONGEST].split()) for at in places]
    return tuple(
        Example(
            _first_words(originals[at], words),
            tuple((label, _first_words(texts[row], words)) for label, texts in shown.items()),
        )
        for row, (at, words) in enumerate(zip(places, cut, strict=True))
    )


def _first_words(text: str, words: int | None) -> str:
    return text if words is None else " ".join([*text.split()[:words], "…"])

"""What a release promises, as one table: a sentence, and the settings under which it holds.

A condition names settings and some of their values; it is true if each setting has one of these. ``{names}`` in a
sentence are computed from the release (``release.py``, ``passage_release.py``). The sentences that hold, in this
order, are the notes of ``release.guarantee()`` and ``guarantee_in_words`` of a manifest, which its page shows; those in
brief are on the command line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from string import Formatter


@dataclass(frozen=True, slots=True)
class Promise:
    """A sentence, and the values that each of these settings must have for it to hold."""

    name: str
    sentence: str
    when: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def holds(self, settings: Mapping[str, Sequence[str]]) -> bool:
        """Say whether it holds under settings, each with the values that it has."""
        return all(set(values) & set(settings[name]) for name, values in self.when.items())

    @property
    def names(self) -> list[str]:
        """The names in its sentence."""
        return [name for _, name, _, _ in Formatter().parse(self.sentence) if name]


def sentences(
    table: Sequence[Promise], settings: Mapping[str, Sequence[str]], values: Mapping[str, Callable[[], str]]
) -> Iterator[str]:
    """Yield the sentences of a table that hold under settings, with their values, which are computed if they occur."""
    for promise in table:
        if promise.holds(settings):
            yield promise.sentence.format(**{name: values[name]() for name in promise.names})


_UNITS = (
    "A word here is a unit: a single word or a collocation. The bounds compare documents with the same number of "
    "units, and with single words and collocations in the same places{words}. A change of one word can change which "
    "words its neighbors join."
)
_JOINED = ("gst", "mst")

OF_DOCUMENTS = (
    Promise(
        "word",
        "Each replaced word: the log-ratio of any output for two originals is at most {epsilon_distance}, and never "
        "more than {nats} nats (a factor of e to that power). The distance is {metric}.",
        {"budget.per": ("token",)},
    ),
    Promise(
        "word of a document",
        "Each replaced word of a document with {shared_among}: epsilon is {share}, rounded down to the grid 2^(j/8). "
        "The log-ratio of any output for two originals is at most this epsilon times their distance. The distance is "
        "{distance}.",
        {"budget.per": ("document",)},
    ),
    Promise(
        "documents",
        "For {neighbors}, the log-ratio of any output is at most {each}the sum of the words' distances.",
    ),
    Promise("documents at the most", "That is at most {largest}the largest distance."),
    Promise("documents that differ in a word", "If one word differs, it is at most {each}its distance."),
    Promise(
        "collocations",
        _UNITS.replace("{words}", ""),
        {"text.tokenizer": _JOINED, "budget.allocation": ("uniform",)},
    ),
    Promise(
        "collocations that share by words",
        _UNITS.replace("{words}", ", each with the same number of words; n counts the words inside them"),
        {"text.tokenizer": _JOINED, "budget.allocation": ("word-share",)},
    ),
    Promise(
        "stop words",
        "The bounds compare documents with the same stop words in the same places, since these are not replaced.",
        {"text.stop_words": ("keep", "mask", "drop")},
    ),
    Promise(
        "kept unknown words",
        "The bounds compare documents with the same unknown words in the same places.",
        {"text.unknown_words": ("keep",)},
    ),
    Promise(
        "hidden unknown words",
        "The bounds compare documents with unknown words in the same places.",
        {"text.unknown_words": ("mask", "drop")},
    ),
    Promise(
        "places of spans",
        "The bounds compare documents in which the same spans are recognized: equally many, of the same kinds, in the "
        "same places between the same tokens. What a recognizer says may depend on the whole text.",
        {"spans": ("found",)},
    ),
    Promise(
        "shared text",
        "What many documents share, such as forms, log lines and footers, is drawn anew in each: its bounds add up "
        "over them, and a reader averages what was drawn.",
    ),
    Promise(
        "equal texts with the same noise",
        "Equal texts get the same replacements, so a text and its copies count as one document: the bounds compare "
        "corpora that differ in the same way in all copies of a text.",
        {"output.duplicates": ("same-noise",)},
    ),
    Promise(
        "equal texts that are left out",
        "Only the first of equal texts is written, so the bounds compare corpora in which the same rows are left out. "
        "A missing row discloses that its text occurs in an earlier row.",
        {"output.duplicates": ("drop",)},
    ),
)
"""A release by words whose mechanism has a guarantee; the notes of the mechanism follow."""

OF_TOKENS = (
    Promise(
        "tokens from public counts",
        "Tokens under 'resample' ({resampled}) are drawn from public counts, independently of the token, so two such "
        "tokens cannot be distinguished{but_capitals}. Such a token can be distinguished from a word of the vocabulary "
        "by at most {unknown_bound} nats{whatever_share}, and k of them by k times as much. The distances above do not "
        "count this.",
        {"guarantee": ("holds",), "text": ("resample",)},
    ),
    Promise(
        "hidden spans",
        "Each recognized span becomes one token: {hidden}. Two such spans of one kind cannot be "
        "distinguished (0 nats, at any epsilon), if the rest of the text has the same tokens and, with either, the "
        "same recognized spans.",
        {"spans": ("found",)},
    ),
    Promise(
        "parts of names",
        "'names' looks a second time, in the same text, for the parts of a name that it recognized: a word elsewhere "
        "that is a part of one name, and not of another, is masked with the first alone, which tells the two apart.",
        {"spans.find": ("names",)},
    ),
    Promise(
        "what no recognizer finds",
        "What no recognizer finds is a word like any other: with the bound of its kind if the vocabulary has it, and "
        "drawn from a law that does not depend on it if not, unless unknown words are kept.",
        {"spans": ("found",)},
    ),
)
"""Any release by words."""

_APART = (
    "without the key, a reader can distinguish two originals of a word by at most {at_most}, and by no more than "
    "{nats} nats. "
)
IN_BRIEF = (
    Promise(
        "words",
        f"{_APART}The bounds of a document's words add up.",
        {"budget.per": ("token",)},
    ),
    Promise(
        "words of a document",
        f"{_APART}A document's words share this epsilon.",
        {"budget.per": ("document",)},
    ),
)
"""A release by words, in two sentences."""

ORDER = "how many documents there are, and their order"
NO_AUTHOR = (
    "No line of this was written by the author of its row: each is a public text with words like its own. It may keep "
    "topic, and keeps no fact."
)
AUTHORS = Promise("authors", NO_AUTHOR, {"store.accept_overlap": ("no",)})
OVERLAP = Promise(
    "texts of the store",
    "That private texts stand in the store was accepted (accept_overlap): they may be released word for word, and "
    "nothing is guaranteed to whoever wrote them.",
    {"store.accept_overlap": ("yes",)},
)
OF_PASSAGES = (
    Promise(
        "texts",
        "A whole text costs epsilon once, for any two texts of any length.",
        {"budget.per": ("document",)},
    ),
    Promise(
        "pieces",
        "A text of n {per}s costs n times epsilon{most_pieces}: the log-ratio of any output for two texts of equally "
        "many {per}s is at most n times {nats} nats.",
        {"budget.per": ("paragraph", "sentence")},
    ),
    Promise("the law", "{law}"),
    AUTHORS,
    Promise(
        "public pieces",
        "Every released piece was public before: no name, number or phrase of a private text stands in the release "
        "unless the store has it.",
        {"store.accept_overlap": ("no",)},
    ),
    OVERLAP,
    Promise(
        "other vectors",
        "Vectors are made by {encoder}, on the machines that work. Equal bytes across processors are promised for the "
        "built-in encoder alone.",
        {"store.encoder": ("another",)},
    ),
    Promise(
        "equal pieces",
        "Equal pieces get equal replacements, so all equal pieces count as one.",
        {"output.duplicates": ("same-noise",)},
    ),
)
"""A release by passages."""
OF_PASSAGES_IN_BRIEF = (
    Promise(
        "texts",
        "without the key, a reader can distinguish any two texts by at most {nats} nats.",
        {"budget.per": ("document",)},
    ),
    Promise(
        "pieces",
        "without the key, a reader can distinguish any two {per}s by at most {nats} nats, and two texts by the sum "
        "over their {per}s.",
        {"budget.per": ("paragraph", "sentence")},
    ),
    AUTHORS,
    OVERLAP,
)
"""A release by passages, in two sentences."""

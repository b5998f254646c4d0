"""What a release promises, sentence by sentence, each under the settings that make it true.

The sentences, in this order, are the notes of ``release.guarantee()`` and ``guarantee_in_words`` of a manifest, which
its page shows; those in brief are on the command line.
"""

from __future__ import annotations

from collections.abc import Iterator

from corpusveil.budget import Budget
from corpusveil.budget.budget import times
from corpusveil.choices import Duplicates
from corpusveil.display import rounded_up
from corpusveil.kernel.prepared import public_weights
from corpusveil.mechanisms import Guarantee, Mechanism
from corpusveil.passages.pieces import Per
from corpusveil.sampling.weights import TOTAL
from corpusveil.text.policy import ROLE_NAMES, TextPolicy
from corpusveil.text.spans import SpanPolicy

ORDER = "how many documents there are, and their order"
NEIGHBORS = "two documents with equally many tokens and m replaced words each that differ only in known words"
NO_AUTHOR = (
    "No line of this was written by the author of its row: each is a public text. It may keep the topic, and keeps no "
    "reliable fact."
)
OVERLAP = (
    "Private texts were accepted in the store (accept_overlap): they may be released word for word, and nothing is "
    "guaranteed to whoever wrote them."
)


def of_documents(
    mechanism: Mechanism, budget: Budget, policy: TextPolicy, spans: SpanPolicy | None, duplicates: Duplicates,
    token: Guarantee,
) -> Iterator[str]:  # fmt: skip
    """Yield the promises of a release by words, each with the guarantee ``token``, which holds."""
    if budget.per == "token":
        yield (
            "Each replaced word: the log-ratio of any output for two originals is at most "
            f"{times(budget.epsilon, 'their distance')}, and never more than {rounded_up(token.plain_ldp)} nats (a "
            f"factor of e to that power). The distance is {token.metric}."
        )
    else:
        yield (
            f"Each replaced word of a document with {budget.shared_among}: epsilon is {budget.share}, rounded down to "
            "the grid 2^(j/8). The log-ratio of any output for two originals is at most this epsilon times their "
            f"distance. The distance is {mechanism.distance}."
        )
    each, largest = budget.factors
    yield f"For {NEIGHBORS}, the log-ratio of any output is at most {each}the sum of the words' distances."
    yield f"That is at most {largest}the largest distance."
    yield f"If one word differs, it is at most {each}its distance."
    if policy.tokenizer != "word":
        by_words = budget.allocation == "word-share"
        words = ", each with the same number of words; n counts the words inside them" if by_words else ""
        yield (
            "A word here is a unit: a single word or a collocation. The bounds compare documents with the same number "
            f"of units, and with single words and collocations in the same places{words}. A change of one word can "
            "change which words its neighbors join."
        )
    if policy.stop_words in ("keep", "mask", "drop"):
        yield "The bounds compare documents with the same stop words in the same places, since these are not replaced."
    if policy.unknown_words == "keep":
        yield "The bounds compare documents with the same unknown words in the same places."
    if policy.unknown_words in ("mask", "drop"):
        yield "The bounds compare documents with unknown words in the same places."
    if spans is not None:
        yield (
            "The bounds compare documents in which the same spans are recognized: equally many, of the same kinds, in "
            "the same places between the same tokens. What a recognizer says may depend on the whole text."
        )
    yield (
        "What many documents share, such as forms, log lines and footers, is drawn anew in each: its bounds add up "
        "over them, and a reader averages what was drawn."
    )
    if duplicates == "same-noise":
        yield (
            "Equal texts get the same replacements, so a text and its copies count as one document: the bounds compare "
            "corpora that differ in the same way in all copies of a text."
        )


def of_tokens(mechanism: Mechanism, budget: Budget, policy: TextPolicy, spans: SpanPolicy | None) -> Iterator[str]:
    """Yield the promises about tokens that are no words of the space."""
    resampled = [name for name in ROLE_NAMES[1:] if getattr(policy, name) == "resample"]
    if resampled and mechanism.private:
        capitals = " except by their capitals" if policy.case == "restore" else ""
        public, share = public_weights(mechanism.space).astype("float64") / TOTAL, ""
        if budget.per == "token":
            bound = mechanism.unknown_bound(budget.epsilon, public)
        else:
            bound, share = mechanism.unknown_bound_at_most(public), ", whatever its share of the budget"
        yield (
            f"Tokens under 'resample' ({', '.join(resampled)}) are drawn from public counts, independently of the "
            f"token, so two such tokens cannot be distinguished{capitals}. Such a token can be distinguished from a "
            f"word of the vocabulary by at most {rounded_up(bound)} nats{share}, and k of them by k times as much. The "
            "distances above do not count this."
        )
    if spans is None:
        return
    become = {"mask": "its kind", "resample": "a word drawn from public counts"}
    hidden = " or ".join(words for how, words in become.items() if how in spans.treatments)
    yield (
        f"Each recognized span becomes one token: {hidden}. Two such spans of one kind cannot be distinguished (0 "
        "nats, at any epsilon), if the rest of the text has the same tokens and, with either, the same recognized "
        "spans."
    )
    if "names" in spans.find:
        yield (
            "'names' looks a second time, in the same text, for the parts of a name that it recognized: a word "
            "elsewhere that is a part of one name, and not of another, is masked with the first alone, which tells the "
            "two apart."
        )
    yield (
        "What no recognizer finds is a word like any other: with the bound of its kind if the vocabulary has it, and "
        "drawn from a law that does not depend on it if not, unless unknown words are kept."
    )


def of_passages(
    piece: Guarantee, per: Per, duplicates: Duplicates, *, most_pieces: int | None, overlap: bool, encoder: str | None
) -> Iterator[str]:
    """Yield the promises of a release by passages, each with the guarantee ``piece``; the built-in encoder is None."""
    if per == "document":
        yield "A whole text costs epsilon once, for any two texts of any length."
    else:
        most = "" if most_pieces is None else f", n at most {most_pieces:,}"
        yield (
            f"A text of n {per}s costs n times epsilon{most}: the log-ratio of any output for two texts of equally "
            f"many {per}s is at most n times {rounded_up(piece.plain_ldp)} nats."
        )
    yield " ".join(piece.notes)
    if overlap:
        yield OVERLAP
    else:
        yield NO_AUTHOR
        yield (
            "Every released passage was public before: the release contains a name, number or phrase of a private text "
            "only if the store does."
        )
    if encoder is not None:
        yield (
            f"Vectors are made by {encoder}, on the machines that work. Equal bytes across processors are promised for "
            "the built-in encoder alone."
        )
    if duplicates == "same-noise":
        yield "Equal passages get equal replacements, so all equal passages count as one."

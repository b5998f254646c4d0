"""The pictures of a release's pages: the effect of its exact law on a public sentence.

Sentence, space and law are public, and draws use the published test key, never the release's key, so nothing here
depends on a corpus.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corpusveil.budget import Budget
from corpusveil.collocations.collocation_table import Collocations
from corpusveil.errors import NoClosedForm, UserError
from corpusveil.kernel.prepared import prepare
from corpusveil.mechanisms import Mechanism
from corpusveil.recognizers.registry import kinds, make
from corpusveil.sampling.keys import Key
from corpusveil.storage.documents import Documents
from corpusveil.text.classes import WORD
from corpusveil.text.policy import DROP, KEEP, MASK, MASKS, PRIVATIZE, RESAMPLE, SPAN, TextPolicy
from corpusveil.text.spans import OTHERS, SpanPolicy, Spans, covered
from corpusveil.text.text_writer import assign_roles
from corpusveil.text.tokens import string_buffers
from corpusveil.transforms.release.release import Release

SENTENCES = (
    "On Tuesday Dr Okonjo told anna@example.org that the river had risen 30 cm near the old bridge.",
    "Am Dienstag schrieb Dr. Okonjo an anna@example.org, dass der Fluss bei der Brücke 30 cm gestiegen war.",
    "Mardi, le docteur Okonjo a écrit à anna@example.org que la rivière était montée de 30 cm près du pont.",
    "El martes el doctor Okonjo escribió a anna@example.org que el río subió 30 cm cerca del puente.",
    "Martedì il dottor Okonjo ha scritto ad anna@example.org che il fiume è salito di 30 cm al ponte.",
    "Na terça o doutor Okonjo escreveu a anna@example.org que o rio subiu 30 cm perto da ponte.",
    "Dinsdag schreef dokter Okonjo aan anna@example.org dat de rivier bij de brug 30 cm was gestegen.",
)  # fmt: skip
"""Public sentences of this package, with words, a name, a number and a contact."""
LEAST_KNOWN = 0.5
"""The least share of a sentence's words that a space must know; a space of another language has no sentence."""
DOCUMENT_WORDS = 100
"""The number of replaced words in the example document, if the budget is per document."""
LIKELY = 3
"""The number of other words that a chip names."""
DIGITS = 6
KINDS = {
    PRIVATIZE: "replaced", RESAMPLE: "drawn", MASK: "masked", KEEP: "kept", DROP: "dropped",
}  # fmt: skip

Likely = tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Chip:
    """A token of the sentence and its treatment: ``kind`` is a value of ``KINDS``.

    For a replaced token, ``stays`` is the probability that it stays unchanged and ``likely`` are the likeliest other
    words; for a masked token, ``mask`` is the text in its place.
    """

    text: str
    kind: str
    mask: str = ""
    stays: float | None = None
    likely: Likely = ()


@dataclass(frozen=True, slots=True)
class Illustration:
    """Pictures of a release at the ``epsilon`` of a word: the sentence, and one possible result.

    ``chips`` and ``result`` are empty if the space knows no bundled sentence. ``document_words``: epsilon is that of a
    word in a document with this many replaced words.
    """

    epsilon: float
    chips: tuple[Chip, ...]
    result: str
    document_words: int | None


@functools.lru_cache(maxsize=4)
def illustrate(
    mechanism: Mechanism,
    budget: Budget,
    policy: TextPolicy,
    collocations: Collocations | None = None,
    spans: SpanPolicy | None = None,
) -> Illustration | None:
    """Return the pictures of releases with these parts.

    Of ``spans``, only those of built-in recognizers are shown: a file of terms is private.

    None if they take long, or the mechanism is not defined at the epsilon or has no exact law.
    """
    of_document, epsilon = budget.per == "document", word_epsilon(budget)
    if mechanism.each_epsilon_is_costly and of_document:
        return None
    spans = None if spans is None else _built_in(spans)
    try:
        sentence, tokens = _sentence(mechanism, policy, collocations, spans)
        chips = _chips(mechanism, epsilon, tokens)
        result = _drawn(sentence, mechanism, epsilon, policy, collocations, spans) if sentence else ""
    except (UserError, NoClosedForm):
        return None
    return Illustration(epsilon, chips, result, DOCUMENT_WORDS if of_document else None)


def word_epsilon(budget: Budget) -> float:
    """Return the epsilon of a word; with a budget per document, that of a word among ``DOCUMENT_WORDS``."""
    if budget.per == "token":
        return budget.epsilon
    return budget.share_of(DOCUMENT_WORDS)


def _built_in(spans: SpanPolicy) -> SpanPolicy | None:
    """Return the part of a span policy that anyone can repeat, in one document; None if there is none."""
    find = [name for name in spans.find if kinds([name]) is not None]
    if not find:
        return None
    of_rules = kinds(find) or set()
    return SpanPolicy(find=find, treat=[pair for pair in spans.pairs if pair[0] in {*of_rules, OTHERS}])


class _Token(NamedTuple):
    """A token of a sentence: its text, the code of its policy, its mask, and its id."""

    text: str
    action: int
    mask: str
    id: int


def _sentence(
    mechanism: Mechanism, policy: TextPolicy, collocations: Collocations | None, spans: SpanPolicy | None
) -> tuple[str, list[_Token]]:
    """Return the sentence of which the space knows most words, and its tokens; empty without one."""
    prepared = prepare(mechanism.space, policy, collocations)
    shown: tuple[str, list[_Token]] = ("", [])
    most = LEAST_KNOWN
    for sentence in SENTENCES:
        data, documents = string_buffers(pa.array([sentence], pa.large_string()))
        tokens = prepared.tokenizer.tokens(data, documents)
        known = float((tokens.ids[tokens.classes == WORD] >= 0).mean())
        if known < most or (shown[0] and known == most):
            continue
        treated: Iterator[tuple[int, str]] = iter(())
        if spans is not None:
            recognized = Spans.joined(make(name, mechanism.space)(tokens) for name in spans.find)
            tokens, marked = covered(tokens, recognized)
            treated = iter([_treated(marked.names[kind], spans) for kind in marked.kinds.tolist()])
        if prepared.joiner is not None:
            tokens = prepared.joiner(tokens)
        roles = np.empty(len(tokens), dtype=np.uint8)
        assign_roles(tokens.classes, tokens.ids, prepared.roles, roles, np.zeros(len(MASKS), dtype=np.int64))
        listed = [
            _Token(tokens.text(at), action, mask, int(tokens.ids[at]))
            for at, role in enumerate(roles.tolist())
            for action, mask in (next(treated) if role == SPAN else (int(prepared.actions[role]), MASKS[role]),)
        ]
        shown, most = (sentence, listed), known
    return shown


def _treated(kind: str, spans: SpanPolicy) -> tuple[int, str]:
    """Return the code of the policy of a kind, and its mask."""
    return {"mask": MASK, "resample": RESAMPLE}[spans.of(kind)], f"[{kind}]"


def _chips(mechanism: Mechanism, epsilon: float, tokens: list[_Token]) -> tuple[Chip, ...]:
    """Return the tokens with their treatment."""
    ids = sorted({token.id for token in tokens if token.action == PRIVATIZE})
    laws = mechanism.distributions(np.array(ids, dtype=np.int32), epsilon) if ids else ()
    chips = []
    for token in tokens:
        chip = Chip(token.text, KINDS[token.action], mask=token.mask if token.action == MASK else "")
        if token.action == PRIVATIZE:
            (_, stays), *others = _likeliest(mechanism, laws[ids.index(token.id)], LIKELY + 1, token.id)
            chip = replace(chip, stays=stays, likely=tuple(pair for pair in others if pair[1] > 0))
        chips.append(chip)
    return tuple(chips)


def _likeliest(mechanism: Mechanism, law: npt.NDArray[np.float64], count: int, word: int) -> Likely:
    """Return the word itself and its likeliest replacements, ``count`` in all, with their probabilities."""
    order = np.argsort(-law, kind="stable")[:count]
    others = [int(id) for id in order if id != word][: count - 1]
    return tuple((mechanism.space.word(id).replace("_", " "), round(float(law[id]), DIGITS)) for id in (word, *others))


def _drawn(
    text: str, mechanism: Mechanism, epsilon: float, policy: TextPolicy, collocations: Collocations | None,
    spans: SpanPolicy | None,
) -> str:  # fmt: skip
    """Return one possible result, drawn under the published test key."""
    release = Release(
        mechanism, Budget(epsilon), policy, key=Key.for_tests(), collocations=collocations, accept_no_guarantee=True,
        spans=spans,
    )  # fmt: skip
    made, _ = release.kernel().privatize(Documents(pa.array([text], pa.large_string()), ["example"]))
    return str(made[0].as_py())

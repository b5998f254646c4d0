"""The pictures of a release's pages: the effect of its exact law on a public sentence and on one of its words.

Sentence, space and law are public, and draws use the published test key, never the release's key, so nothing here
depends on a corpus.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corpusveil.budget import Budget
from corpusveil.choices import OF_CONTEXT, RiskOf
from corpusveil.collocations.collocation_table import Collocations
from corpusveil.errors import NoClosedForm, UserError
from corpusveil.kernel.prepared import prepare
from corpusveil.mechanisms import Mechanism
from corpusveil.mechanisms.on_lists import OnLists
from corpusveil.mechanisms.risk import prior_of, reader_guesses, word_risk
from corpusveil.recognizers.registry import BUILT_IN, kinds, make
from corpusveil.sampling.draws import DrawKey, Draws
from corpusveil.sampling.keys import Key
from corpusveil.text.classes import WORD
from corpusveil.text.policy import DROP, KEEP, MASK, MASKS, PRIVATIZE, RESAMPLE, SPAN, SURROGATE, TextPolicy
from corpusveil.text.spans import OTHERS, SpanPolicy, Spans, covered
from corpusveil.text.text_writer import assign_roles
from corpusveil.text.tokens import string_buffers
from corpusveil.transforms.release.document_figures import SAMPLES
from corpusveil.transforms.release.release import Release
from corpusveil.transforms.release.risk import EpsilonAtRisk

if TYPE_CHECKING:
    from corpusveil.language.ladder import Ladder
    from corpusveil.language.model import LanguageModel

SENTENCES = (
    ("On Tuesday Dr Okonjo told anna@example.org that the river had risen 30 cm near the old bridge.", "river"),
    ("Am Dienstag schrieb Dr. Okonjo an anna@example.org, dass der Fluss bei der Brücke 30 cm gestiegen war.", "fluss"),
    ("Mardi, le docteur Okonjo a écrit à anna@example.org que la rivière était montée de 30 cm près du pont.", "pont"),
    ("El martes el doctor Okonjo escribió a anna@example.org que el río subió 30 cm cerca del puente.", "puente"),
    ("Martedì il dottor Okonjo ha scritto ad anna@example.org che il fiume è salito di 30 cm al ponte.", "fiume"),
    ("Na terça o doutor Okonjo escreveu a anna@example.org que o rio subiu 30 cm perto da ponte.", "rio"),
    ("Dinsdag schreef dokter Okonjo aan anna@example.org dat de rivier bij de brug 30 cm was gestegen.", "rivier"),
)  # fmt: skip
"""Public sentences of this package, with words, a name, a number and a contact; and the word for the bars."""
LEAST_KNOWN = 0.5
"""The least share of a sentence's words that a space must know; a space of another language has no sentence."""
DOCUMENT_WORDS = 100
"""The number of replaced words in the example document, if the budget is per document."""
LIKELY = 3
"""The number of other words that a chip names."""
BARS = 5
"""The number of words that a bar chart names."""
MANY_WORDS = 50_000
"""From this vocabulary size on, slow parts are left out: guesses at other epsilons, and sampled laws."""
DIGITS = 6
KINDS = {
    PRIVATIZE: "replaced", RESAMPLE: "drawn", MASK: "masked", KEEP: "kept", DROP: "dropped", SURROGATE: "surrogate",
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
class Guess:
    """Shares of the words of public text that an informed reader guesses, and guesses blindly, without the release.

    ``of`` says which words count, and whether the reader sees them one by one; ``beside`` is the share of the others
    (``reader_guesses``).
    """

    share: float
    blind: float
    of: RiskOf = "word"
    beside: float | None = None

    def sentence(self) -> str:
        """Say it in one sentence."""
        said = reader_guesses(self.share, self.of, self.beside, self.blind)
        return said[0].upper() + said[1:]


@dataclass(frozen=True, slots=True)
class Panel:
    """One epsilon of a word: its replacements (``bars``; ``rest`` is any other word), and what a reader guesses."""

    epsilon: float
    is_release: bool
    bars: Likely
    rest: float
    guess: Guess | None


@dataclass(frozen=True, slots=True)
class Illustration:
    """Pictures of a release: the sentence, one possible result, and three epsilons, the middle one the release's.

    ``chips``, ``result`` and ``word`` are empty if the space knows no bundled sentence. ``exact`` is False if shares
    come from ``SAMPLES`` draws a word. ``document_words``: epsilon is that of a word in a document with this many
    replaced words. ``ladder``: what ever stronger readers guess; None if it takes long.
    """

    chips: tuple[Chip, ...]
    result: str
    word: str
    panels: tuple[Panel, ...]
    exact: bool
    document_words: int | None
    ladder: Ladder | None = None

    @property
    def own(self) -> Panel:
        """The release's own panel."""
        return next(panel for panel in self.panels if panel.is_release)


@functools.lru_cache(maxsize=4)
def illustrate(
    mechanism: Mechanism,
    budget: Budget,
    policy: TextPolicy,
    collocations: Collocations | None = None,
    risk: EpsilonAtRisk | None = None,
    model: LanguageModel | None = None,
    spans: SpanPolicy | None = None,
) -> Illustration | None:
    """Return the pictures of releases with these parts; with a public ``model``, of readers who have it as well.

    Of ``spans``, only those of built-in recognizers are shown: a file of terms is private.

    None if they take long, or the mechanism is not defined at the epsilon.
    """
    of_document, epsilon = budget.per == "document", word_epsilon(budget)
    if mechanism.each_epsilon_is_costly and of_document:
        return None
    epsilons = (epsilon,) if mechanism.each_epsilon_is_costly else (epsilon / 2, epsilon, 2 * epsilon)
    spans = None if spans is None else _built_in(spans)
    try:
        sentence, word, tokens = _sentence(mechanism, policy, collocations, spans)
        chips, exact = _chips(mechanism, epsilon, tokens)
        panels = [_panel(mechanism, value, word, risk, policy, is_release=value == epsilon) for value in epsilons]
        result = _drawn(sentence, mechanism, epsilon, policy, collocations, spans) if sentence else ""
        ladder = _ladder(mechanism, epsilon, policy, risk, model)
    except (UserError, NoClosedForm):
        return None
    return Illustration(
        chips, result, "" if word is None else _written(mechanism, word),
        tuple(panel for panel in panels if panel is not None), exact, DOCUMENT_WORDS if of_document else None,
        ladder,
    )  # fmt: skip


def word_epsilon(budget: Budget) -> float:
    """Return the epsilon of a word; with a budget per document, that of a word among ``DOCUMENT_WORDS``."""
    if budget.per == "token":
        return budget.epsilon
    return max(budget.of_words(DOCUMENT_WORDS).items(), key=lambda item: item[1])[0]


def _built_in(spans: SpanPolicy) -> SpanPolicy | None:
    """Return the part of a span policy that anyone can repeat, in one document; None if there is none."""
    find = [name for name in spans.find if name in BUILT_IN]
    if not find:
        return None
    found = kinds(find) or set()
    treat = [(kind, how.partition(":")[0]) for kind, how in spans.pairs if kind in {*found, OTHERS}]
    return SpanPolicy(find=find, treat=treat, pseudonyms="document")


class _Token(NamedTuple):
    """A token of a sentence: its text, the code of its policy, its mask, and its id."""

    text: str
    action: int
    mask: str
    id: int


def _sentence(
    mechanism: Mechanism, policy: TextPolicy, collocations: Collocations | None, spans: SpanPolicy | None
) -> tuple[str, int | None, list[_Token]]:
    """Return the sentence of which the space knows most words, the word to show, and the tokens; empty without one."""
    prepared = prepare(mechanism.space, policy, collocations)
    shown: tuple[str, int | None, list[_Token]] = ("", None, [])
    most = LEAST_KNOWN
    for sentence, word in SENTENCES:
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
        replaced = [token for token in listed if token.action == PRIVATIZE]
        looked_at = max(replaced, key=lambda token: (token.text.lower() == word, len(token.text)), default=None)
        shown, most = (sentence, None if looked_at is None else looked_at.id, listed), known
    return shown


def _treated(kind: str, spans: SpanPolicy) -> tuple[int, str]:
    """Return the code of the policy of a kind, and what is written, if it is a mask or a label."""
    how, _ = spans.of(kind)
    if how == "pseudonym":
        return MASK, f"{kind.upper()}_…"
    return {"mask": MASK, "resample": RESAMPLE, "surrogate": SURROGATE}[how], f"[{kind}]"


def _chips(mechanism: Mechanism, epsilon: float, tokens: list[_Token]) -> tuple[tuple[Chip, ...], bool]:
    """Return the tokens with their treatment, and whether it is computed from the exact law."""
    ids = sorted({token.id for token in tokens if token.action == PRIVATIZE})
    if not ids:
        return tuple(Chip(token.text, KINDS[token.action]) for token in tokens), True
    laws, exact = _laws(mechanism, np.array(ids, dtype=np.int32), epsilon)
    chips = []
    for token in tokens:
        chip = Chip(token.text, KINDS[token.action], mask=token.mask if token.action == MASK else "")
        if token.action == PRIVATIZE:
            (_, stays), *others = _likeliest(mechanism, laws[ids.index(token.id)], LIKELY + 1, token.id)
            chip = replace(chip, stays=stays, likely=tuple(pair for pair in others if pair[1] > 0))
        chips.append(chip)
    return tuple(chips), exact


def _panel(
    mechanism: Mechanism, epsilon: float, word: int | None, risk: EpsilonAtRisk | None, policy: TextPolicy, *,
    is_release: bool,
) -> Panel | None:  # fmt: skip
    """Return a panel; None for an epsilon at which the mechanism is not defined."""
    try:
        bars: Likely = ()
        if word is not None:
            laws, _ = _laws(mechanism, np.array([word], dtype=np.int32), epsilon)
            bars = _likeliest(mechanism, laws[0], BARS, word)
        guess = _guess(mechanism, epsilon, risk, policy, is_release=is_release)
    except UserError:
        if is_release:
            raise
        return None
    rest = max(0.0, round(1.0 - sum(share for _, share in bars), DIGITS)) if bars else 0.0
    return Panel(epsilon, is_release, bars, rest, guess)


def _guess(
    mechanism: Mechanism, epsilon: float, risk: EpsilonAtRisk | None, policy: TextPolicy, *, is_release: bool
) -> Guess | None:
    """Return what a reader guesses: from the risk that chose epsilon, or computed, which is quick on lists."""
    of: RiskOf = "content" if risk is None else risk.risk_of
    if risk is not None and is_release:
        blind = prior_of(mechanism.space).guess if risk.blind is None else risk.blind
        return Guess(risk.measured, round(blind, DIGITS), of, risk.beside)
    weighed = risk is not None and risk.weights is not None
    slow = of in OF_CONTEXT or weighed or len(mechanism.space) >= MANY_WORDS
    if not isinstance(mechanism, OnLists) or (not is_release and slow):
        return None
    guessed = word_risk(mechanism, epsilon, policy=policy)
    some, others = (guessed, guessed.content) if of == "word" else (guessed.content, guessed)
    return Guess(round(some.share, DIGITS), round(some.blind, DIGITS), of, round(others.share, DIGITS))


def _ladder(
    mechanism: Mechanism, epsilon: float, policy: TextPolicy, risk: EpsilonAtRisk | None, model: LanguageModel | None
) -> Ladder | None:
    """Return readers, without the dial; None if they take long: without lists and a model of public text."""
    if model is None and not isinstance(mechanism, OnLists):
        return None
    module = importlib.import_module("corpusveil.language.ladder")  # only here: runs of a release load no lattice
    ladder: Ladder = module.reader_ladder(mechanism, epsilon, model, policy=policy, dial=False)
    if model is None and risk is not None and risk.risk_of in OF_CONTEXT and risk.weights is None:
        shares = (risk.measured, risk.beside) if risk.risk_of == "context" else (risk.beside, risk.measured)
        known = module.Rung(module.BY_MODEL, module.MEASURED, *shares)
        ladder = replace(ladder, rungs=(*ladder.rungs[:2], known, *ladder.rungs[3:]))
    return ladder


def _laws(mechanism: Mechanism, ids: npt.NDArray[np.int32], epsilon: float) -> tuple[npt.NDArray[np.float64], bool]:
    """Return the laws of N words, float64 [N, V], and whether they are exact.

    Otherwise they are shares of public draws. Raises NoClosedForm if there is no law and drawing takes long.
    """
    try:
        return mechanism.distributions(ids, epsilon), True
    except NoClosedForm:
        if len(mechanism.space) >= MANY_WORDS:
            raise
        draws = Draws.of_tokens(DrawKey.derive(Key.for_tests(), "00" * 32), ids.size * SAMPLES)
        drawn = mechanism.privatize(np.repeat(ids, SAMPLES), epsilon, draws)
        laws = np.zeros((ids.size, len(mechanism.space)))
        np.add.at(laws, (np.repeat(np.arange(ids.size), SAMPLES), drawn), 1.0 / SAMPLES)
        return laws, False


def _likeliest(mechanism: Mechanism, law: npt.NDArray[np.float64], count: int, word: int) -> Likely:
    """Return the word itself and its likeliest replacements, ``count`` in all, with their probabilities."""
    order = np.argsort(-law, kind="stable")[:count]
    others = [int(id) for id in order if id != word][: count - 1]
    return tuple((_written(mechanism, id), round(float(law[id]), DIGITS)) for id in (word, *others))


def _written(mechanism: Mechanism, id: int) -> str:
    return mechanism.space.word(id).replace("_", " ")


def _drawn(
    text: str, mechanism: Mechanism, epsilon: float, policy: TextPolicy, collocations: Collocations | None,
    spans: SpanPolicy | None,
) -> str:  # fmt: skip
    """Return one possible result, drawn under the published test key."""
    labelled = spans is not None and "pseudonym" in spans.treatments
    release = Release(
        mechanism, Budget(epsilon), policy, Key.for_tests(), collocations, accept_no_guarantee=True, spans=spans,
        pseudonyms=Key(Key.for_tests().derive("pseudonyms", b"", 32)) if labelled else None,
    )  # fmt: skip
    made, _ = release.kernel().privatize(pa.array([text], pa.large_string()), ["example"], "text")
    return str(made[0].as_py())

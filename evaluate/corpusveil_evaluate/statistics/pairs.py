"""Words of originals beside what they became, by the tokens and spans that the release itself had."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corpusveil.errors import NoClosedForm, SettingError
from corpusveil.kernel.kernel import Kernel
from corpusveil.kernel.prepared import prepare
from corpusveil.text.classes import SPAN, WORD
from corpusveil.text.policy import DROP, KEEP, MASK, PRIVATIZE, REPLACE
from corpusveil.text.spans import Spans, covered
from corpusveil.text.tokens import Tokens
from corpusveil_evaluate.readers.ngrams.denoise import written_for_spans
from corpusveil_evaluate.statistics.word_statistics import RUNS, word_statistics

AT_ONCE = 256
_SAMPLED = 400
_ERRORS = 5
"""How many standard errors a measured share may differ from that of the law."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """W word tokens of originals, lower case, and whether the release has the ``same`` there; bool [W].

    A word that became part of a mask, or was dropped, is not the same. ``left_out`` of ``texts`` documents have other
    tokens than the release says, so their words are not among these. ``replaced`` are the ids of the words that the
    mechanism drew for, int32 [K], and ``stayed`` whether it drew the same, bool [K], of ``documents`` int64 [K].
    """

    words: list[str]
    same: npt.NDArray[np.bool_]
    texts: int
    left_out: int
    replaced: npt.NDArray[np.int32]
    stayed: npt.NDArray[np.bool_]
    documents: npt.NDArray[np.int64]

    def share(self, among: Container[str] | None = None) -> tuple[float, int]:
        """Return the share of the words, or of those ``among`` some, that are not the same; and how many these are."""
        wanted = np.array([among is None or word in among for word in self.words], np.bool_)
        count = int(wanted.sum())
        return (float((~self.same[wanted]).mean()) if count else 0.0), count

    def check(self, kernel: Kernel) -> None:
        """Raise SettingError if more or fewer words are unchanged than the law of the mechanism and chance explain."""
        if not self.replaced.size or kernel.budget.per != "token":
            return
        sampled = np.random.default_rng(0).choice(self.replaced, min(_SAMPLED, self.replaced.size))
        try:
            law = np.array([
                kernel.mechanism.distribution(word, kernel.budget.epsilon)[word] for word in sampled.tolist()
            ])  # fmt: skip
        except NoClosedForm:
            law = np.array([word_statistics(kernel.mechanism, kernel.budget.epsilon, sampled, RUNS).retention])
        expected, measured = float(law.mean()), float(self.stayed.mean())
        beyond = np.bincount(self.documents, weights=self.stayed - expected)  # words of a document may be copies
        errors = float(beyond @ beyond) / self.stayed.size**2, float(law.var()) / law.size
        error = max(sum(errors), expected * (1 - expected) / self.stayed.size) ** 0.5
        if abs(measured - expected) > _ERRORS * error:
            raise SettingError(
                f"{measured:.1%} of {self.stayed.size:,} replaced words are unchanged, and the release says "
                f"{expected:.1%} (± {error:.1%}): these private texts are not what this release made of these "
                "originals. Give the original itself, with the id column of the release."
            )


def pairs_of(kernel: Kernel, originals: Sequence[str], privates: Sequence[str]) -> Pairs:
    """Pair the words of documents with what they became in a release of this kernel's settings, under any key."""
    words: list[str] = []
    same, stayed = [np.zeros(0, np.bool_)], [np.zeros(0, np.bool_)]
    replaced, documents = [np.zeros(0, np.int32)], [np.zeros(0, np.int64)]
    left_out = 0
    prepared = prepare(kernel.mechanism.space, kernel.policy, kernel.collocations)
    for start in range(0, len(originals), AT_ONCE):
        after = _released(prepared.tokenizer.tokenize(list(privates[start : start + AT_ONCE])))
        before, actions = kernel.read(pa.array(originals[start : start + AT_ONCE], pa.large_string()))
        written, of_texts = actions != DROP, np.repeat(np.arange(before.offsets.size - 1), np.diff(before.offsets))
        count = np.bincount(of_texts[written], minlength=before.offsets.size - 1)
        paired = count == np.diff(after.offsets)
        one = np.flatnonzero(written & paired[of_texts])
        other = np.flatnonzero(np.repeat(paired, np.diff(after.offsets)))
        equal = np.array(
            [
                before.text(a).lower() == after.text(b).lower()
                for a, b in zip(one.tolist(), other.tolist(), strict=True)
            ],
            np.bool_,
        )
        masked = np.isin(actions[one], (MASK, REPLACE)) == (after.classes[other] == SPAN)
        is_sound = np.where(actions[one] == KEEP, equal, masked)
        paired &= np.bincount(of_texts[one], weights=~is_sound, minlength=paired.size) == 0
        left_out += int((~paired).sum())
        stays = paired[of_texts[one]]
        one, equal = one[stays], equal[stays]
        unchanged = before.starts[one[equal & (before.classes[one] == WORD)]]
        drawn = actions[one] == PRIVATIZE
        replaced.append(before.ids[one[drawn]].astype(np.int32))
        stayed.append(equal[drawn])
        documents.append(of_texts[one[drawn]] + start)
        plain = prepared.tokenizer.tokens(before.data, before.documents)  # with the words in spans
        is_word = (plain.classes == WORD) & np.repeat(paired, np.diff(plain.offsets))
        words += [plain.text(at).lower() for at in np.flatnonzero(is_word).tolist()]
        same.append(np.isin(plain.starts[is_word], unchanged))
    return Pairs(
        words, np.concatenate(same), len(originals), left_out, np.concatenate(replaced), np.concatenate(stayed),
        np.concatenate(documents),
    )  # fmt: skip


def _released(tokens: Tokens) -> Tokens:
    """Return the tokens of released texts, what was written for a span as one."""
    places = np.array(written_for_spans(tokens), np.int64).reshape(-1, 2)
    spans = Spans(places[:, 0], places[:, 1], np.zeros(len(places), np.int64), ("span",))
    return covered(tokens, spans)[0]

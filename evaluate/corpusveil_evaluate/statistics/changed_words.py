"""PP and its complement: which words of the originals changed, of all words and of the words in the space."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from corpusveil.errors import DataError, UserError
from corpusveil.text.languages import function_words
from corpusveil_evaluate.statistics.statistic import ALL_WORDS, Evidence, Reading, register
from corpusveil_evaluate.terms import Terms, check_pairs, joint_terms


@dataclass(frozen=True, slots=True)
class ChangedShare:
    """PP: ``share`` (0 to 1) of ``words`` word tokens of the originals that changed; 0 where there are none.

    ``left_out`` of ``texts`` pairs are ignored, since their tokens could not be aligned.
    """

    share: float
    words: int
    texts: int
    left_out: int


def changed_share(
    originals: Sequence[str], privates: Sequence[str], among: Container[str] | None = None
) -> ChangedShare:
    """Return PP, the share of the originals' words that changed, by position; ``among`` given, of these words only.

    Two texts are aligned by tokens if they have equally many tokens (a word may be replaced by any token), otherwise by
    words if they have equally many words. All other pairs are left out, and counted. Capitals are no change. Raises
    UserError unless each original has its private text, and if all pairs are left out.
    """
    check_pairs(originals, privates)
    vocabulary, (before, after) = joint_terms(originals, privates)
    wanted = np.array([among is None or word in among for word in vocabulary.words] + [False])
    whole = np.diff(before.offsets) == np.diff(after.offsets)
    words, others = before.words(), after.words()
    by_words = ~whole & (np.diff(words.offsets) == np.diff(others.offsets))
    total = changed = 0
    for source, target, paired in ((before, after, whole), (words, others, by_words)):
        first, second = _of(source, paired), _of(target, paired)
        word = wanted[first]  # -1, not a word, is the last
        total += int(word.sum())
        changed += int((word & (first != second)).sum())
    left_out = int((~(whole | by_words)).sum())
    if left_out == len(originals):
        raise DataError(
            "Every private text differs from its original in the number of words or tokens, so words cannot be "
            "compared; give matching texts."
        )
    return ChangedShare(changed / total if total else 0.0, total, len(originals), left_out)


def _of(terms: Terms, kept: npt.NDArray[np.bool_]) -> npt.NDArray[np.int32]:
    return terms.ids[np.repeat(kept, np.diff(terms.offsets))]


def _among(evidence: Evidence, among: Container[str] | None = None) -> ChangedShare:
    """Return which words changed, by the tokens of the release where they are known."""
    if (pairs := evidence.pairs) is None:
        return changed_share(evidence.originals, evidence.privates, among)
    return ChangedShare(*pairs.share(among), pairs.texts, pairs.left_out)


def _paired(evidence: Evidence) -> ChangedShare | None:
    """Return which words changed; None if words cannot be aligned."""
    if not evidence.aligned:
        return None
    try:
        return _among(evidence)
    except UserError:  # if a mechanism or policy adds or drops words, positions cannot be compared
        return None


def _all(evidence: Evidence) -> ChangedShare | None:
    changed = evidence.once(_paired)
    return changed if changed is not None and changed.words else None


def _known(evidence: Evidence) -> ChangedShare | None:
    if evidence.space is None or evidence.once(_all) is None:
        return None
    return _among(evidence, evidence.space.vocabulary)


def _unchanged(evidence: Evidence) -> Iterator[Reading]:
    if (changed := evidence.once(_all)) is not None:
        note = f"; {changed.left_out:,} documents are left out, since their words cannot be paired"
        note = f"of {changed.words:,} words, known and unknown{note if changed.left_out else ''}"
        yield Reading(1 - changed.share, note=note)


def _known_unchanged(evidence: Evidence) -> Iterator[Reading]:
    if (known := evidence.once(_known)) is not None and known.words:
        expected = "" if evidence.promised is None else f"; {evidence.promised:.1%} are expected"
        yield Reading(1 - known.share, note=f"of the words that the space has{expected}")


@dataclass(frozen=True, slots=True)
class _ContentWords:
    """All words but the stop words."""

    stop_words: frozenset[str]

    def __contains__(self, word: object) -> bool:
        return word not in self.stop_words


def _content_unchanged(evidence: Evidence) -> Iterator[Reading]:
    if evidence.once(_all) is not None:
        stop_words = function_words(None if evidence.space is None else evidence.space.language)
        content = _among(evidence, _ContentWords(stop_words))
        note = f"of {content.words:,} words that are not among the {len(stop_words)} stop words"
        yield from [Reading(1 - content.share, note=note)] if content.words else []


def _unknown(evidence: Evidence) -> Iterator[Reading]:
    changed, known = evidence.once(_all), evidence.once(_known)
    if changed is not None and known is not None:
        yield Reading(
            1 - known.words / changed.words,
            note="words outside the vocabulary of the space; no mechanism replaces them",
        )


def _changed(evidence: Evidence) -> Iterator[Reading]:
    if (changed := evidence.once(_all)) is not None:
        yield Reading(changed.share)


def _unpaired(evidence: Evidence) -> Iterator[Reading]:
    changed = evidence.once(_paired)
    yield Reading(1.0 if changed is None else changed.left_out / changed.texts)


register("words unchanged", group="privacy", of=ALL_WORDS, tile=True, compute=_unchanged)
register("known words unchanged", group="privacy", compute=_known_unchanged)
register("content words unchanged", group="privacy", compute=_content_unchanged)
register("unknown words", group="privacy", compute=_unknown)
PP = register("words changed (PP)", group="privacy", key="pp", of=ALL_WORDS, compute=_changed)
register("documents whose words cannot be paired", key="unpaired", compute=_unpaired)

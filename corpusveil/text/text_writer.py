"""Privatized tokens back to text: one pass over flat arrays into one byte buffer."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from corpusveil.compiled import called, compiled, inlined
from corpusveil.text import classes, policy
from corpusveil.text.characters import LETTER, UPPER
from corpusveil.text.utf8 import decode, kind_of, lower_into
from corpusveil.wide import WIDTH, copy_sixteen, fetch

_PRIVATIZE, _RESAMPLE, _MASK, _DROP, _KEEP, _SURROGATE = (
    policy.PRIVATIZE,
    policy.RESAMPLE,
    policy.MASK,
    policy.DROP,
    policy.KEEP,
    policy.SURROGATE,
)
_PUNCTUATION_CLASS = classes.PUNCTUATION
_LETTER_CLASSES = (classes.WORD, classes.NUMBER, classes.CONTACT)

_AHEAD = 6
"""So many tokens before it is written a word is brought into the cache, and before that its place."""

LOWER_CASE, TITLE_CASE, UPPER_CASE = range(3)


_ROLES = np.full(256, policy.OTHER, dtype=np.uint8)
_ROLES[[classes.NUMBER, classes.PUNCTUATION, classes.CONTACT]] = policy.NUMBER, policy.PUNCTUATION, policy.CONTACT


@compiled
def assign_roles(token_classes: Any, ids: Any, is_stop: Any, roles: Any, counts: Any) -> None:
    """Write the role of each token to ``roles`` uint8, and add to ``counts`` int64 [7] how many have each.

    ``is_stop`` says which ids are stop words.
    """
    for t in range(ids.size):
        role = _ROLES[token_classes[t]]
        if token_classes[t] == classes.WORD:
            word = ids[t]
            if word < 0:
                role = policy.UNKNOWN_WORD
            elif is_stop[word]:
                role = policy.STOP_WORD
            else:
                role = policy.KNOWN_WORD
        roles[t] = role
        counts[role] += 1


@compiled
def case_pattern(data: Any, start: int, end: int, kinds: Any) -> int:
    """Return whether a token begins with a capital, is all capitals (two letters or more), or neither."""
    letters = 0
    upper = 0
    first = False
    i = start
    while i < end:
        code, length = decode(data, i, end)
        if kind_of(code, kinds) == LETTER:
            capital = kinds[code] & UPPER != 0
            letters += 1
            if capital:
                upper += 1
                if letters == 1:
                    first = True
        i += length
    if letters > 1 and upper == letters:
        return UPPER_CASE
    return TITLE_CASE if first else LOWER_CASE


@called
def _copy(source: Any, start: int, end: int, out: Any, at: int) -> int:
    for k in range(start, end):
        out[at] = source[k]
        at += 1
    return at


@inlined
def _copy_wide(source: Any, start: int, end: int, out: Any, at: int) -> int:
    """Copy, and a few bytes more: both arrays have ``WIDTH`` bytes to spare."""
    for k in range(0, end - start, WIDTH):
        copy_sixteen(source, start + k, out, at + k)
    return at + end - start


@called
def _copy_cased(source: Any, start: int, end: int, out: Any, at: int, pattern: int) -> int:
    """Copy ASCII text in lower case, its first letter or all of them made capitals by a case pattern."""
    for k in range(start, end):
        byte = source[k]
        if pattern != LOWER_CASE and 0x61 <= byte <= 0x7A:
            byte -= 0x20
            if pattern == TITLE_CASE:
                pattern = LOWER_CASE
        out[at] = byte
        at += 1
    return at


@compiled
def bytes_of(words: Any, longest: Any) -> Any:
    """Return how many bytes words have at most; int32 [K], ``longest`` int64 [V] being that of each word."""
    total = np.int64(0)
    for k in range(words.size):
        total += longest[words[k]]
    return total


def output_bound(
    size: int, counts: npt.NDArray[np.int64], actions: npt.NDArray[np.uint8], drawn: int,
    masks: npt.NDArray[np.int64], keep: bool,
) -> int:  # fmt: skip
    """Return a number of bytes that ``write_text`` will not touch the end of: it needs a few more than it writes.

    The documents have ``size`` bytes and ``counts`` tokens of each role; what is drawn for them has ``drawn`` bytes.
    """
    blanks, masked = int(counts.sum()), int((counts * np.diff(masks))[actions == _MASK].sum())
    kept = int(counts[actions == _KEEP].sum())
    in_the_clear = size * 3 // 2 + 3 * kept if kept else 0
    return 4 * WIDTH + blanks + drawn + masked + in_the_clear + (size if keep else 0)


@compiled
def write_text(
    data: Any, documents: Any, starts: Any, ends: Any, token_classes: Any, token_offsets: Any,
    roles: Any, actions: Any, drawn: Any,
    words: Any, word_offsets: Any, vocabulary: int, mask_bytes: Any, masks: Any,
    keep_layout: bool, lower_case: bool, kinds: Any, lower: Any,
    out: Any, out_offsets: Any, number_bytes: Any, numbers: Any,
) -> int:  # fmt: skip
    """Write the privatized documents to ``out`` uint8 and where each begins to ``out_offsets`` int64 [D + 1].

    ``drawn`` int32 [T] holds the replacement of each token whose action is to privatize or resample. ``words`` and
    ``word_offsets`` hold the vocabulary, once in lower case only, or three times (as it is, capitalised, all capitals)
    when ``lower_case`` is off. Of a token that gets a surrogate it is the number of this in ``number_bytes``, from
    ``numbers`` int64 [N + 1] on. Two words that would touch, since what stood between them is dropped or itself became
    a word, get a blank between them. ``words`` and ``mask_bytes`` have ``WIDTH`` bytes more than they hold. Returns the
    number of tokens written.
    """
    at = np.int64(0)
    written = 0
    for document in range(documents.size - 1):
        out_offsets[document] = at
        begin = at
        edge = documents[document]
        apart = False
        dropped = False
        wordlike = False
        letters = False
        behind = token_offsets[document + 1]
        for t in range(token_offsets[document], behind):
            if t + 2 * _AHEAD < behind:
                fetch(word_offsets, np.int64(drawn[t + 2 * _AHEAD]))
                fetch(words, word_offsets[min(np.int64(drawn[t + _AHEAD]), word_offsets.size - 1)])
            start = np.int64(starts[t])
            end = np.int64(ends[t])
            if start > edge:
                apart = True
                if keep_layout:
                    at = _copy(data, edge, start, out, at)
            edge = end
            action = actions[roles[t]]
            if action == _DROP:
                dropped = True
                continue
            is_word = token_classes[t] != _PUNCTUATION_CLASS
            drawn_word = action == _PRIVATIZE or action == _RESAMPLE
            as_itself = action == _KEEP or action == _SURROGATE
            has_letters = drawn_word or (as_itself and token_classes[t] in _LETTER_CLASSES)
            fused = (letters and has_letters) or (dropped and wordlike and is_word)  # but for a blank
            if keep_layout:
                if fused and not apart:
                    out[at] = 0x20
                    at += 1
            elif at > begin and (apart or fused):
                out[at] = 0x20
                at += 1
            apart = False
            dropped = False
            wordlike = is_word
            letters = has_letters
            written += 1
            if drawn_word:
                form = np.int64(drawn[t])
                if not lower_case:
                    form += case_pattern(data, start, end, kinds) * vocabulary
                at = _copy_wide(words, word_offsets[form], word_offsets[form + 1], out, at)
            elif action == _SURROGATE:
                first, last = numbers[drawn[t]], numbers[drawn[t] + 1]
                pattern = LOWER_CASE if lower_case else case_pattern(data, start, end, kinds)
                at = _copy_cased(number_bytes, first, last, out, at, pattern)
            elif action == _MASK:
                at = _copy_wide(mask_bytes, masks[roles[t]], masks[roles[t] + 1], out, at)
            elif end - start == 1:
                out[at] = lower[data[start]] if lower_case and data[start] < 0x80 else data[start]
                at += 1
            elif lower_case:
                at = lower_into(data, start, end, out, at, lower, kinds)
            else:
                at = _copy(data, start, end, out, at)
        if keep_layout:
            at = _copy(data, edge, documents[document + 1], out, at)
    out_offsets[documents.size - 1] = at
    return written

"""Privatized tokens back to text: one pass over flat arrays into one byte buffer."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from corpusveil.compiled import called, compiled, inlined, u
from corpusveil.text import classes, policy
from corpusveil.text.characters import LETTER, UPPER
from corpusveil.text.output_words import LONG, Wording
from corpusveil.text.policy import DROP, KEEP, MASK, NUMBER, OTHER, PUNCTUATION, REPLACE, RESAMPLE
from corpusveil.text.tokenizer_loop import TokenArrays
from corpusveil.text.utf8 import Characters, decode, kind_of, lower_into
from corpusveil.wide import WIDTH, copy_sixteen, fetch

_WORD, _CLASSES = classes.WORD, len(classes.CLASS_NAMES)

_AHEAD = 8
"""A word is brought into the cache this many tokens before it is written."""

LOWER_CASE, TITLE_CASE, UPPER_CASE = range(3)

ROLES_OF_CLASSES = np.full(_CLASSES, OTHER, dtype=np.uint8)
"""The role of a token of each class, of a word one that is not known."""
ROLES_OF_CLASSES[[classes.WORD, classes.NUMBER]] = policy.UNKNOWN_WORD, NUMBER
ROLES_OF_CLASSES[[classes.PUNCTUATION, classes.CONTACT, classes.SPAN]] = PUNCTUATION, policy.CONTACT, policy.SPAN
_PACKED, _MOST_PACKED = 8, 255


class Decided(NamedTuple):
    """What becomes of tokens.

    ``roles`` uint8 [T]; ``actions`` uint8, by role; ``drawn`` int32 [T], the replacement of each token whose action is
    to privatize or resample.
    """

    roles: npt.NDArray[np.uint8]
    actions: npt.NDArray[np.uint8]
    drawn: npt.NDArray[np.int32]


class SpanTexts(NamedTuple):
    """N texts in the place of spans, ``text[offsets[k]:offsets[k + 1]]``, uint8, int64 [N + 1]."""

    text: npt.NDArray[np.uint8]
    offsets: npt.NDArray[np.int64]


NO_SPAN_TEXTS = SpanTexts(np.zeros(0, np.uint8), np.zeros(1, np.int64))


def role_table(is_stop: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint8]:
    """Return the role of each class, then that of each word, bool [V]; stop words have their own."""
    return np.append(ROLES_OF_CLASSES, np.where(is_stop, policy.STOP_WORD, policy.KNOWN_WORD).astype(np.uint8))


@compiled
def assign_roles(token_classes: Any, ids: Any, table: Any, roles: Any, counts: Any) -> None:
    """Write the role of each token to ``roles`` uint8, and add to ``counts`` int64 [8] how many have each.

    ``table`` is the ``role_table`` of the words that ids are of.
    """
    for first in range(0, ids.size, _MOST_PACKED):
        packed = np.uint64(0)  # a byte for each role
        for t in range(first, min(first + _MOST_PACKED, ids.size)):
            word, kind = np.int64(ids[u(t)]), np.int64(token_classes[u(t)])
            role = table[u(_CLASSES + word if (kind == _WORD) & (word >= 0) else kind)]
            roles[u(t)] = role
            packed += np.uint64(1) << (np.uint64(_PACKED) * np.uint64(role))
        for role in range(counts.size):
            counts[role] += np.int64((packed >> np.uint64(_PACKED * role)) & np.uint64(_MOST_PACKED))


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


@compiled
def enter(words: Any, index: Any, longest: Any, drawn: Any) -> Any:
    """Write ``words`` int32 [K] to ``drawn`` at ``index`` int32 [K]; return how many bytes they have at most.

    ``longest`` int32 [V] is how many bytes each word has at most.
    """
    total = np.int64(0)
    for k in range(words.size):
        word = words[u(k)]
        drawn[u(index[u(k)])] = word
        total += longest[u(word)]
    return total


def output_bound(
    size: int, counts: npt.NDArray[np.int64], actions: npt.NDArray[np.uint8], drawn: int,
    masks: npt.NDArray[np.int64], keep: bool,
) -> int:  # fmt: skip
    """Return a number of bytes that ``write_text`` will not touch the end of: it needs a few more than it writes.

    The documents have ``size`` bytes and ``counts`` tokens of each role; what is drawn for them has ``drawn`` bytes.
    """
    blanks, masked = int(counts.sum()), int((counts * np.diff(masks))[actions == MASK].sum())
    kept = int(counts[actions == KEEP].sum())
    in_the_clear = size * 3 // 2 + 3 * kept if kept else 0
    return 4 * WIDTH + blanks + drawn + masked + in_the_clear + (size if keep else 0)


@compiled
def write_text(
    tokens: TokenArrays, decided: Decided, wording: Wording, vocabulary: int, span_texts: SpanTexts,
    characters: Characters, keep_layout: bool, lower_case: bool, out: Any, out_offsets: Any,
) -> int:  # fmt: skip
    """Write the privatized documents to ``out`` uint8 and where each begins to ``out_offsets`` int64 [D + 1].

    ``wording`` has the ``vocabulary`` once in lower case only, or three times (as it is, capitalized, all capitals)
    when ``lower_case`` is off. Of a span, what is drawn is the number of its text. Two words that would touch,
    because the text between them is dropped or became a word, get a blank between them. The sign in *+1 415 555 0199*
    goes with its number unless numbers are kept.
    Returns the number of tokens written.
    """
    data, documents, starts, ends, _, _, token_offsets = tokens
    roles, actions, drawn = decided
    words, word_offsets, records, _, mask_bytes, masks = wording
    span_bytes, spans = span_texts
    _, kinds, lower = characters
    lettered = 0  # a bit for each role: what is written has letters
    for number in range(actions.size):
        itself = actions[number] >= KEEP
        if actions[number] <= RESAMPLE or (itself and number != PUNCTUATION and number != OTHER):
            lettered |= 1 << number
    signs = actions[NUMBER] == KEEP
    single = word_offsets.size - 1
    last = data.size - 1
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
            fetch(records, WIDTH * np.int64(drawn[u(min(t + _AHEAD, behind - 1))]))
            start = np.int64(starts[u(t)])
            end = np.int64(ends[u(t)])
            if keep_layout and start > edge:
                at = _copy(data, edge, start, out, at)
            begins = start > edge or t == token_offsets[document] or data[start - 1] == 0x28
            apart |= start > edge
            edge = end
            role = np.int64(roles[u(t)])
            action = actions[u(role)]
            is_word = role != PUNCTUATION
            if action == KEEP and not is_word and not signs and begins and data[start] == 0x2B and t + 1 < behind:
                action = DROP if starts[t + 1] == end and roles[t + 1] == NUMBER else action
            if action == DROP:
                dropped = True
                continue
            has_letters = (lettered >> role) & 1 != 0
            fused = (letters & has_letters) | (dropped & wordlike & is_word)  # but for a blank
            out[u(at)] = 0x20
            if keep_layout:
                at += fused & ~apart
            else:
                at += (at > begin) & (apart | fused)
            apart = False
            dropped = False
            wordlike = is_word
            letters = has_letters
            written += 1
            is_drawn = action <= RESAMPLE
            if is_drawn | ((action == KEEP) & (end - start == 1)):
                byte = np.int64(data[u(min(start, last))]) if last >= 0 else 0
                if lower_case & (byte >= 0x41) & (byte <= 0x5A):
                    byte |= 0x20
                form = np.int64(drawn[u(t)]) if is_drawn else single + byte
                if is_drawn and not lower_case:
                    form += case_pattern(data, start, end, kinds) * vocabulary
                copy_sixteen(records, WIDTH * form, out, at)
                size = np.int64(records[u(WIDTH * form + WIDTH - 1)])
                if size == LONG:
                    at = _copy_wide(words, word_offsets[form], word_offsets[form + 1], out, at)
                else:
                    at += size
            elif action == REPLACE:
                at = _copy(span_bytes, spans[drawn[t]], spans[drawn[t] + 1], out, at)
            elif action == MASK:
                at = _copy_wide(mask_bytes, masks[role], masks[role + 1], out, at)
            elif lower_case:
                at = lower_into(data, start, end, out, at, lower, kinds)
            else:
                at = _copy(data, start, end, out, at)
        if keep_layout:
            at = _copy(data, edge, documents[document + 1], out, at)
    out_offsets[documents.size - 1] = at
    return written

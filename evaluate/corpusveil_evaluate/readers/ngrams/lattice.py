"""The search for the originals of a run of released words: two passes of forward and backward sums.

Released words u_1 ... u_n of a run came from w_1 ... w_n with probability proportional to

    prod_i P[w_i, u_i] p(w_i | w_i-2, w_i-1)

The first pass approximates the model by p(w_i | w_i-1), over all candidates of all places. Its shares use both sides of
a word, so it seldom excludes the right one. Few candidates remain at each place, and for these the second pass uses the
whole law, except counted n-grams after histories far less likely than the best (``FAINT``). It is forward-backward
(Rabiner 1989).

A backoff model makes sums short: p(w | v) = L(v) p(w) except for counted bigrams, and p(w | u v) = L(uv) p(w | v)
except for counted trigrams. So a sum over v is one product and a few corrections. The first pass uses only the rough
logarithms that are stored beside bigrams.

Words then support each other within a document: texts repeat words, and each occurrence was drawn afresh. It
is a cache (Kuhn, De Mori 1990) of expected counts, by unigram rescaling (Kneser, Peters, Klakow 1997) of the shares.

Everything is products and sums of float64 in a fixed order, scaled at each place, and logarithms become probabilities
by tables (``language/fixed.py``): the same result on every machine. Ties go to the first candidate.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from corpusveil.compiled import called, compiled
from corpusveil_evaluate.readers.ngrams.fixed import linear
from corpusveil_evaluate.readers.ngrams.lattice_bigrams import FAINT, Channel, bigrams, candidates, choose
from corpusveil_evaluate.readers.ngrams.lookup import (
    BY_LAST,
    begin_of,
    found_from,
    left_of,
    log_in,
    log_of,
    member,
    mixed,
    pair,
    size_of,
    spot,
)


@called
def _between(t: int, said: Any, arrays: Any, w: Any) -> None:
    """Fill in p(w | v) between the candidates that remain, the bigrams' entries, and what states are as contexts."""
    for v in range(w.kept[t - 1]):
        i = w.chosen[t - 1, v]
        for k in range(w.kept[t]):
            c = w.chosen[t, k]
            known = w.firsts[t, c] >= 0
            left = w.left[t - 1, i]
            w.base[t, v, k] = w.alone[t, c] * (left if known else 1.0) if left >= 0.0 else w.start[t, c]
            w.entry[t, v, k] = -1
    for edge in range(w.edges[t], w.edges[t + 1]):
        v, k = w.place[t - 1, w.sources[edge]], w.place[t, w.targets[edge]]
        if v >= 0 and k >= 0:
            w.base[t, v, k] = linear(log_of(arrays.bigrams, w.entries[edge]), said.low, said.high)
            w.entry[t, v, k] = w.entries[edge]
    for k in range(w.kept[t]):
        word = w.words[t, w.chosen[t, k]]
        several = word >= 0 and said.before[word] != -2
        own = np.int64(-1)
        if several and said.last[word] >= 0:
            own = pair(said.before[word], said.last[word], arrays.regions, arrays.slots)
        for v in range(w.kept[t - 1]):
            entry = own if several else w.entry[t, v, k]
            w.contexts[t, v, k] = entry
            w.left3[t, v, k] = 1.0
            w.members[t, v, k] = 0
            if entry >= 0:
                w.left3[t, v, k] = linear(left_of(arrays.bigrams, entry), said.low, said.high)
                w.members[t, v, k] = arrays.bigrams[3 * entry + 2]


@called
def _trigrams(size: int, said: Any, arrays: Any, w: Any) -> None:
    """Sum forward over states of two words; find the counted trigrams on the way.

    State (v, k) of place t is candidate v of the place before and k of this one.
    """
    slots, low, high = arrays.slots3, said.low, said.high
    _between(np.int64(1), said, arrays, w)
    for k in range(w.kept[1]):
        w.states[1, 0, k] = w.base[1, 0, k] * w.emitted[1, w.chosen[1, k]]
    used = 0
    for t in range(2, size + 1):
        _between(t, said, arrays, w)
        w.ends[t] = used
        best = 0.0
        for k in range(w.kept[t]):
            w.hashes[k] = mixed(w.firsts[t, w.chosen[t, k]])
        for v in range(w.kept[t - 1]):
            whole = 0.0  # of the states before that end in v, and of these backed off from
            reduced = 0.0
            for u in range(w.kept[t - 2]):
                value = w.states[t - 1, u, v]
                whole += value
                reduced += value * w.left3[t - 1, u, v]
            asked = 0
            for k in range(w.kept[t]):
                known = w.firsts[t, w.chosen[t, k]] >= 0
                w.states[t, v, k] = w.base[t, v, k] * (reduced if known else whole)
                if known and w.entry[t, v, k] >= 0:
                    w.asked[asked] = k
                    asked += 1
            for u in range(w.kept[t - 2]):
                context = w.contexts[t - 1, u, v]
                score = w.states[t - 1, u, v]
                if context < 0 or score < FAINT:
                    continue
                members = w.members[t - 1, u, v]
                wanted = 0
                for n in range(asked):
                    w.wanted[wanted] = w.asked[n]
                    wanted += members & member(w.hashes[w.asked[n]]) != 0
                if wanted == 0:
                    continue
                begin, width = begin_of(arrays.bigrams, context), size_of(arrays.bigrams, context)
                for n in range(wanted):
                    at = begin + spot(w.hashes[w.wanted[n]], width)
                    w.spots[n] = at
                    w.probes[n] = slots[at]
                left = w.left3[t - 1, u, v]
                for n in range(wanted):
                    slot = w.probes[n]
                    if slot == 0:
                        continue
                    k = w.wanted[n]
                    word = w.firsts[t, w.chosen[t, k]]
                    slot = found_from(slot, w.spots[n], word, begin, width, BY_LAST, slots)
                    if slot == 0:
                        continue
                    more = linear(log_in(slot), low, high) - w.base[t, v, k] * left
                    w.triples[used, 0] = u
                    w.triples[used, 1] = v
                    w.triples[used, 2] = k
                    w.extra[used] = more
                    used += 1
                    w.states[t, v, k] += more * score
            for k in range(w.kept[t]):
                total = w.states[t, v, k] * w.emitted[t, w.chosen[t, k]]
                w.states[t, v, k] = total
                best = max(best, total)
        for v in range(w.kept[t - 1]):
            for k in range(w.kept[t]):
                w.states[t, v, k] /= best
    w.ends[size + 1] = used


@called
def _back(t: int, now: int, w: Any) -> None:
    """Write into ``after`` the sums over all words from t on, for the states of the place before t."""
    then = 1 - now
    for v in range(w.kept[t - 1]):
        known = 0.0
        lacking = 0.0
        for k in range(w.kept[t]):
            c = w.chosen[t, k]
            value = w.base[t, v, k] * w.emitted[t, c] * w.after[now, v, k]
            if w.firsts[t, c] >= 0:
                known += value
            else:
                lacking += value
        for u in range(w.kept[t - 2]):
            w.after[then, u, v] = w.left3[t - 1, u, v] * known + lacking
    for n in range(w.ends[t], w.ends[t + 1]):
        u, v, k = w.triples[n, 0], w.triples[n, 1], w.triples[n, 2]
        w.after[then, u, v] += w.extra[n] * w.emitted[t, w.chosen[t, k]] * w.after[now, v, k]
    best = 0.0
    for u in range(w.kept[t - 2]):
        for v in range(w.kept[t - 1]):
            best = max(best, w.after[then, u, v])
    for u in range(w.kept[t - 2]):
        for v in range(w.kept[t - 1]):
            w.after[then, u, v] /= best


@called
def _support(places: int, public: Any, memory: float, w: Any) -> None:
    """Multiply the share of each word at each place by how much the other places of the document support it.

    The factor is ``1 + C / (memory p)``: C is the sum of the word's shares at all other places, p its public share. Up
    to a factor of the place it is the ratio of the word's share in the document, with ``memory p`` added to counts, and
    in public text.
    """
    for t in range(places):
        for k in range(w.originals.shape[1]):
            if w.originals[t, k] >= 0:
                w.expected[w.originals[t, k]] += w.shares[t, k]
    for t in range(places):
        for k in range(w.originals.shape[1]):
            word = w.originals[t, k]
            if word >= 0:
                elsewhere = max(0.0, w.expected[word] - w.shares[t, k])
                w.shares[t, k] *= 1.0 + elsewhere / (memory * public[word])
    for t in range(places):
        for k in range(w.originals.shape[1]):
            if w.originals[t, k] >= 0:
                w.expected[w.originals[t, k]] = 0.0


class Runs(NamedTuple):
    """``offsets`` int64 [R + 1]: where runs of at most ``LONGEST`` words begin; ``documents`` [D + 1]: at which run."""

    offsets: Any
    documents: Any


@compiled
def search_runs(
    released: Any, rows: Any, parts: Runs, channel: Channel, least: float, changes: Any, public: Any, memory: float,
    said: Any, arrays: Any, w: Any, out: Any, weights: Any, weighed: Any,
) -> None:  # fmt: skip
    """Write what runs of released words most likely came from, int32 [n].

    ``rows`` int64 [n] says which row of the ``channel`` belongs to each word; -1: the word was not replaced. A
    candidate whose share in the first pass is below ``least`` of the best does not remain.

    ``changes`` float64 [V], from 0 to 1, weighs down every word but the released one that it belongs to; empty: nothing
    does. The share of another word is multiplied by it after the sums, so that context is read as without it. ``w``
    then has room for one candidate more.

    Words also support each other within a document: ``memory``, in words of public text, is how much the
    public shares ``public`` float64 [V] weigh against the document (``_support``); 0: nothing supports a word.

    A place that is most likely of an unknown word gets the likeliest known one: no other guess can be right.

    ``weights`` float64 [V] is how much a right guess of each word counts; empty: all alike. With weights, the words
    whose share times weight is largest are written into ``weighed``, int32 [n]; -1 where no candidate counts.

    The body of the loop is no function of its own: that would be compiled twice, which takes a second.
    """
    held, offsets, documents = changes.size > 0, parts.offsets, parts.documents
    for document in range(documents.size - 1):
        run = documents[document]
        while run < documents[document + 1]:
            begin = offsets[run]
            while run < documents[document + 1] and offsets[run + 1] - begin <= len(w.shares):
                first, size = offsets[run], offsets[run + 1] - offsets[run]
                candidates(released[first:], rows[first:], size, channel, said, w)
                bigrams(size, said.rough, arrays.regions, arrays.slots, w)
                choose(size, least, held, w)
                _trigrams(size, said, arrays, w)
                now = np.int64(0)
                for v in range(w.kept[size - 1]):
                    for k in range(w.kept[size]):
                        w.after[now, v, k] = 1.0
                for t in range(size, 0, -1):
                    at = first - begin + t - 1
                    w.originals[at, :] = -1
                    total = 0.0
                    for k in range(w.kept[t]):
                        share = 0.0
                        for v in range(w.kept[t - 1]):
                            share += w.states[t, v, k] * w.after[now, v, k]
                        w.shares[at, k] = share
                        total += share
                    for k in range(w.kept[t]):
                        if total > 0.0:  # else the released word stays
                            w.originals[at, k] = w.words[t, w.chosen[t, k]]
                            w.shares[at, k] /= total
                    if t > 1:
                        _back(t, now, w)
                        now = 1 - now
                run += 1
            if memory > 0.0:
                _support(offsets[run] - begin, public, memory, w)
            for place in range(begin, offsets[run]):
                best = -1.0
                most = 0.0
                likeliest = released[place]
                if weights.size:
                    weighed[place] = -1
                for k in range(w.originals.shape[1]):
                    word = w.originals[place - begin, k]
                    if word < 0:
                        continue
                    share = w.shares[place - begin, k]
                    if weights.size and share * weights[word] > most:
                        most = share * weights[word]
                        weighed[place] = word
                    if held and word != released[place]:
                        share *= changes[released[place]]
                    if share > best:
                        best = share
                        likeliest = word
                out[place] = likeliest

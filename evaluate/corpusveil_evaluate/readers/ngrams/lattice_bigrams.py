"""The first pass of the search for originals (``lattice.py``), by pairs of words: which candidates remain."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from corpusveil.compiled import called
from corpusveil_evaluate.readers.ngrams.lookup import BY_SECOND, entry_in, found_from, mixed, rough_in, spot

FAINT = 1e-2
"""Share of the best below which a candidate's bigrams are not looked up: what follows seldom makes up for it."""


class Channel(NamedTuple):
    """The law: row r of ``words`` int32 [., K] (-1: no more) has ``emissions`` float64 [., K].

    ``unknown`` float64 [V] is the law of a word drawn for one outside the vocabulary, ``rho`` how often that is.
    """

    words: Any
    emissions: Any
    unknown: Any
    rho: float


@called
def candidates(released: Any, rows: Any, size: int, channel: Channel, said: Any, w: Any) -> None:
    """Fill in the candidates of each place, 1 to ``size``."""
    words, rho = channel.words, channel.rho
    for t in range(1, size + 1):
        row = rows[t - 1]
        n = 0
        w.own[t] = -1
        if row < 0:
            word = released[t - 1]
            w.words[t, 0] = word
            w.emitted[t, 0] = said.inner[word]
            n = 1
        else:
            while n < words.shape[1] and words[row, n] >= 0:
                word = words[row, n]
                if word == released[t - 1]:
                    w.own[t] = n
                w.words[t, n] = word
                w.emitted[t, n] = (1.0 - rho) * channel.emissions[row, n] * said.inner[word]
                n += 1
        for c in range(n):
            word = w.words[t, c]
            w.alone[t, c] = said.alone[word]
            w.start[t, c] = said.start[word]
            w.firsts[t, c] = said.first[word]
            last = said.last[word]
            w.lasts[t, c] = last
            w.left[t, c] = said.left2[last] if last >= 0 else -1.0
        if row >= 0 and rho > 0.0:
            w.words[t, n] = -1
            w.firsts[t, n] = -1
            w.lasts[t, n] = -1
            w.emitted[t, n] = rho * channel.unknown[released[t - 1]]
            w.alone[t, n] = 1.0
            w.start[t, n] = 1.0
            w.left[t, n] = -1.0
            n += 1
        w.sizes[t] = n


@called
def bigrams(size: int, rough: Any, regions: Any, slots: Any, w: Any) -> None:
    """Find the counted bigrams between places, and sum forward."""
    w.sizes[0] = 1
    w.words[0, 0] = -1
    w.lasts[0, 0] = -1
    w.left[0, 0] = -1.0
    w.forward[0, 0] = 1.0
    used = 0
    for t in range(1, size + 1):
        w.edges[t] = used
        before, here = w.sizes[t - 1], w.sizes[t]
        opened = 0.0  # of what stands before without being a context
        whole = 0.0
        reduced = 0.0
        for v in range(before):
            if w.left[t - 1, v] < 0.0:
                opened += w.forward[t - 1, v]
            else:
                whole += w.forward[t - 1, v]
                reduced += w.forward[t - 1, v] * w.left[t - 1, v]
        for c in range(here):
            known = w.firsts[t, c] >= 0
            w.hashes[c] = mixed(w.firsts[t, c])
            w.forward[t, c] = w.alone[t, c] * (reduced if known else whole) + w.start[t, c] * opened
        for v in range(before):
            last = w.lasts[t - 1, v]
            if last < 0:
                continue
            score = w.forward[t - 1, v]
            if score < FAINT:
                continue
            left = w.left[t - 1, v]
            low = np.int64(regions[last])
            width = np.int64(regions[last + 1]) - low
            if width == 0:
                continue
            for c in range(here):
                at = low + spot(w.hashes[c], width)
                w.spots[c] = at
                w.probes[c] = slots[at]
            for c in range(here):
                slot = w.probes[c]
                if slot == 0:
                    continue
                slot = found_from(slot, w.spots[c], w.firsts[t, c], low, width, BY_SECOND, slots)
                if slot == 0:
                    continue
                more = rough[rough_in(slot)] - left * w.alone[t, c]
                w.sources[used] = v
                w.targets[used] = c
                w.entries[used] = entry_in(slot)
                w.more[used] = more
                used += 1
                w.forward[t, c] += score * more
        best = 0.0
        for c in range(here):
            w.forward[t, c] *= w.emitted[t, c]
            best = max(best, w.forward[t, c])
        for c in range(here):
            w.forward[t, c] /= best
    w.edges[size + 1] = used


@called
def choose(size: int, least: float, held: bool, w: Any) -> None:
    """Sum backward, and keep the candidates whose share is at least ``least`` times the best share.

    ``held``: the released word also remains, in a place of its own.
    """
    most = w.chosen.shape[1] - held
    now = 0
    for c in range(w.sizes[size]):
        w.backward[now, c] = 1.0
    for t in range(size, 0, -1):
        here = w.sizes[t]
        best = 0.0
        for c in range(here):
            w.share[c] = w.forward[t, c] * w.backward[now, c]
            best = max(best, w.share[c])
        kept = 0
        for c in range(here):
            share = w.share[c]
            w.place[t, c] = -1
            if share < best * least or (kept == most and share <= w.share[w.chosen[t, kept - 1]]):
                continue
            at = kept if kept < most else most - 1
            while at > 0 and w.share[w.chosen[t, at - 1]] < share:
                w.chosen[t, at] = w.chosen[t, at - 1]
                at -= 1
            w.chosen[t, at] = c
            kept = min(kept + 1, most)
        for k in range(kept):
            w.place[t, w.chosen[t, k]] = k
        if held and w.own[t] >= 0 and w.place[t, w.own[t]] < 0:
            w.chosen[t, kept] = w.own[t]
            w.place[t, w.own[t]] = kept
            kept += 1
        w.kept[t] = kept
        if t == 1:
            break
        known = 0.0
        lacking = 0.0
        opened = 0.0
        for c in range(here):
            value = w.emitted[t, c] * w.backward[now, c]
            w.share[c] = value
            opened += value * w.start[t, c]
            if w.firsts[t, c] >= 0:
                known += value * w.alone[t, c]
            else:
                lacking += value * w.alone[t, c]
        then = 1 - now
        before = w.sizes[t - 1]
        for v in range(before):
            w.backward[then, v] = w.left[t - 1, v] * known + lacking if w.left[t - 1, v] >= 0.0 else opened
        for edge in range(w.edges[t], w.edges[t + 1]):
            w.backward[then, w.sources[edge]] += w.more[edge] * w.share[w.targets[edge]]
        best = 0.0
        for v in range(before):
            best = max(best, w.backward[then, v])
        for v in range(before):
            w.backward[then, v] /= best
        now = then
    w.kept[0] = 1
    w.chosen[0, 0] = 0
    w.place[0, 0] = 0

"""What is written for spans: masks, drawn words, surrogates, pseudonyms.

A mask is a function of the kind alone, a drawn word of keyed draws at its position, a surrogate of these and the
shape, a pseudonym of the span's normalized text under a key of its own: whoever destroys that key leaves labels that
nobody can recompute.
"""

from __future__ import annotations

import functools
import hashlib
import unicodedata
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from corpusveil.errors import BadRowError, ChangedError, UnsetError
from corpusveil.kernel.prepared import Prepared
from corpusveil.sampling.draws import RESAMPLE, SURROGATE, DrawKey, Draws
from corpusveil.sampling.weights import WeightTable, integer_weights
from corpusveil.storage import files
from corpusveil.text.characters import DIGIT, LETTER, PUNCTUATION, SPACE, character_table, lower_table
from corpusveil.text.folding import plain
from corpusveil.text.languages import SEPARATOR, rule
from corpusveil.text.output_words import concatenate
from corpusveil.text.spans import Covered, SpanPolicy
from corpusveil.text.text_writer import Surrogates

_KIND_BITS = 0x0F
_DIGITS = 15
"""Of a count in a public list, at most."""
_PER_LANE = 2
"""Characters that one 64-bit draw invents, each from 32 bits."""


def normalized(text: str) -> str:
    """Return what pseudonyms are a function of: small letters in normal form C, simple quotes, hyphens and blanks."""
    lower, text = lower_table(), plain(unicodedata.normalize("NFC", text))
    small = "".join(chr(lower[code]) if (code := ord(character)) < lower.size else character for character in text)
    return " ".join(small.split())


def surrogate(text: str, draws: npt.NDArray[np.uint64]) -> str:
    """Return random digits and small letters in the shape of a text; ``draws`` are at least half its characters."""
    halves = draws.view(np.uint32)
    table = character_table()
    out = []
    for character, draw in zip(text, halves.tolist(), strict=False):
        kind = table[ord(character)] & _KIND_BITS if ord(character) < table.size else None
        if kind == DIGIT:
            out.append(chr(0x30 + (draw * 10 >> 32)))
        elif kind == LETTER:
            out.append(chr(0x61 + (draw * 26 >> 32)))
        elif kind == SPACE:
            out.append(" ")
        elif kind == PUNCTUATION:
            out.append(character)
    return "".join(out)


def digest_of_list(url: str) -> str:
    """Return the digest of a public list as it is now."""
    return hashlib.sha256(files.read_bytes(url)).hexdigest()[:16]


@functools.lru_cache(maxsize=16)
def public_list(url: str, digest: str) -> tuple[tuple[str, ...], WeightTable, str]:
    """Return the entries of a public list, what draws one by their counts, and its digest.

    Raises UserError for a bad row, naming it, and for a list that has another digest by now.
    """
    entries: list[str] = []
    counts: list[int] = []
    given = files.read_bytes(url)
    for row, line in enumerate(given.decode("utf-8", "replace").splitlines(), 1):
        entry, _, count = line.partition("\t")
        if not entry.strip():
            continue
        if count and not (count.isascii() and count.isdecimal() and len(count) <= _DIGITS):
            raise BadRowError(
                f"{url}: row {row}: behind the tab is no whole number of up to {_DIGITS} digits; write entry<TAB>count."
            )
        entries.append(" ".join(entry.split()))
        counts.append(int(count or 1))
    if len(set(entries)) < 2:
        raise BadRowError(f"{url}: this list of pseudonyms has fewer than two; write one per line.")
    if digest != hashlib.sha256(given).hexdigest()[:16]:
        raise ChangedError(f"{url}: this list of pseudonyms was changed during the run; restore it or start again.")
    return tuple(entries), WeightTable(integer_weights(np.array(counts, np.int64))), digest


def _pseudonym(kind: str, listed: tuple[str, str] | None, text: str, scope: bytes, key: DrawKey | None) -> str:
    """Return the label of a text, or the entry of a list, under a key."""
    parts = [scope, kind.encode(), normalized(text).encode()]
    if key is None:  # which a release refuses
        raise UnsetError("pseudonyms: there is no key of pseudonyms.")
    code = hashlib.blake2b(digest_size=8, key=key.tag)
    for part in parts:
        code.update(len(part).to_bytes(8, "little") + part)
    if listed is None:
        return f"{kind.upper()}_{code.hexdigest()[:12].upper()}"
    entries, table, _ = public_list(*listed)
    return entries[int(table.cells(np.frombuffer(code.digest(), "<u8").astype(np.uint64))[0])]


def span_texts(
    policy: SpanPolicy, covered: Covered, which: npt.NDArray[np.int64], data: npt.NDArray[np.uint8], draws: Draws,
    prepared: Prepared, key: DrawKey | None, lists: Mapping[str, str], units: Sequence[str],
) -> Surrogates:  # fmt: skip
    """Return what is written for the spans ``which`` int64 [N], whose draws are ``draws``.

    ``lists`` are the digests of the lists that pseudonyms are from, and ``units`` those of the documents, if any.
    """
    kinds = covered.kinds[which]
    treatments = [policy.of(name) for name in covered.names]
    masks = [f"[{name}]".encode() for name in covered.names]
    words = [masks[kind] for kind in kinds.tolist()]

    def at(treatment: str) -> npt.NDArray[np.int64]:
        return np.flatnonzero(np.array([how == treatment for how, _ in treatments], np.bool_)[kinds])

    separator = SEPARATOR if rule(prepared.tokenizer.language, "unspaced") else ""

    def text(n: int) -> str:
        own = data[covered.starts[which[n]] : covered.ends[which[n]]].tobytes().decode("utf-8", "replace")
        return own.replace(separator, "") if separator else own

    if (resampled := at("resample")).size:
        wording = prepared.wording
        cells = prepared.public.cells(draws.of(resampled).uint64(RESAMPLE))
        for n, cell in zip(resampled.tolist(), cells.tolist(), strict=True):
            words[n] = wording.words[wording.offsets[cell] : wording.offsets[cell + 1]].tobytes()
    for n in at("surrogate").tolist():
        own = text(n)
        lanes = draws.of(np.array([n])).lanes(SURROGATE, -(-len(own) // (2 * _PER_LANE)) or 1)
        words[n] = surrogate(own, lanes.reshape(-1)).encode() or words[n]  # of nothing but signs
    for n in at("pseudonym").tolist():
        scope, document = b"", draws.documents[n]
        if policy.pseudonyms == "document":
            scope = draws.tags[document].tobytes()
        elif policy.pseudonyms == "unit":
            scope = b"unit " + units[document].encode()
        name, url = covered.names[kinds[n]], treatments[kinds[n]][1]
        words[n] = _pseudonym(name, None if url is None else (url, lists[url]), text(n), scope, key).encode()
    return Surrogates(*concatenate(words))

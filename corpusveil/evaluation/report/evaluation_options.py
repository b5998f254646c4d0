"""The options of an evaluation."""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass

from corpusveil.collocations.artifact import read_artifact
from corpusveil.collocations.collocation_table import Collocations
from corpusveil.errors import BadValueError, ConflictError, NoFileError, UnsetError, no_causal_model
from corpusveil.evaluation.statistics.encoders import AveragedVectors, Encoder, made_of
from corpusveil.evaluation.statistics.word_lists import WordList
from corpusveil.evaluation.utility.fine_tuning import FineTuned
from corpusveil.evaluation.utility.text_classifiers import Model, model_of, require_sklearn
from corpusveil.mechanisms import find
from corpusveil.sampling.keys import Key
from corpusveil.sampling.weights import check_epsilon
from corpusveil.spaces import Space
from corpusveil.spaces.build import build_space
from corpusveil.spaces.vectors import Vectors
from corpusveil.storage import files

BUILT_IN = ("tfidf", "vectors")
SYSTEM_WORDS = "/usr/share/dict/words"
"""The word list of many systems; no dependency has a proper list of words."""


@dataclass(frozen=True, slots=True)
class EvaluationOptions:
    """The options of an evaluation.

    ``label`` and ``attribute`` are columns of the original: what a model should still predict, and what an attacker
    should not infer. ``epsilons`` are tried in addition, by the release's mechanism and by ``mechanisms``; this needs
    the release's ``space`` (and ``collocations``). Raises UserError for options that exclude each other.
    """

    label: str | None = None
    attribute: str | None = None
    second: str | None = None
    """The column of second texts, where documents are pairs."""
    epsilons: tuple[float, ...] = ()
    seeds: int = 5
    models: tuple[str, ...] = ("tfidf",)
    """``tfidf``, ``vectors`` or folders of transformers models; only the first is trained at further epsilons too."""
    space: Space | None = None
    collocations: Collocations | None = None
    encoder: Encoder | None = None
    vectors: Vectors | None = None
    """The vectors for similarity of meaning without an encoder; best an embedding of which no space is made."""
    counts: str | None = None
    """Public n-gram counts for the language model; without them it is made from every second original."""
    mechanisms: tuple[str, ...] = ()
    keys: tuple[Key, ...] = ()
    """Leaked or guessed keys, which are tried in addition to the published test key."""
    words: str | None = None
    """A list of words, one per line; by default the system's list, otherwise the words of the space."""
    causal: tuple[str, ...] = ()
    """Folders of causal language models."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilons", tuple(sorted({check_epsilon(epsilon) for epsilon in self.epsilons})))
        for name in ("models", "mechanisms", "causal"):
            object.__setattr__(self, name, tuple(dict.fromkeys(getattr(self, name))))
        if self.seeds < 2:
            raise BadValueError(f"seeds = {self.seeds}: a deviation needs at least 2.")
        if self.epsilons and self.space is None:
            raise UnsetError("Further epsilons need the space of the release; add it (space).")
        if self.encoder is not None and self.vectors is not None:
            raise ConflictError("Similarity is measured by an encoder or by vectors; leave either out.")
        if self.mechanisms and not self.epsilons:
            raise UnsetError("Other mechanisms are tried at further epsilons; add epsilons (epsilon).")
        if self.keys and self.space is None:
            raise UnsetError("A leaked key needs the space of the release; add it (space).")
        if "vectors" in self.models and self.space is None:
            raise UnsetError("The model 'vectors' averages the vectors of a space; add it (space).")
        if not self.models:
            raise UnsetError("There is no model; name at least one.")
        for name in self.models:
            if name not in BUILT_IN and not os.path.isfile(os.path.join(name, "config.json")):
                raise BadValueError(
                    f"model {name!r}: choose {', '.join(BUILT_IN)}, or the folder of a transformers model."
                )
        for name in self.mechanisms:
            find(name)
        if self.words is not None and not files.exists(self.words):
            raise NoFileError(f"{self.words}: there is no such list; name a file with a word on each line.")
        if self.counts is not None:
            read_artifact(self.counts, "counts")
        if (self.label is not None or self.attribute is not None) and set(self.models) & set(BUILT_IN):
            require_sklearn()
        for folder in self.causal:
            if not os.path.isdir(folder):
                raise no_causal_model(folder)

    def classifiers(self) -> list[Model]:
        """Return the models, which all attackers have too."""
        return [model_of(name, self.space) if name in BUILT_IN else FineTuned(name) for name in self.models]

    def encoder_or_vectors(self) -> Encoder | None:
        """Return the encoder for similarity of meaning, or None.

        Its label says if the mechanism moved words in its vectors.
        """
        if self.encoder is not None or (self.vectors is None and self.space is None):
            return self.encoder
        if self.vectors is None:
            assert self.space is not None  # noqa: S101 - for the types
            return AveragedVectors(self.space, centred=True, moved_in=True)
        return _averaged(self.vectors, self.space)

    def word_list(self) -> WordList | None:
        """Return the list in which words are looked up, or None."""
        if self.words is not None:
            return WordList.of_file(self.words)
        if os.path.isfile(SYSTEM_WORDS):
            return WordList.of_file(SYSTEM_WORDS)
        return None if self.space is None else WordList.of_space(self.space)


@functools.lru_cache(maxsize=1)
def _averaged(vectors: Vectors, space: Space | None) -> AveragedVectors:
    """Return the encoder of given vectors; its label says if a release's space is made from them."""
    moved_in = space is not None and made_of(space, vectors)
    own_space = build_space(vectors, lists=0)
    return AveragedVectors(own_space, centred=True, of=f"vectors of {vectors.source}", moved_in=moved_in)

"""Vocabulary, vectors and one-dimensional lists: built once, frozen, hashed, memory-mapped."""

from corpusveil.spaces.build import build_space
from corpusveil.spaces.load import load_space
from corpusveil.spaces.number_counts import Numbers, read_numbers
from corpusveil.spaces.public_counts import read_counts
from corpusveil.spaces.space import Space
from corpusveil.spaces.vectors import Vectors, read_vectors
from corpusveil.spaces.vocabulary import Vocabulary

__all__ = [
    "Numbers",
    "Space",
    "Vectors",
    "Vocabulary",
    "build_space",
    "load_space",
    "read_counts",
    "read_numbers",
    "read_vectors",
]

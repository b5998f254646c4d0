"""Vocabulary, vectors and one-dimensional lists: built once, frozen, hashed, memory-mapped.

Here is what opening a space needs; a release does not load what builds one (``build.py``, ``vectors.py``).
"""

from corpusveil.spaces.space import Space, demo_space, load_space
from corpusveil.spaces.vocabulary import Vocabulary

__all__ = ["Space", "Vocabulary", "demo_space", "load_space"]

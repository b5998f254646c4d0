"""One file a mechanism: ids in, ids out; its exact distribution; the guarantee that really holds."""

from corpusveil.mechanisms.base import Guarantee, Mechanism
from corpusveil.mechanisms.registry import find, make_mechanism, names, register

__all__ = ["Guarantee", "Mechanism", "find", "make_mechanism", "names", "register"]

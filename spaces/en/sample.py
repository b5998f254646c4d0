"""The sample of public texts that no count has read: on it is measured what a reader recovers (``figures.py``).

It is ``sample.jsonl.zst``, JSON lines of ``text``, ``register`` and ``counted``. The texts of a register that is
counted are like the model's: held out at random from the text that was counted. Those of a register with ``counted``
false are unlike it: no text of their register was counted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import orjson
import zstandard

NAME = "sample.jsonl.zst"


@dataclass(frozen=True, slots=True)
class Sample:
    """Texts, and those of registers of which the model has counted nothing; ``digest`` is the SHA-256 of both.

    ``registers`` are those of the texts that are like the model's; empty if unknown.
    """

    like: tuple[str, ...]
    unlike: tuple[str, ...] = ()
    registers: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        return hashlib.sha256(orjson.dumps([self.like, self.unlike])).hexdigest()


def read_sample(data: bytes) -> Sample:
    """Return the sample in the bytes of its file."""
    lines = zstandard.ZstdDecompressor().decompress(data).splitlines()
    texts: dict[tuple[bool, str], list[str]] = {}
    for row in map(orjson.loads, lines):
        texts.setdefault((row["counted"], row["register"]), []).append(row["text"])
    like, unlike = (
        [some for (counted, _), some in sorted(texts.items()) if counted == of] for of in (True, False)
    )  # fmt: skip
    registers = [[register] * len(some) for (counted, register), some in sorted(texts.items()) if counted]
    return Sample(_in_turn(like), _in_turn(unlike), _in_turn(registers))


def _in_turn(registers: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return the texts of registers by turns, so that the first are of all registers alike."""
    longest = max(map(len, registers), default=0)
    return tuple(texts[at] for at in range(longest) for texts in registers if at < len(texts))

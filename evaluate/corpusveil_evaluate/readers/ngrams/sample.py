"""A sample of public texts that no count has read: on it is measured what a reader recovers (``context_risk.py``).

A model keeps one in ``sample.jsonl.zst``, JSON lines of ``text``, ``register`` and ``counted``. The texts of a register
that is counted are like the model's: held out at random from the text that was counted. Those of a register with
``counted`` false are unlike it: no text of their register was counted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import orjson
import pyarrow as pa

from corpusveil.errors import ArtifactError, DataError, MissingError
from corpusveil.storage import files
from corpusveil_evaluate.readers.ngrams.model import LanguageModel

NAME = "sample.jsonl.zst"
MOST_BYTES = 1 << 20
"""The largest file of a sample."""
MOST_TEXT = 1 << 24
"""The largest text of a sample, in bytes."""


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


def read_sample(data: bytes, url: str) -> Sample:
    """Return the sample in the bytes of a file. Raises UserError for a file that is no sample."""
    if len(data) > MOST_BYTES:
        raise DataError(f"{url}: this sample has {len(data):,} bytes; give at most {MOST_BYTES:,}.")
    try:
        with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
            lines = stream.read(MOST_TEXT).splitlines()
    except OSError:
        raise DataError(f"{url}: this is no file compressed with zstd; compress the sample.") from None
    texts: dict[tuple[bool, str], list[str]] = {}
    for number, line in enumerate(lines, 1):
        try:
            row = orjson.loads(line)
            text, register, counted = row["text"], row["register"], row.get("counted", True)
        except (orjson.JSONDecodeError, TypeError, KeyError, AttributeError):
            text = register = counted = None
        is_name = isinstance(register, str) and register.isprintable()
        if not (isinstance(text, str) and is_name and isinstance(counted, bool)):
            raise DataError(
                f'{url}: line {number}: write {{"text": "…", "register": "…"}}, with "counted": false where no text of '
                "the register was counted."
            )
        texts.setdefault((counted, register), []).append(text)
    like, unlike = (
        [some for (counted, _), some in sorted(texts.items()) if counted == of] for of in (True, False)
    )  # fmt: skip
    registers = [[register] * len(some) for (counted, register), some in sorted(texts.items()) if counted]
    return Sample(_in_turn(like), _in_turn(unlike), _in_turn(registers))


def sample_of(model: LanguageModel) -> Sample | None:
    """Return the sample that a model was saved with, None without one. Raises ArtifactError if it is damaged."""
    if model.url is None or "sample" not in model.info:
        return None
    url = files.join(model.url, NAME)
    damaged = f"{url}: this sample is damaged; copy the model again from an undamaged copy, or make it again."
    try:
        data = files.read_bytes(url)
    except (OSError, MissingError):
        raise ArtifactError(damaged) from None
    if hashlib.sha256(data).hexdigest() != model.info["sample"]:
        raise ArtifactError(damaged)
    return read_sample(data, url)


def _in_turn(registers: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return the texts of registers by turns, so that the first are of all registers alike."""
    longest = max(map(len, registers), default=0)
    return tuple(texts[at] for at in range(longest) for texts in registers if at < len(texts))

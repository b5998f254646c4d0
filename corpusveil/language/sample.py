"""A sample of public texts that no count has read: on it is measured what a reader recovers (``context_risk.py``).

A model keeps one in ``sample.jsonl.zst``, JSON lines of ``text``, ``register`` and ``counted``. The texts of a register
that is counted are like the model's: held out at random from the text that was counted. Those of a register with
``counted`` false are unlike it: no text of their register was counted.

Where texts may not be passed on, a model keeps what was measured on them instead, in ``figures.json``, by mechanism,
space and treatment of stop words.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import orjson
import pyarrow as pa

from corpusveil.errors import ArtefactError, BadFileError, BadRowError, NotMadeError, SizeError
from corpusveil.language.model import LanguageModel
from corpusveil.spaces.installed import FIGURES
from corpusveil.storage import files
from corpusveil.storage.records import Line, Record, record_at

NAME = "sample.jsonl.zst"
MOST_BYTES = 1 << 20
"""The largest file of a sample."""
MOST_TEXT = 1 << 24
"""The largest text of a sample, in bytes."""


class Stronger(Record):
    """By how much a stronger ``reader`` recovers more, measured on the first texts of the same sample.

    At the ``epsilons``: what it gains of all words and of content words, and the standard error of the latter, paired
    text by text; ``highest`` of the register of which the trigrams recover most; ``words`` is how many content words.
    ``model`` is a digest of what it reads by.
    """

    reader: Line
    model: Line
    words: list[list[int]]
    epsilons: list[float]
    like: list[list[float]]
    unlike: list[list[float]]
    highest: tuple[tuple[float, float], ...] = ()


class Figures(Record):
    """What readers recovered of a sample whose SHA-256 is ``text``.

    At the ``epsilons``: the shares of all words, of content words, and the standard error of the latter. ``highest``:
    the largest share of content words among registers like the model's, and its error; ``registers`` names them.
    ``stronger``: other readers, none of whom recovers less.
    """

    text: str
    epsilons: list[float]
    like: list[list[float]]
    unlike: list[list[float]]
    highest: tuple[tuple[float, float], ...] = ()
    registers: tuple[Line, ...] = ()
    stronger: tuple[Stronger, ...] = ()


class EveryFigures(Record):
    """The content of ``figures.json``: figures by their basis (``figures_of``)."""

    by_basis: dict[str, Figures]


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
        raise SizeError(f"{url}: this sample has {len(data):,} bytes; give at most {MOST_BYTES:,}.")
    try:
        with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
            lines = stream.read(MOST_TEXT).splitlines()
    except OSError:
        raise BadFileError(f"{url}: this is no file compressed with zstd; compress the sample.") from None
    texts: dict[tuple[bool, str], list[str]] = {}
    for number, line in enumerate(lines, 1):
        try:
            row = orjson.loads(line)
            text, register, counted = row["text"], row["register"], row.get("counted", True)
        except (orjson.JSONDecodeError, TypeError, KeyError, AttributeError):
            text = register = counted = None
        is_name = isinstance(register, str) and register.isprintable()
        if not (isinstance(text, str) and is_name and isinstance(counted, bool)):
            raise BadRowError(
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
    """Return the sample that a model was saved with, None without one. Raises ArtefactError if it is damaged."""
    if model.url is None or "sample" not in model.info:
        return None
    url = files.join(model.url, NAME)
    damaged = f"{url}: this sample is damaged; copy the model again from an undamaged copy, or make it again."
    try:
        data = files.read_bytes(url)
    except (OSError, NotMadeError):
        raise ArtefactError(damaged) from None
    if hashlib.sha256(data).hexdigest() != model.info["sample"]:
        raise ArtefactError(damaged)
    return read_sample(data, url)


def figures_of(model: LanguageModel, basis: str) -> Figures | None:
    """Return what was measured for a basis before the model was passed on, None if nothing was."""
    url = "" if model.url is None else files.join(model.url, FIGURES)
    every = record_at(url, EveryFigures, f"{url}: these figures are damaged; copy the model again.") if url else None
    return None if every is None else every.by_basis.get(basis)


def _in_turn(registers: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return the texts of registers by turns, so that the first are of all registers alike."""
    longest = max(map(len, registers), default=0)
    return tuple(texts[at] for at in range(longest) for texts in registers if at < len(texts))

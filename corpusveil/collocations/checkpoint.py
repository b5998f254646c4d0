"""The state of training between segments, stored at any address, so that an interrupted training can resume."""

from __future__ import annotations

import hashlib
import io
import time
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from corpusveil.errors import BadRecordError, InUseError, UserError
from corpusveil.storage import files
from corpusveil.storage.failures import BROKEN_ARRAY
from corpusveil.storage.records import Record, Records

STATE = "state.json"


class TrainingState(Record):
    """``state.json``: the arrays of a model by their digests, and NumPy's random state; ``name`` is a part of paths."""

    mark: str
    epoch: int
    segment: int
    name: Annotated[str, Field(pattern="^epoch-[0-9]{4,9}-segment-[0-9]{6,12}$")]
    arrays: dict[Annotated[str, Field(pattern="^(vectors|syn1neg|syn1)$")], str]
    random: tuple[str, list[int], int, int, float]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A folder with the arrays of a model and, written last, their description.

    ``mark`` covers everything that decides the result: another training does not resume from this state. ``every`` is
    the number of seconds of work that may be lost: ``offer`` keeps the state only after this time.
    """

    url: str
    mark: str
    every: float = 60.0
    _kept: float = field(default_factory=time.monotonic, init=False, repr=False, compare=False)

    def offer(self, model: Any, epoch: int, segment: int) -> None:
        """Keep the state if the last one, or the beginning, is ``every`` seconds ago."""
        if time.monotonic() - self._kept >= self.every:
            self.keep(model, epoch, segment)
            object.__setattr__(self, "_kept", time.monotonic())

    def keep(self, model: Any, epoch: int, segment: int) -> None:
        """Keep the state after ``segment`` segments of ``epoch`` whole epochs, and remove the one before."""
        before = self._state()
        name = f"epoch-{epoch:04d}-segment-{segment:06d}"
        digests = {}
        for part, array in _arrays(model).items():
            with files.open_write(files.join(self.url, f"{name}.{part}.npy")) as file:
                np.save(file, array, allow_pickle=False)
            digests[part] = hashlib.sha256(array.tobytes()).hexdigest()
        kind, keys, position, has_gauss, cached = model.random.get_state()
        random = (kind, keys.tolist(), position, has_gauss, cached)
        state = TrainingState(mark=self.mark, epoch=epoch, segment=segment, name=name, arrays=digests, random=random)
        self._records.write(STATE, state)
        if before is not None and before.name != name:
            self._remove(before)

    def restore(self, model: Any) -> tuple[int, int]:
        """Load the state into a model with its vocabulary; return whole epochs, and segments of the next epoch."""
        state = self._state()
        if state is None:
            return 0, 0
        if state.mark != self.mark:
            raise InUseError(
                f"{self.url}: this is the state of another training; finish that training, remove this state, or "
                "choose another output."
            )
        for part, array in _arrays(model).items():
            address = files.join(self.url, f"{state.name}.{part}.npy")
            try:
                kept = np.load(io.BytesIO(files.read_bytes(address)), allow_pickle=False)
            except BROKEN_ARRAY:
                raise self._damaged() from None
            if (
                kept.dtype != array.dtype
                or kept.shape != array.shape
                or hashlib.sha256(kept.tobytes()).hexdigest() != state.arrays.get(part)
            ):
                raise BadRecordError(
                    f"{address}: this state of a training is damaged; remove its folder and train again."
                )
            array[:] = kept
        kind, keys, position, has_gauss, cached = state.random
        try:
            model.random.set_state((kind, np.array(keys, dtype=np.uint32), position, has_gauss, cached))
        except (ValueError, TypeError, LookupError, OverflowError):
            raise self._damaged() from None
        return state.epoch, state.segment

    def remove(self) -> None:
        """Remove the state, once the vectors are saved."""
        state = self._state()
        if state is not None:
            files.remove(files.join(self.url, STATE))
            self._remove(state)

    @property
    def _records(self) -> Records:
        return Records(self.url, private=False)

    def _state(self) -> TrainingState | None:
        try:
            return self._records.read(STATE, TrainingState)
        except BadRecordError:
            raise self._damaged() from None

    def _damaged(self) -> UserError:
        return BadRecordError(f"{self.url}: this state of a training is damaged; remove it and train again.")

    def _remove(self, state: TrainingState) -> None:
        for part in state.arrays:
            files.remove(files.join(self.url, f"{state.name}.{part}.npy"))


def _arrays(model: Any) -> dict[str, Any]:
    """Return the arrays that training changes."""
    arrays = {"vectors": model.wv.vectors}
    if model.negative:
        arrays["syn1neg"] = model.syn1neg
    if model.hs:
        arrays["syn1"] = model.syn1
    return arrays

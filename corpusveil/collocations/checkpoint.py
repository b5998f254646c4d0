"""The state of training between segments, kept at any address, so that an interrupted training goes on."""

from __future__ import annotations

import hashlib
import io
import json
import re
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from corpusveil.errors import UserError
from corpusveil.spaces.formats.table import BROKEN_ARRAY
from corpusveil.storage import files
from corpusveil.storage.shapes import Each, fits, parsed, row

STATE = "state.json"


def _is_name(value: Any) -> bool:
    """Say whether a name is one that ``keep`` gives: it becomes a part of paths that are read and removed."""
    return isinstance(value, str) and re.fullmatch("epoch-[0-9]{4,9}-segment-[0-9]{6,12}", value) is not None


def _are_arrays(value: Any) -> bool:
    return fits(value, Each(str)) and set(value) <= {"vectors", "syn1neg", "syn1"}


_STATE = {
    "mark": str, "epoch": int, "segment": int, "name": _is_name, "arrays": _are_arrays,
    "random": row(str, [int], int, int, float),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A folder with the arrays of a model and, written last, which they are.

    ``mark`` is of everything that decides the result: another training does not go on from this state. ``every`` is
    how many seconds of work may be lost: ``offer`` keeps the state only when so much time has passed.
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
            data = io.BytesIO()
            np.save(data, array, allow_pickle=False)
            files.write_bytes(files.join(self.url, f"{name}.{part}.npy"), data.getvalue())
            digests[part] = hashlib.sha256(array.tobytes()).hexdigest()
        kind, keys, position, has_gauss, cached = model.random.get_state()
        random = [kind, keys.tolist(), position, has_gauss, cached]
        state = {"mark": self.mark, "epoch": epoch, "segment": segment, "name": name, "arrays": digests}
        files.write_bytes(files.join(self.url, STATE), json.dumps({**state, "random": random}).encode())
        if before is not None and before["name"] != name:
            self._remove(before)

    def restore(self, model: Any) -> tuple[int, int]:
        """Put the state into a model that has its vocabulary; return whole epochs, and segments of the next one."""
        state = self._state()
        if state is None:
            return 0, 0
        if state["mark"] != self.mark:
            raise UserError(
                f"{self.url}: this is the state of another training; run that, remove it, or choose another --output."
            )
        for part, array in _arrays(model).items():
            address = files.join(self.url, f"{state['name']}.{part}.npy")
            try:
                kept = np.load(io.BytesIO(files.read_bytes(address)), allow_pickle=False)
            except BROKEN_ARRAY:
                raise self._damaged() from None
            if (
                kept.dtype != array.dtype
                or kept.shape != array.shape
                or hashlib.sha256(kept.tobytes()).hexdigest() != state["arrays"].get(part)
            ):
                raise UserError(f"{address}: this state of a training is damaged; remove its folder and train again.")
            array[:] = kept
        kind, keys, position, has_gauss, cached = state["random"]
        try:
            model.random.set_state((kind, np.array(keys, dtype=np.uint32), position, has_gauss, cached))
        except (ValueError, TypeError, LookupError, OverflowError):
            raise self._damaged() from None
        return int(state["epoch"]), int(state["segment"])

    def remove(self) -> None:
        """Remove the state, once the vectors are saved."""
        state = self._state()
        if state is not None:
            files.remove(files.join(self.url, STATE))
            self._remove(state)

    def _state(self) -> dict[str, Any] | None:
        if not files.exists(files.join(self.url, STATE)):
            return None
        state: dict[str, Any] = parsed(files.read_bytes(files.join(self.url, STATE)))
        if not fits(state, _STATE):
            raise self._damaged()
        return state

    def _damaged(self) -> UserError:
        return UserError(f"{self.url}: this state of a training is damaged; remove it and train again.")

    def _remove(self, state: dict[str, Any]) -> None:
        for part in state["arrays"]:
            files.remove(files.join(self.url, f"{state['name']}.{part}.npy"))


def _arrays(model: Any) -> dict[str, Any]:
    """Return the arrays that training changes."""
    arrays = {"vectors": model.wv.vectors}
    if model.negative:
        arrays["syn1neg"] = model.syn1neg
    if model.hs:
        arrays["syn1"] = model.syn1
    return arrays

"""A release on a dataset of Ray; and what reaches Ray's workers sealed, because Ray keeps it where others may read it.

Ray writes large objects to shared memory, and to files when that is full; it lists the arguments of a dataset's steps
in a log. Arguments and answers below 100 KB stay in the memory of processes. So a function that holds keys travels
encrypted under a fresh key, and this key separately: as an argument, or from an actor.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from corpusveil.errors import ConflictError, PackageError, UnsetError, of_other_type
from corpusveil.ledger.summary import Ledger
from corpusveil.ledger.units import scope_of
from corpusveil.transforms.frames import frame_of
from corpusveil.transforms.handshake import SameVersions
from corpusveil.transforms.release.release import Release, require_release
from corpusveil.transforms.table import drawn

_NONCE = bytes(12)
"""Each key encrypts once."""
_opened: dict[bytes, Any] = {}


def require_ray(what: str) -> Any:
    """Return the module. Raises UserError without Ray."""
    try:
        import ray
    except ImportError:
        raise PackageError(f"{what} needs Ray: pip install 'corpusveil[ray]'.") from None
    return ray


def sealed(value: Any) -> tuple[bytes, bytes]:
    """Return a value encrypted, and the key that opens it."""
    from ray import cloudpickle

    key = AESGCM.generate_key(256)
    return AESGCM(key).encrypt(_NONCE, cloudpickle.dumps(value), None), key


def opened(data: bytes, key: bytes) -> Any:
    """Return a sealed value; a process opens each once."""
    from ray import cloudpickle

    if key not in _opened:
        if len(_opened) > 8:
            _opened.clear()
        _opened[key] = cloudpickle.loads(AESGCM(key).decrypt(_NONCE, data, None))
    return _opened[key]


class _Keeper:
    """The actor with the key of a dataset's sealed function, as long as the dataset is used."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def key(self) -> bytes:
        return self._key


def privatize_dataset(
    dataset: Any, release: Release, text: str = "text", id: str | None = None, *, ledger: Ledger | None = None,
    unit: str | None = None,
) -> Any:  # fmt: skip
    """Privatize the string column ``text`` of a dataset of Ray (``ray.data``); the other columns stay as they are.

    ``id``, which is required, names a column that identifies the documents. Each block gives what
    ``cv.privatize_table`` gives, lazily, on Ray's workers, which need corpusveil in the same versions. The keys of the
    release are encrypted wherever Ray stores or logs them; the texts are not. ``unit`` names the column with the units
    within which pseudonyms are equal, where the release asks for units.

    Raises UserError for another object than a dataset, without an id, and with a ``ledger``: Ray computes lost blocks
    again, so nothing can be accounted for before. A fault of the rows, such as a missing column, arrives when Ray runs
    the plan, as Ray's RayTaskError, whose text has the UserError's sentence and no text of a document.
    """
    ray = require_ray("privatize_dataset")
    from ray.data import Dataset

    if ledger is not None:
        raise ConflictError(
            "ledger: Ray computes lost blocks again, so nothing can be accounted for before; account first, with "
            "cv.privatize_corpus(files, output, release, cv.Ray(), ledger=ledger, unit=...)."
        )
    if not isinstance(dataset, Dataset):
        raise of_other_type("dataset", dataset, "a dataset of ray.data, or other frames to cv.privatize")
    if id is None:
        raise UnsetError("Documents of a dataset have no row order to identify them by; name a column: id='...'.")
    kernel = require_release(release).kernel()
    column, scope = id, scope_of(unit, scoped=release.scoped)

    def work(table: pa.Table) -> pa.Table:
        if text in table.column_names and pa.types.is_null(table.column(text).type):
            return table  # a block whose texts are all missing
        return drawn(kernel, frame_of(table, text), column, text, scope=scope)

    data, key = sealed(SameVersions.of(work))
    keeper = ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1)(_Keeper).remote(key)

    def privatized(table: pa.Table) -> pa.Table:
        return opened(data, ray.get(keeper.key.remote()))(table) if len(table) else table

    return dataset.map_batches(privatized, batch_format="pyarrow", batch_size=None)

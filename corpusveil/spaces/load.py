"""Open a saved space: checked against its digest, memory-mapped, once a process."""

from __future__ import annotations

import copyreg
import json
import os
import re
import threading
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from corpusveil.errors import (
    AccessError,
    ArtefactError,
    BadRecordError,
    MismatchError,
    NotMadeError,
    UserError,
    VersionError,
    replaced,
)
from corpusveil.spaces.formats.vector_table import BROKEN_ARRAY
from corpusveil.spaces.number_counts import read_numbers
from corpusveil.spaces.space import (
    KIND,
    LISTS,
    PARTIAL_VERSION,
    PLACES,
    VECTORS,
    VERSION,
    VOCABULARY,
    Space,
    absolute,
    content_digest,
)
from corpusveil.spaces.vocabulary import BLANKS, BLOCK, read_vocabulary
from corpusveil.storage import files, home
from corpusveil.storage.artifacts import ARTIFACT, described

_BLANK_BYTES = np.frombuffer("".join(sorted(BLANKS)).encode(), np.uint8)
_opened: dict[tuple[str, str], Space] = {}
_lock = threading.Lock()


def load_space(url: str | os.PathLike[str], *, verify: bool = True) -> Space:
    """Open the space saved at ``url``.

    Args:
        url: any fsspec URL; a remote space is copied to this machine's cache once.
        verify: check the content against the digest (reads every file: about a second a gigabyte).

    Raises:
        UserError: there is no space, it is of another version, or its files are damaged.
    """
    url = absolute(url)
    info = _read_info(url)
    partial = info["version"] == PARTIAL_VERSION
    names = [VECTORS, LISTS, VOCABULARY, *([PLACES] if partial else [])]
    folder = home.local_folder(url, names, info["digest"])
    where = str(folder) if str(folder) == url else f"{url} (local copy {folder}; delete it first)"
    try:
        vocabulary = read_vocabulary(str(folder / VOCABULARY))
        places = _mapped(folder / PLACES) if partial else None
        vectors, lists = _mapped(folder / VECTORS), _mapped(folder / LISTS)
        numbers = read_numbers(url)
        space = Space(vocabulary, vectors, lists, info["digest"], url, info, places, numbers)
    except UserError as error:
        raise _damaged(where, str(error)) from None
    sizes = {"words": len(space), "dimensions": space.dimensions, "lists": len(space.lists)}
    if wrong := [name for name, size in sizes.items() if info.get(name) != size]:
        raise _damaged(where, f"{ARTIFACT} says another number of {wrong[0]}; the files have {sizes[wrong[0]]}.")
    if verify and content_digest(vocabulary, space.vectors, space.lists, space.places) != info["digest"]:
        raise _damaged(where, "its contents do not have the digest that they were saved with.")
    if verify:
        _refuse_unusable(space, where)
    return space


def _refuse_unusable(space: Space, where: str) -> None:
    """Raise UserError for values that ``build_space`` never writes, but a modified space could contain."""
    text, ends = space.vocabulary.text, space.vocabulary.offsets
    if np.isin(text, _BLANK_BYTES).any() or (np.diff(ends) == 0).any():
        raise _damaged(where, "a word is empty or contains a blank.")
    for row in range(0, len(space), BLOCK):
        if not np.isfinite(space.vectors[row : row + BLOCK]).all():
            raise _damaged(where, "a vector contains a number that is not finite.")


def reopen(url: str, digest: str) -> Space:
    """Return the space that was pickled as (``url``, ``digest``), opened once in this process."""
    with _lock:
        if (url, digest) not in _opened:
            space = load_space(url)
            if space.digest != digest:
                raise replaced(url, "space")
            _opened[url, digest] = space
        return _opened[url, digest]


def _reduced(space: Space) -> tuple[Any, ...]:
    """Return the pickled form: the address of a saved space, so that each process maps it, otherwise the arrays."""
    if space.url is not None:
        return reopen, (space.url, space.digest)
    return Space, (
        space.vocabulary,
        space.vectors,
        space.lists,
        space.digest,
        None,
        space.info,
        space.places,
        space.numbers,
    )


copyreg.pickle(Space, _reduced)  # beside the reader and not in Space, which would import what imports it


def _read_info(url: str) -> dict[str, Any]:
    try:
        found = described(url)
    except BadRecordError:
        raise _damaged(url, f"{ARTIFACT} is not a description of a space.") from None
    if found is None:
        raise NotMadeError(f"{url}: there is no space here (no {ARTIFACT}); make a space with 'corpusveil space'.")
    info: dict[str, Any] = json.loads(files.read_bytes(files.join(url, ARTIFACT)))  # in its order
    if found.kind != KIND:
        raise MismatchError(f"{url}: this is not a space but {found.kind[:40]}; make a space with 'corpusveil space'.")
    if info["version"] not in (VERSION, PARTIAL_VERSION):
        raise VersionError(
            f"{url}: this space has version {info.get('version')}, and this release of corpusveil reads 1 and 2; "
            "build the space again, or use the release that built it."
        )
    if not re.fullmatch("[0-9a-f]{64}", str(info.get("digest"))):
        raise _damaged(url, f"{ARTIFACT} has no digest.")
    return info


def _mapped(path: Path) -> npt.NDArray[Any]:
    try:
        array: npt.NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except PermissionError:
        raise AccessError(f"there is no permission to read {path.name}.") from None
    except BROKEN_ARRAY:
        raise ArtefactError(f"{path.name} is missing or cut short.") from None
    return array


def _damaged(where: str, how: str) -> UserError:
    return ArtefactError(
        f"{where}: this space is damaged ({how.rstrip('.')}); copy it again from an undamaged copy, or build it again."
    )

"""Where reports and studies may be written: in no input, and where there is a right to."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Sequence

from fsspec.implementations.local import LocalFileSystem
from fsspec.utils import glob_translate

from corpusveil.errors import file_in_the_way, not_writable
from corpusveil.storage import files


def lies_in_input(output: str, given: str, written: Sequence[str]) -> bool:
    """Say whether a folder is in an input, or whether a glob matches a file that is written to the folder."""
    folder, pattern = files.absolute(output).rstrip("/"), files.absolute(given.rstrip("/"))
    names = [f"{folder}/{name}" for name in written]
    return f"{folder}/".startswith(f"{pattern}/") or (
        glob.has_magic(pattern) and any(re.fullmatch(glob_translate(pattern), name) for name in names)
    )


def check_folder(url: str) -> None:
    """Raise UserError where a local folder can't be made or written to; nothing is made."""
    fs, path = files.resolve(url)
    if not isinstance(fs, LocalFileSystem):
        return
    at = os.path.abspath(path)
    while not os.path.lexists(at):
        at = os.path.dirname(at)
    if not os.path.isdir(at):
        raise file_in_the_way(at)
    if not os.access(at, os.W_OK | os.X_OK):
        raise not_writable(at)

"""A check of files that are run, or decide an output: only the user and root may write to them."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from corpusveil.errors import AddressError

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def refuse_others(path: Path, *, link: bool = False) -> None:
    """Raise UserError unless a file or folder (or a ``link`` to a file) is only the user's or root's to write."""
    try:
        status = path.stat() if link else path.lstat()
    except OSError as error:
        raise AddressError(f"{path}: this could not be examined ({error.strerror}); check its permissions.") from None
    if stat.S_ISLNK(status.st_mode):
        raise AddressError(f"{path}: this is a link, and its target is not trusted; remove it.")
    if status.st_uid not in (0, os.geteuid()):
        raise AddressError(f"{path}: this belongs to another user, who could change its contents; remove it.")
    if status.st_mode & _OTHERS_WRITE:
        raise AddressError(
            f"{path}: other users can write to this file or folder, and so could change its contents; remove it, or "
            "take away that right (chmod -R go-w) if you know the contents."
        )

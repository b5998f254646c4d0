"""The key of a release: the key that the settings name, otherwise a key made for the output and found again."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from corpusveil.errors import OverlapError
from corpusveil.pipelines.settings import KeySettings
from corpusveil.pipelines.watch import Watch
from corpusveil.sampling.keys import Key
from corpusveil.storage import files


def key_of(settings: KeySettings, output: str, watch: Watch, *, make: bool = True) -> Key:
    """Return the key that settings name; otherwise the output's own key, made if it is missing and ``make`` is set."""
    if settings.test:
        return Key.for_tests()
    if settings.environment is not None:
        return Key.from_environment(settings.environment)
    if settings.path is None:
        return own_key(output, watch, make=make)
    path = settings.path
    if files.is_local(output) and Path(path).resolve().is_relative_to(Path(output).resolve()):
        raise OverlapError(f"{path}: the key is in the output folder, which is for the public; move the key elsewhere.")
    return Key.load(path)


def own_key(output: str, watch: Watch, *, make: bool = True) -> Key:
    """Find or make the key of an output in the user's key folder, and name it.

    A new key is kept there if ``make`` is set; otherwise it is discarded.
    """
    base = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    mark = hashlib.sha256(files.absolute(output).encode()).hexdigest()[:12]
    target = base / "corpusveil" / "keys" / f"{mark}.key"
    if not target.exists():
        new = Key.generate()
        if not make:
            return new
        files.create_bytes(
            str(target), new.secret, private=True
        )  # of several parallel starts, one makes the key of all
    watch.warn(f"No key is given. The key of this output is {target}; a later run with the same output uses it again.")
    return Key.load(target)

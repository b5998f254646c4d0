"""The key of a release: the key that the settings name, otherwise a key made for the output and found again."""

from __future__ import annotations

import hashlib
from pathlib import Path

from corpusveil.errors import OverlapError
from corpusveil.pipelines.settings.sections import KeySettings
from corpusveil.pipelines.watch import Watch
from corpusveil.sampling.keys import Key
from corpusveil.storage import files
from corpusveil.storage.home import configuration_path


def key_of(settings: KeySettings, output: str) -> Key:
    """Return the key that settings name; otherwise the output's own, or a new one, which ``keep`` keeps."""
    if settings.test:
        return Key.for_tests()
    if settings.environment is not None:
        return Key.from_environment(settings.environment)
    if settings.path is None:
        own = _own(output)
        return Key.load(own) if own.exists() else Key.generate()
    path = settings.path
    if files.is_local(output) and Path(path).resolve().is_relative_to(Path(output).resolve()):
        raise OverlapError(f"{path}: the key is in the output folder, which is for the public; move the key elsewhere.")
    return Key.load(path)


def keep(key: Key, settings: KeySettings, output: str, watch: Watch, *, make: bool = True) -> Key:
    """Return the key of an output: this one, or if settings name none, that in the user's key folder, and name it.

    There, this key becomes that of the output if there is none yet and ``make`` is set.
    """
    if settings.test or settings.environment is not None or settings.path is not None:
        return key
    own = _own(output)
    if not own.exists():
        if not make:
            return key
        files.create_bytes(str(own), key.secret, private=True)  # of several parallel starts, one makes the key of all
    watch.warn(f"No key is given. The key of this output is {own}; a later run with the same output uses it again.")
    return Key.load(own)


def _own(output: str) -> Path:
    """Return the file of an output's own key, in the user's key folder."""
    mark = hashlib.sha256(files.absolute(output).encode()).hexdigest()[:12]
    return configuration_path() / "keys" / f"{mark}.key"

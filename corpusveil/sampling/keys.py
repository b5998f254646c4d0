"""Secret keys: 32 random bytes, and keys derived from them.

Derivation is HKDF-SHA256 (RFC 5869) with a purpose as its info string, so that no two purposes, and no two release
configurations, share a bit.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from dataclasses import dataclass, field, replace
from pathlib import Path

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from corpusveil.errors import AddressError, MissingError, PackageError, SettingError, not_a_choice
from corpusveil.storage import files

KEY_BYTES = 32
FEWEST_BYTES = 8
"""A secret of fewer different bytes is not random."""
OTHERS = 0o077
"""The bits of a file's mode that give access to its group or others."""
PLACES = ("path", "environment", "secret")
"""How the place of a key is named."""
_SALT = b"corpusveil key derivation 1"
_TEST_SECRET = bytes(range(KEY_BYTES))
_HEX = re.compile(f"[0-9a-fA-F]{{{2 * KEY_BYTES}}}")


def _is_text(secret: bytes) -> bool:
    """Say whether the bytes are UTF-8, which 32 random ones hardly ever are."""
    try:
        secret.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _check(secret: bytes, source: str, size: int = 0) -> bytes:
    """Return the secret if it can be a key; it may be the beginning of a file of ``size`` bytes."""
    if not isinstance(secret, bytes):
        raise SettingError(
            f"{source}: this is of type {type(secret).__name__}; give 32 bytes, or read a file with Key.load."
        )
    if (length := max(size, len(secret))) != KEY_BYTES:
        raise SettingError(
            f"{source}: a key has exactly {KEY_BYTES} random bytes, and this has {length:,}; make a key with "
            "'corpusveil key new PATH'."
        )
    if secret != _TEST_SECRET and (len(set(secret)) < FEWEST_BYTES or _is_text(secret)):
        raise SettingError(
            f"{source}: this looks like a passphrase, which can be guessed; make a random key with 'corpusveil key "
            "new PATH'."
        )
    return secret


def _granted(status: os.stat_result) -> int:
    """Return the bits of a mode by which root gives a file to the group of this process, as libpq takes a key."""
    groups = {os.getegid(), *os.getgroups()}
    return stat.S_IRGRP if status.st_uid == 0 != os.geteuid() and status.st_gid in groups else 0


@dataclass(frozen=True, slots=True)
class Key:
    """A secret key of 32 random bytes. Its text form never shows it. Raises UserError for bytes that can be guessed.

    >>> key = cv.Key.generate()
    >>> key.save("release.key")
    >>> cv.Key.load("release.key") == key
    True
    """

    secret: bytes = field(repr=False)
    place: tuple[str, str] | None = field(default=None, repr=False, compare=False)
    """Where each process reads it (``at``); None: it is sent."""

    def __post_init__(self) -> None:
        _check(self.secret, "Key")

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.secret,)) if self.place is None else (type(self).at, self.place)

    @property
    def test(self) -> bool:
        """Whether this is the public test key: everything made with it is marked NOT PRIVATE."""
        return self.secret == _TEST_SECRET

    @classmethod
    def generate(cls) -> Key:
        """Return a new key from the operating system's entropy."""
        while True:
            secret = secrets.token_bytes(KEY_BYTES)
            if len(set(secret)) >= FEWEST_BYTES and not _is_text(secret):
                return cls(secret)

    @classmethod
    def for_tests(cls) -> Key:
        """Return the published test key. It protects nothing."""
        return cls(_TEST_SECRET)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Key:
        """Read a key file of exactly 32 bytes, which nobody but its owner may read.

        The group of the process may read a file of root's, as it does a secret of Kubernetes. Raises UserError if it is
        missing, unreadable or not a key, and if its mode gives other access to its group or others (for a link: the
        mode of its target). Windows has no such modes.
        """
        name = os.fspath(path)
        try:
            with open(name, "rb") as file:
                status = os.fstat(file.fileno())
                secret = file.read(KEY_BYTES + 1)
        except FileNotFoundError:
            raise MissingError(
                f"{name}: there is no such key file; make a key with 'corpusveil key new {name}'."
            ) from None
        except OSError as error:
            raise SettingError(f"{name}: the key file could not be read ({error.strerror}).") from None
        key = cls(_check(secret, name, status.st_size))
        mode = stat.S_IMODE(status.st_mode)
        if os.name == "posix" and mode & OTHERS & ~_granted(status):
            raise SettingError(
                f"{name}: other users can read or write this key file (its mode is {mode:04o}); restrict access with "
                f"chmod 600 {name}"
            )
        return key

    @classmethod
    def from_environment(cls, name: str) -> Key:
        """Read a key of 64 hexadecimal digits from an environment variable. Raises UserError if it is not a key."""
        text = os.environ.get(name)
        if not text:
            raise SettingError(f"{name}: this environment variable is not set; set it to a key as 64 hex digits.")
        try:
            secret = bytes.fromhex(text.strip())
        except ValueError:
            raise SettingError(f"{name}: this environment variable is not a key; set it to 64 hex digits.") from None
        return cls(_check(secret, name))

    @classmethod
    def at(cls, kind: str, name: str) -> Key:
        """Read the key at a ``path`` or URL, in an ``environment`` variable, or in a ``secret`` as ``read_key`` does.

        The key, and all that draws with it, is pickled as this place, where each process reads it again. Raises
        UserError if it is not a key, and for a name that is itself a key, which is not quoted.
        """
        if kind not in PLACES:
            raise not_a_choice("key", kind, PLACES)
        if not isinstance(name, str) or _HEX.fullmatch(name.strip()):
            raise SettingError(f"key.{kind}: give the place of the key, never the key itself.")
        if kind == "environment":
            key = cls.from_environment(name)
        elif kind == "path" and "://" not in name:
            name = os.path.abspath(name)  # workers may run in other folders
            key = cls.load(name)
        elif kind == "secret" and not name.startswith("projects/"):
            raise SettingError("key.secret: name a version, as in projects/PROJECT/secrets/NAME/versions/3.")
        else:
            key = cls(bytes.fromhex(read_key(name)))
        return replace(key, place=(kind, name))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the key to a new file of mode 0600. Raises UserError if the file exists: it is never replaced."""
        target = Path(path)
        try:
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            raise AddressError(
                f"{target}: this file already exists, and a key is never overwritten; choose another path."
            ) from None
        except OSError as error:
            raise AddressError(f"{target}: the key could not be written ({error.strerror}).") from None
        with os.fdopen(descriptor, "wb") as file:
            file.write(self.secret)
            file.flush()
            os.fsync(file.fileno())

    def derive(self, purpose: str, context: bytes = b"", length: int = KEY_BYTES) -> bytes:
        """Return ``length`` bytes derived for one purpose and context."""
        info = purpose.encode() + b"\0" + context
        return HKDF(algorithm=SHA256(), length=length, salt=_SALT, info=info).derive(self.secret)

    def fingerprint(self) -> str:
        """Return a public name of the key: 16 hex digits that disclose nothing about it."""
        return self.derive("fingerprint", length=8).hex()


def read_key(location: str) -> str:
    """Return a key in hexadecimal from a secret manager or a file. Raises UserError, which quotes no content."""
    if location.startswith("projects/"):
        try:
            from google.api_core.exceptions import GoogleAPIError
            from google.auth.exceptions import GoogleAuthError
            from google.cloud import secretmanager
        except ImportError:
            raise PackageError(
                f"{location}: a secret needs Google's client: pip install 'corpusveil[dataflow]'."
            ) from None
        try:
            client = secretmanager.SecretManagerServiceClient()
            data = bytes(client.access_secret_version(name=location).payload.data)
        except (GoogleAPIError, GoogleAuthError) as error:
            raise SettingError(
                f"{location}: this secret could not be read ({type(error).__name__}); "
                "give the account that runs this the role Secret Manager Secret Accessor."
            ) from None
    else:
        data = files.read_bytes(location)
    text = data.hex() if len(data) == KEY_BYTES else data.decode("ascii", "replace").strip()
    if not _HEX.fullmatch(text):
        raise SettingError(f"{location}: this is not a key; store {KEY_BYTES} bytes, or as many in hexadecimal.")
    return text

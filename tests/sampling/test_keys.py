"""Keys: random, private on disk, never printed, never replaced."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from corpusveil.errors import AddressError, SettingError
from corpusveil.sampling.keys import Key, read_key
from corpusveil.storage import files
from tests.calls import refused
from tests.contracts.mechanism import another_key
from tests.engines.corpora import TEST_KEY


def test_no_text_form_shows_the_secret() -> None:
    """Neither in a log nor in a notebook."""
    key = another_key()
    for shown in (repr(key), str(key), f"{key!r:s}", key.fingerprint()):
        assert key.secret.hex()[:8] not in shown
        assert repr(key.secret)[2:10] not in shown


@pytest.mark.parametrize("size", [0, 31, 33, 82])
def test_other_sizes_are_refused(size: int, tmp_path: Path) -> None:
    """A key has 32 bytes, in memory and in a file."""
    secret = bytes((91 * k + 130) % 256 for k in range(size))
    with refused("wrong-setting", f"this has {size};"):
        Key(secret)
    (tmp_path / "key").write_bytes(secret)
    with refused("wrong-setting", "32", f"this has {size};"):
        Key.load(tmp_path / "key")


@pytest.mark.parametrize(
    "secret",
    [b"correct horse battery staple....", b"0123456789abcdef0123456789abcdef", b"a" * 32, bytes(32), b"\xff\x00" * 16,
     b"line one\nline two\tand some more.\n"],
)  # fmt: skip
def test_a_passphrase_is_refused(secret: bytes, tmp_path: Path) -> None:
    """What can be typed can be guessed; neither error repeats it."""
    assert len(secret) in {32, 33}
    secret = secret[:32]
    for call in (lambda: Key(secret), lambda: Key.load(tmp_path / "key")):
        (tmp_path / "key").write_bytes(secret)
        with refused("wrong-setting", "passphrase") as caught:
            call()
        assert secret.decode("latin-1")[:12] not in str(caught.value)


def test_saved_keys_are_private_and_come_back(tmp_path: Path) -> None:
    """Mode 0600 whatever the umask; the file is the 32 bytes."""
    key = Key.generate()
    old = os.umask(0)
    try:
        key.save(tmp_path / "new folder" / "release.key")
    finally:
        os.umask(old)
    path = tmp_path / "new folder" / "release.key"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_bytes() == key.secret
    assert Key.load(path) == key
    assert Key.load(str(path)) == key


@pytest.mark.skipif(os.name != "posix", reason="needs modes of files")
class TestOthers:
    """A key that others may read is no secret: it is refused, with what mends it."""

    def made(self, folder: Path, mode: int) -> Path:
        path = folder / "release.key"
        another_key().save(path)
        path.chmod(mode)
        return path

    @pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o610, 0o601])
    def test_who_may_read_or_write_it_are_refused(self, tmp_path: Path, mode: int) -> None:
        path = self.made(tmp_path, mode)
        with refused("wrong-setting", f"{mode:04o}", "600", path):
            Key.load(path)
        path.chmod(0o600)
        assert Key.load(path) == another_key()

    def test_of_a_link_the_file_counts(self, tmp_path: Path) -> None:
        """As in a volume of a Kubernetes secret, where ``release.key`` leads to ``..data/release.key``."""
        (tmp_path / "..2026").mkdir()
        path = self.made(tmp_path / "..2026", 0o400)
        (tmp_path / "..data").symlink_to("..2026")
        (tmp_path / "release.key").symlink_to("..data/release.key")
        assert Key.load(tmp_path / "release.key") == another_key()
        path.chmod(0o440)
        with refused("wrong-setting", "0440"):
            Key.load(tmp_path / "release.key")


def test_a_key_is_never_overwritten(tmp_path: Path) -> None:
    """Nor is any other file, nor through a link."""
    path = tmp_path / "release.key"
    first = Key.generate()
    first.save(path)
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "target")
    (tmp_path / "other").write_text("")
    for taken in (path, link, tmp_path / "other"):
        with pytest.raises(AddressError):
            Key.generate().save(taken)
    assert Key.load(path) == first
    assert not (tmp_path / "target").exists()


def test_keys_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """64 hexadecimal digits, or an error that names the variable and not its content."""
    key = another_key()
    monkeypatch.setenv("A_KEY", f" {key.secret.hex()}\n")
    assert Key.from_environment("A_KEY") == key
    monkeypatch.delenv("A_KEY")
    with refused("wrong-setting", "A_KEY"):
        Key.from_environment("A_KEY")
    for bad in ("", "secretpassphrase", key.secret.hex()[:-2], key.secret.hex() + "00", "61" * 32):
        monkeypatch.setenv("A_KEY", bad)
        with refused("wrong-setting", "A_KEY") as caught:
            Key.from_environment("A_KEY")
        assert not bad or bad not in str(caught.value)


def test_purposes_contexts_and_fingerprints_share_nothing() -> None:
    """What is derived for one purpose says nothing about another, nor about the key."""
    key = another_key()
    derived = [
        key.derive("a"), key.derive("b"), key.derive("a", b"x"), key.derive("", b"a"), key.derive("draws"),
        Key.for_tests().derive("a"), bytes.fromhex(key.fingerprint()) + bytes(24),
    ]  # fmt: skip
    assert len({value[:8] for value in derived}) == len(derived)
    assert key.derive("a") == key.derive("a")
    assert key.derive("a", length=48)[:32] == key.derive("a")
    assert len(key.fingerprint()) == 16
    assert key.fingerprint() != Key.for_tests().fingerprint()


SECRET = "projects/project-one/secrets/release-key/versions/3"


class TestAKeyElsewhere:
    @pytest.mark.parametrize("data", [TEST_KEY, TEST_KEY.hex().encode(), TEST_KEY.hex().upper().encode() + b"\n"])
    def test_it_is_read_from_a_store(self, data: bytes) -> None:
        """As bytes, or as hexadecimal digits."""
        files.write_bytes("memory://keys/release.key", data)
        assert bytes.fromhex(read_key("memory://keys/release.key")) == TEST_KEY

    def test_it_is_read_from_a_secret_and_one_that_may_not_be_read_is_named(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from google.api_core.exceptions import PermissionDenied
        from google.cloud import secretmanager

        class Client:
            def access_secret_version(self, name: str) -> Any:
                if name != SECRET:
                    raise PermissionDenied(name)
                return secretmanager.AccessSecretVersionResponse(payload={"data": TEST_KEY})

        monkeypatch.setattr(secretmanager, "SecretManagerServiceClient", Client)
        assert read_key(SECRET) == TEST_KEY.hex()
        with refused("wrong-setting", "versions/4", "PermissionDenied", "Secret Accessor"):
            read_key(SECRET.replace("/3", "/4"))

    def test_what_is_no_key_is_not_quoted(self) -> None:
        files.write_bytes("memory://keys/other", b"zzcanary")
        with pytest.raises(SettingError) as told:
            read_key("memory://keys/other")
        assert "zzcanary" not in str(told.value)

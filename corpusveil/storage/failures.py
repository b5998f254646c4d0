"""What a store's client raises, as one sentence that names the address and what to do."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Literal

from corpusveil.errors import CorpusveilError, UserError, WorkError

Doing = Literal["read", "written", "listed", "removed"]

EXTRAS = {"s3": "s3", "s3a": "s3", "gs": "gcs", "gcs": "gcs", "abfs": "azure", "abfss": "azure", "az": "azure"}
"""The extra of this package that brings the client of a kind of address."""

_VERBS: dict[Doing, str] = {"read": "read it", "written": "write it", "listed": "list it", "removed": "remove it"}
_NO_CREDENTIALS = {
    "NoCredentialsError", "PartialCredentialsError", "CredentialRetrievalError", "ProfileNotFound",
    "DefaultCredentialsError", "RefreshError", "ClientAuthenticationError",
}  # fmt: skip
_BAD_ADDRESS = {"ParamValidationError", "ValueError", "InvalidBucketName"}
_REASON_LENGTH = 200


@contextlib.contextmanager
def told(url: str, doing: Doing) -> Iterator[None]:
    """Turn whatever the client of a store raises inside into a sentence about ``url``.

    Only calls of the client belong inside: every exception is taken for the client's. The clients come with extras and
    share no exceptions, so theirs are known by their names. Raises UserError for what running again can't mend, else
    WorkError.
    """
    try:
        yield
    except CorpusveilError:
        raise
    except Exception as error:  # noqa: BLE001 - clients raise what they like
        raise _sentence(error, url, doing) from None


def code_of(error: BaseException) -> str:
    """Return the code of an S3 error, also behind the exception that s3fs makes of it; else ''."""
    for one in (error, error.__cause__):
        response = getattr(one, "response", None)
        if isinstance(response, dict):
            return str(response.get("Error", {}).get("Code", ""))
    return ""


def missing_package(url: str, error: ImportError) -> UserError:
    """Return the sentence about an address whose client is not installed."""
    extra = EXTRAS.get(url.partition("://")[0].split("::")[-1].lower())
    if extra is not None:
        return UserError(f"{url}: this kind of address needs a package: pip install 'corpusveil[{extra}]'.")
    return UserError(f"{url}: this kind of address needs a package that is missing ({error}); install it.")


def _sentence(error: Exception, url: str, doing: Doing) -> CorpusveilError:
    names = {kind.__name__ for kind in type(error).__mro__}
    if code_of(error) == "NoSuchBucket":
        return UserError(f"{url}: there is no such bucket; make it, or name another one.")
    if isinstance(error, FileNotFoundError):
        return UserError(f"{url}: there is no such {'file' if doing == 'read' else 'bucket or folder'}.")
    if isinstance(error, IsADirectoryError):
        return UserError(f"{url}: this is a folder, a file is needed.")
    if isinstance(error, (NotADirectoryError, FileExistsError)):
        return UserError(f"{url}: a folder is needed here, and a file of that name is in the way.")
    if isinstance(error, PermissionError):
        return UserError(f"{url}: no permission to {_VERBS[doing]} ({_reason(error)}); check credentials and rights.")
    if names & _NO_CREDENTIALS:
        return UserError(f"{url}: no valid credentials for this address were found ({_reason(error)}).")
    if names & _BAD_ADDRESS and not isinstance(error, OSError):
        return UserError(f"{url}: not an address that can be used ({_reason(error)}).")
    if "FileExpired" in names:
        return WorkError(f"{url}: changed while it was read; run again.")
    return WorkError(f"{url}: could not be {doing} ({_reason(error)}); run again when that is mended.")


def _reason(error: BaseException) -> str:
    """Return what a client says, on one line: it speaks of addresses and rights, never of a file's content."""
    text = (error.strerror if isinstance(error, OSError) else None) or str(error)
    line = " ".join(text.split()).rstrip(".")
    return line[:_REASON_LENGTH] or type(error).__name__

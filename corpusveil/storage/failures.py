"""Errors of a store's client, as one sentence that names the address and what to do."""

from __future__ import annotations

import contextlib
import logging
import re
import tokenize
from collections.abc import Iterator
from typing import Literal

from corpusveil.errors import (
    AccessError,
    AddressError,
    CorpusveilError,
    NoFileError,
    PackageError,
    StoreError,
    UserError,
    changed_while_read,
    file_in_the_way,
)
from corpusveil.waiting import unless_done_in, write

PATIENCE_SECONDS = 5.0
Doing = Literal["read", "written", "listed", "removed"]

BROKEN_ARRAY = (
    ValueError, EOFError, OSError, MemoryError, SyntaxError, tokenize.TokenError, TypeError, LookupError,
    ArithmeticError, RuntimeError, AttributeError,
)  # fmt: skip
"""NumPy's exceptions for a damaged ``.npy``."""
EXTRAS = {"s3": "s3", "s3a": "s3", "gs": "gcs", "gcs": "gcs", "abfs": "azure", "abfss": "azure", "az": "azure",
          "hf": "hub"}  # fmt: skip
"""The extra of this package that brings the client of a kind of address."""

_VERBS: dict[Doing, str] = {"read": "read it", "written": "write it", "listed": "list it", "removed": "remove it"}
_NO_CREDENTIALS = {
    "NoCredentialsError", "PartialCredentialsError", "CredentialRetrievalError", "ProfileNotFound",
    "GoogleAuthError", "ClientAuthenticationError", "CredentialUnavailableError", "AzureSigningError",
}  # fmt: skip
_BAD_ADDRESS = {"ParamValidationError", "ValueError", "InvalidBucketName"}
_BAD_NAME = {"InvalidResourceName", "OutOfRangeInput", "InvalidUri"}
"""Azure's words for a missing container or blob."""
_NO_BUCKET = {"NoSuchBucket": "bucket", "ContainerNotFound": "container"}
_EXPIRED = {"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired"}
_SKEWED = {"RequestTimeTooSkewed", "RequestInTheFuture"}
_BUSY = {"SlowDown", "ServerBusy", "Throttling", "ThrottlingException", "RequestLimitExceeded", "429", "503"}
_FORBIDDEN = "Forbidden: "
"""The beginning of gcsfs's text for an answer 403, which is a plain OSError."""
_SECRET = re.compile(
    r"(?i)(\?|\bBearer |\b(?:AccountKey|SharedAccessSignature|access_token|client_secret|refresh_token|sig)=)"
    r"[^\s;&'\")]+"
)
"""The text after a question mark in an address, and after the name of a secret."""
_REASON_LENGTH = 200

for _client in ("gcsfs", "google", "adlfs", "azure"):
    # They log errors with tracebacks, which Python prints unless logging is configured; configured loggers still get
    # them.
    logging.getLogger(_client).addHandler(logging.NullHandler())


@contextlib.contextmanager
def failing(url: str, doing: Doing) -> Iterator[None]:
    """Turn exceptions of a store's client in this context into a sentence about ``url``.

    Only calls of the client belong inside: every exception is assumed to be the client's. The clients come with extras
    and share no exceptions, so exceptions are recognized by name. Raises UserError if running again cannot help,
    otherwise WorkError. Says on standard error, once, that a store does not answer: clients ask again in silence.
    """
    said = f"waiting: {url} has not answered for {PATIENCE_SECONDS:.0f} s, and is asked again\n"
    at_store = unless_done_in(PATIENCE_SECONDS, lambda: write(said)) if "://" in url else contextlib.nullcontext()
    try:
        with at_store:
            yield
    except CorpusveilError:
        raise
    except Exception as error:  # noqa: BLE001 - clients raise what they like
        raise _sentence(error, url, doing) from None


def code_of(error: BaseException) -> str:
    """Return the store's code for an error, also from the causes of a client's exception; otherwise ''."""
    for cause in _chain(error):
        response = getattr(cause, "response", None)
        if isinstance(response, dict):  # botocore
            return str(response.get("Error", {}).get("Code", ""))
        code = getattr(cause, "error_code", None) or getattr(cause, "code", None)  # azure; gcsfs
        if isinstance(code, str | int):
            return str(getattr(code, "value", code))
    return ""


def missing_bucket(url: str, kind: str = "bucket") -> UserError:
    """Return the sentence about an address in a missing bucket."""
    return NoFileError(f"{url}: there is no such {kind}; make it, or choose another {kind}.")


def names_no_bucket(error: BaseException) -> bool:
    """Say whether a store reported that the bucket is missing, not only the object in it."""
    return code_of(error) in _NO_BUCKET


def unopened(url: str, error: Exception) -> CorpusveilError:
    """Return the sentence about an address whose client cannot be created."""
    if EXTRAS.get(url.partition("://")[0].split("::")[-1].lower()) == "azure" and "account" in str(error):
        return AddressError(
            f"{url}: no storage account could be opened for this address ({_reason(error)}); set "
            "AZURE_STORAGE_CONNECTION_STRING, or AZURE_STORAGE_ACCOUNT_NAME and a credential."
        )
    if isinstance(error, ValueError | TypeError):
        return AddressError(f"{url}: this address cannot be opened ({_reason(error)}); correct it.")
    return _sentence(error, url, "read")


def missing_package(url: str, error: ImportError) -> UserError:
    """Return the sentence about an address whose client is not installed."""
    extra = EXTRAS.get(url.partition("://")[0].split("::")[-1].lower())
    if extra is not None:
        return PackageError(f"{url}: this address needs a package: pip install 'corpusveil[{extra}]'.")
    return PackageError(f"{url}: this address needs a package that is missing ({error}); install it.")


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _status_of(error: BaseException) -> int:
    """Return the status of a store's answer, also from the causes of a client's exception; otherwise 0."""
    for cause in _chain(error):
        answer = getattr(getattr(cause, "response", None), "status_code", None)  # the Hub's
        status = getattr(cause, "status_code", None) or getattr(cause, "code", None) or answer  # azure; gcsfs
        if isinstance(status, int):
            return status
        if type(cause) is OSError and str(cause).startswith(_FORBIDDEN):
            return 403
    return 0


def _sentence(error: Exception, url: str, doing: Doing) -> CorpusveilError:
    names = {kind.__name__ for kind in type(error).__mro__}
    below = {kind.__name__ for cause in _chain(error) for kind in type(cause).__mro__}
    code, status, reason = code_of(error), _status_of(error), _reason(error)
    if code in _NO_BUCKET:
        return missing_bucket(url, _NO_BUCKET[code])
    if code in _EXPIRED:
        return AccessError(
            f"{url}: the credentials have expired ({reason}); renew them and run the same command again."
        )
    if code in _SKEWED:
        return AccessError(
            f"{url}: the clock of this machine differs from that of the store ({reason}); set it and run the "
            "same command again."
        )
    if isinstance(error, FileNotFoundError) or status == 404:
        return NoFileError(f"{url}: there is no such {('file' if doing == 'read' else 'bucket or folder')}.")
    if isinstance(error, IsADirectoryError):
        return AddressError(f"{url}: this is a folder; name a file.")
    if isinstance(error, (NotADirectoryError, FileExistsError)) and code in {"", "412"}:
        return file_in_the_way(url)
    if (below & _NO_CREDENTIALS and "TransportError" not in below) or status == 401:
        return AccessError(f"{url}: there are no valid credentials for this address ({reason}); set or renew them.")
    if isinstance(error, PermissionError) or status == 403:
        return AccessError(
            f"{url}: there is no permission to {_VERBS[doing]} ({reason}); check the rights and the expiry date of "
            "the credentials."
        )
    damaged = "JSONDecodeError" in names or "Content-Range" in reason  # an invalid answer is a ValueError too
    if (names & _BAD_ADDRESS and not isinstance(error, OSError) and not damaged) or code in _BAD_NAME:
        return AddressError(f"{url}: this address cannot be used ({reason}); correct it.")
    if "FileExpired" in names:
        return changed_while_read(url)
    if code in _BUSY or status in {429, 503}:
        return StoreError(
            f"{url}: could not be {doing} ({reason}), since the store asks for fewer requests; run again later, or "
            "with fewer workers."
        )
    return StoreError(f"{url}: could not be {doing} ({reason}); correct this and run the same command again.")


def _reason(error: BaseException) -> str:
    """Return a client's message on one line: about addresses and rights, never a file's content or a secret."""
    if isinstance(error, RuntimeError) and error.__cause__ is not None:  # adlfs names only the operation
        error = error.__cause__
    text = (error.strerror if isinstance(error, OSError) else None) or str(error)
    text = text.partition("\n")[2] if text.startswith(_FORBIDDEN) else text
    if hasattr(error, "error_code"):  # azure adds the ids of the request, and quotes the signed text
        text = f"{text.partition(chr(10))[0].rstrip('.')}, {code_of(error)}" if code_of(error) else text
    line = " ".join(_SECRET.sub(r"\1…", text).split()).rstrip(".")
    return line[:_REASON_LENGTH] or type(error).__name__

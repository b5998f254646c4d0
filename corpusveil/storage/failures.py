"""Errors of a store's client, as one sentence that names the address and what to do."""

from __future__ import annotations

import contextlib
import logging
import re
import tokenize
from collections.abc import Callable, Iterator
from typing import Any, Literal

from corpusveil.errors import (
    AddressError,
    CorpusveilError,
    MissingError,
    PackageError,
    UserError,
    WorkError,
    changed_while_read,
    file_in_the_way,
    without_queries,
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

_NO_BUCKET = {"NoSuchBucket": "bucket", "ContainerNotFound": "container"}
_OF_ACCESS = re.compile(
    r"(?i)credential|expired|denied|forbidden|unauthorized|authenticat|signature|signing|skewed|profile"
)
"""The names of errors of clients, and the codes of stores, that concern rights, credentials or the clock."""
_OF_ADDRESS = {"ParamValidationError", "InvalidBucketName", "InvalidResourceName", "OutOfRangeInput", "InvalidUri"}
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
    said = f"waiting: {without_queries(url)} has not answered for {PATIENCE_SECONDS:.0f} s, and is asked again\n"
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


def called(nothing: Any, call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Return what a client returns, or ``nothing`` if there is no such file or folder, in a bucket that is there."""
    try:
        return call(*arguments, **options)
    except (FileNotFoundError, NotADirectoryError) as error:
        if code_of(error) in _NO_BUCKET:
            raise
        return nothing


def unopened(url: str, error: Exception) -> CorpusveilError:
    """Return the sentence about an address whose client cannot be created."""
    if isinstance(error, ValueError | TypeError):
        return AddressError(
            f"{url}: this address cannot be opened ({_reason(error)}); correct it, or the settings of its store."
        )
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
    names = {kind.__name__ for cause in _chain(error) for kind in type(cause).__mro__}
    code, status, reason = code_of(error), _status_of(error), _reason(error)
    if (bucket := _NO_BUCKET.get(code)) is not None:
        return MissingError(f"{url}: there is no such {bucket}; make it, or choose another {bucket}.")
    if isinstance(error, FileNotFoundError) or status == 404:
        return MissingError(f"{url}: there is no such {('file' if doing == 'read' else 'bucket or folder')}.")
    if isinstance(error, IsADirectoryError):
        return AddressError(f"{url}: this is a folder; name a file.")
    if isinstance(error, (NotADirectoryError, FileExistsError)) and code in {"", "412"}:
        return file_in_the_way(url)
    if "FileExpired" in names:
        return changed_while_read(url)
    is_of_access = "TransportError" not in names and _OF_ACCESS.search(" ".join([code, *names]))
    if is_of_access or isinstance(error, PermissionError) or status in {401, 403}:
        return AddressError(
            f"{url}: could not be {doing} ({reason}); check the credentials, their rights and expiry, and the clock of "
            "this machine."
        )
    if _OF_ADDRESS & {code, *names} or (isinstance(error, ValueError) and "JSONDecodeError" not in names):
        return AddressError(f"{url}: this address cannot be used ({reason}); correct it.")
    return WorkError(f"{url}: could not be {doing} ({reason}); run the same command again later.")


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

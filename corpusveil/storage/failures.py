"""Errors of a store's client, as one sentence that names the address and what to do."""

from __future__ import annotations

import contextlib
import errno
import logging
import re
import tokenize
from collections.abc import Callable, Iterator
from typing import Any, Literal

from corpusveil.errors import AddressError, CorpusveilError, MissingError, PackageError, WorkError, without_queries
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

_NO_BUCKET = "NoSuchBucket|ContainerNotFound"
_NO_ANSWER = r"^(40[13]|429|5\d\d)\b"  # of a web server, whose client takes each for a file that is not there
_OF_ACCESS = (
    r"(?i)credential|expired|denied|forbidden|unauthorized|authenticat|signature|signing|skewed|profile"
    r"|permissionerror|\b40[13]\b"
)
_OF_ADDRESS = r"InvalidBucketName|InvalidResourceName|OutOfRangeInput|InvalidUri|ParamValidationError|\bValueError\b"
_MEND_ACCESS = "check the credentials, their rights and expiry, and the clock of this machine."
_MOVE_FILE = "a folder is needed here, and a file has this name; move the file, or choose another folder."
_LATER = "could not be {doing} ({reason}); run the same command again later."
_SENTENCES: tuple[tuple[str, type[CorpusveilError], str], ...] = (
    (_NO_BUCKET, MissingError, "there is no such bucket; make it, or choose another bucket."),
    (r"^40[13]\b", AddressError, f"could not be {{doing}} ({{reason}}); {_MEND_ACCESS}"),
    (_NO_ANSWER, WorkError, _LATER),
    (r"\b(FileNotFoundError|404)\b", MissingError, "there is no such file, folder or bucket."),
    (r"\bIsADirectoryError\b", AddressError, "this is a folder; name a file."),
    (r"^(412)? .*\b(NotADirectoryError|FileExistsError)\b", AddressError, _MOVE_FILE),
    (r"\bFileExpired\b", WorkError, "this file changed while it was read; run the same command again."),
    ("TransportError|JSONDecodeError", WorkError, _LATER),
    (_OF_ACCESS, AddressError, f"could not be {{doing}} ({{reason}}); {_MEND_ACCESS}"),
    (_OF_ADDRESS, AddressError, "this address cannot be used ({reason}); correct it, or the settings of its store."),
    ("", WorkError, _LATER),
)
"""The sentence about an exception, by its codes and the names of its classes; of several, the first."""

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

    Only calls of the client belong inside: every exception is assumed to be the client's. Raises UserError if running
    again cannot help, otherwise WorkError. Says on standard error, once, that a store does not answer: clients ask
    again in silence.
    """
    said = f"waiting: {without_queries(url)} has not answered for {PATIENCE_SECONDS:.0f} s, and is asked again\n"
    at_store = unless_done_in(PATIENCE_SECONDS, lambda: write(said)) if "://" in url else contextlib.nullcontext()
    try:
        with at_store:
            yield
    except CorpusveilError:
        raise
    except Exception as error:  # noqa: BLE001 - clients raise what they like
        raise sentence(error, url, doing) from None


def called(nothing: Any, call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Return what a client returns, or ``nothing`` if there is no such file or folder, in a bucket that is there."""
    try:
        return call(*arguments, **options)
    except (FileNotFoundError, NotADirectoryError) as error:
        if re.search(f"{_NO_BUCKET}|{_NO_ANSWER}", codes_of(error)):
            raise
        return nothing


def codes_of(error: BaseException) -> str:
    """Return the store's code and status for an error, also from the causes of a client's exception; otherwise ''."""
    for cause in _chain(error):
        response = getattr(cause, "response", None)
        if isinstance(response, dict):  # botocore
            return str(response.get("Error", {}).get("Code", ""))
        names = ("error_code", "status_code", "status" if hasattr(cause, "status") else "code")  # azure; aiohttp; gcsfs
        codes = [*(getattr(cause, name, None) for name in names), getattr(response, "status_code", None)]  # the Hub's
        if codes := [str(getattr(code, "value", code)) for code in codes if isinstance(code, str | int)]:
            return " ".join(codes)
        if type(cause) is OSError and str(cause).startswith(_FORBIDDEN):
            return "403"
    return ""


def sentence(error: Exception, url: str, doing: Doing) -> CorpusveilError:
    """Return the sentence about an exception.

    The clients come with extras and share no exceptions, so exceptions are recognized by name; of their causes, only
    those that are a client's own.
    """
    if getattr(error, "errno", None) == errno.ENAMETOOLONG:
        return AddressError(f"{url}: this name is too long; choose a shorter one.")
    scheme = url.partition("://")[0].lower()
    if isinstance(error, ImportError) or (scheme in EXTRAS and "not known" in str(error)):
        what = f"pip install 'corpusveil[{EXTRAS[scheme]}]'" if scheme in EXTRAS else str(error)
        return PackageError(f"{url}: this address needs a package that is missing: {what}.")
    kinds = [
        kind
        for cause in _chain(error)
        for kind in type(cause).__mro__
        if cause is error or kind.__module__ != "builtins"
    ]
    signs = f"{codes_of(error)} {' '.join(kind.__name__ for kind in kinds)}"
    kind, words = next((kind, words) for sign, kind, words in _SENTENCES if re.search(sign, signs))
    return kind(f"{url}: {words.format(doing=doing, reason=_reason(error))}")


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _reason(error: BaseException) -> str:
    """Return a client's message on one line: about addresses and rights, never a file's content or a secret."""
    if isinstance(error, RuntimeError) and error.__cause__ is not None:  # adlfs names only the operation
        error = error.__cause__
    text = (error.strerror if isinstance(error, OSError) else None) or str(error)
    text = text.partition("\n")[2] if text.startswith(_FORBIDDEN) else text
    if hasattr(error, "error_code"):  # azure adds the ids of the request, and quotes the signed text
        text = f"{text.partition(chr(10))[0].rstrip('.')}, {codes_of(error)}" if codes_of(error) else text
    line = " ".join(_SECRET.sub(r"\1…", text).split()).rstrip(".")
    return line[:_REASON_LENGTH] or type(error).__name__

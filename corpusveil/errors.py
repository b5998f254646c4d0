"""The errors that users see: one sentence that says what, where and what to do, and a stable code.

A sentence may be improved in any release; ``error.code`` is part of the interface, and so are the classes.
``scripts/error_codes.py`` writes ``docs/errors.md`` from the docstrings here.
"""

from __future__ import annotations

import math
import numbers
import re
import types
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any


_MOST_NAMES = 20
_QUERY = re.compile(r"(\bhttps?://[^\s?#]+)[?#]\S*?(?=[:,;.)'\"]*(?:\s|$))")
_NAME = re.compile(r"[^\W\d][\w.:@/+-]{0,39}(?: [\w.:@/()+-]{1,20}){0,2}")


class CorpusveilError(Exception):
    """Base of every error raised on purpose: one printable line with a ``code``, which quotes no private text.

    Line breaks and control characters in names are escaped.

    >>> issubclass(cv.UserError, cv.CorpusveilError) and issubclass(cv.WorkError, cv.CorpusveilError)
    True
    """

    exit_status = 1
    code: ClassVar[str]

    def __str__(self) -> str:
        text = without_queries(super().__str__())
        return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)

    def __init_subclass__(cls, code: str | None = None) -> None:
        if code is not None:
            cls.code = code


class UserError(CorpusveilError, code="wrong-call"):
    """The call or its input is wrong, and the sentence says how to change it; exit status 2.

    >>> try:
    ...     cv.Budget(epsilon=-1)
    ... except cv.UserError as error:
    ...     print(error.code)
    wrong-setting
    """

    exit_status = 2


class WorkError(CorpusveilError, code="work-failed"):
    """The call was right, but the work failed, so that it may succeed later; exit status 1.

    >>> try:
    ...     cv.verify("private", digest="0" * 64).require()
    ... except cv.WorkError as error:
    ...     print(error.code)
    differs
    """


# A table: two lines a code.
# fmt: off
class SettingError(UserError, code="wrong-setting"):
    """A setting, argument, name or key is missing, has a value that is not allowed, or contradicts another."""
class PackageError(UserError, code="missing-package"):
    """A package or program that this call needs is not installed, or does not work."""
class MissingError(UserError, code="missing-file"):
    """There is no file, folder, space, count, table, release or ledger at this address, or a part of it is missing."""
class AddressError(UserError, code="unusable-address"):
    """The address cannot be used: its name is not valid, rights are missing, or other files are there."""
class ChangedError(UserError, code="input-changed"):
    """An input or artifact is not the one that the work was started with, or that was released."""
class DataError(UserError, code="unsuitable-data"):
    """A file, row or column of the data, or shards of the input, cannot be used; the other shards can."""

    sentences: Mapping[int, str] = types.MappingProxyType({})
    """Why each such shard cannot be used, by their numbers, if they are known."""
class ArtifactError(UserError, code="damaged-artifact"):
    """A space, count, table, model, record, manifest or ledger entry is damaged, and its contents are not guessed."""
class VersionError(UserError, code="other-version"):
    """The file or the worker needs another version of corpusveil or Python."""
class CapError(UserError, code="cap-exceeded"):
    """A privacy unit would have spent more than the ledger's cap; nothing was released."""

    over: frozenset[uuid.UUID] = frozenset()
    """The fingerprints of all such units in the ledger."""
class DiffersError(WorkError, code="differs"):
    """A release, its manifest or a ledger does not say what was required or what was recorded."""
# fmt: on


# Sentences that several rooms say.
GO_ON = "Finished work is kept; run the same command again."
KILLED = "A worker process was killed"


def without_queries(text: str) -> str:
    """Return text without the queries of addresses in it, which are signatures that open files to everybody."""
    return _QUERY.sub(r"\1", text) if "://" in text else text


def worker_killed() -> WorkError:
    why = "perhaps it ran out of memory; in a script, calls belong below if __name__ == '__main__'"
    return WorkError(f"{KILLED} ({why}). {GO_ON.removesuffix('.')}, perhaps with fewer workers.")


def either(choices: Iterable[object]) -> str:
    *others, last = map(str, choices)
    return f"{', '.join(others)} or {last}" if others else last


def is_name(text: str) -> bool:
    return bool(_NAME.fullmatch(text))


def are_names(texts: Sequence[str]) -> bool:
    """Say whether all texts look like column names (one may be empty); two words may be a person's."""
    named = [text for text in texts if text]
    return any(texts) and all(is_name(text) and " " not in text for text in named) and texts.count("") < 2


def listed(names: Iterable[object]) -> str:
    """Return column names for a sentence: a, b and 3 more; only their number if any may be a value."""
    every = [str(name) for name in names]
    shown = every[:_MOST_NAMES] if are_names(every) else []
    left = len(every) - len(shown)
    columns = f"{left:,} column{'' if left == 1 else 's'}"
    return ", ".join(shown) + (f" and {left:,} more" if shown and left else columns if left else "")


def not_a_choice(setting: str, value: object, choices: Iterable[object]) -> SettingError:
    return SettingError(f"{setting} = {value!r}: choose {either(choices)}.")


def check_whole(setting: str, value: Any, least: int = 1, most: float = math.inf) -> None:
    """Raise SettingError unless a value is a whole number from ``least`` to ``most``."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or not least <= int(value) <= most:
        limits = f"of at least {least}" if most == math.inf else f"from {least} to {most:,}"
        raise SettingError(f"{setting} = {value!r}: give a whole number {limits}.")


def of_other_type(setting: str, value: object, needed: str) -> SettingError:
    return SettingError(f"{setting}: give {needed}, not a value of type {type(value).__name__}.")


def nearest(name: object, known: Iterable[str]) -> str:
    """Return the nearest of known names as the end of a sentence, or nothing: the shortest that begins like this."""
    import difflib

    names, given = {each.casefold(): each for each in reversed(list(known))}, str(name).casefold()
    begins = sorted((each for each in names if given and each.startswith(given)), key=len)
    near = begins or difflib.get_close_matches(given, names, 1, 0.65)
    return f"; did you mean {names[near[0]]}?" if near else ""


def existing(name: object, columns: Iterable[object]) -> str:
    """Return the end of a sentence about a missing column: those that exist, and the nearest."""
    names = [str(column) for column in columns]
    named = are_names(names)
    listing = f"; {'the columns are' if named else 'it has'} {listed(names)}" if names else ""
    for other in names:  # which says no more than was asked for
        if other != name and other.strip("\ufeff\xa0\t ").casefold() == str(name).casefold():
            return f"{listing}; did you mean {other!r}?"
    return listing + (nearest(name, names if named else ()) or ".")


def column_twice(name: object) -> DataError:
    return DataError(f"{name}: there are several columns of this name; rename them first.")


def file_in_the_way(url: object) -> AddressError:
    return AddressError(
        f"{url}: a folder is needed here, and a file has this name; move the file, or choose another folder."
    )


def replaced(url: object, what: str) -> ChangedError:
    return ChangedError(
        f"{url}: this is not the {what} that the work was started with; restore that {what}, or start again."
    )


def bad_shards(sentences: Mapping[int, str]) -> DataError:
    """Return the error of shards that cannot be used, with why, by their numbers."""
    others = len(sentences) - 1
    more = f" ({others:,} more {'shard' if others == 1 else 'shards'} cannot be used.)" if others else ""
    error = DataError(sentences[min(sentences)] + more)
    error.sentences = sentences
    return error


def no_words() -> DataError:
    return DataError("The corpus has no words; name a corpus with text, or the column that has the text (text).")


def missing_ids(column: object) -> DataError:
    return DataError(f"{column}: the id column has empty values; give every document an id.")


def missing_parts(counts: str, there: int, parts: int) -> MissingError:
    return MissingError(f"{counts}: {there} of {parts} parts are here; copy all counts again.")


def unreadable(file: str, error: OSError) -> AddressError:
    return AddressError(f"{file}: this file could not be read ({error.strerror}).")


def not_writable(folder: str) -> AddressError:
    return AddressError(f"{folder}: there is no permission to write here.")


class NoClosedForm(CorpusveilError, code="no-closed-form"):
    """The mechanism's output distribution has no closed form: sample it.

    >>> try:
    ...     cv.Cmp(space).distribution(0, epsilon=1.0)
    ... except cv.NoClosedForm as error:
    ...     print(error.code)
    no-closed-form
    """


_RAISED = re.compile(r".*\bcorpusveil\.errors\.(\w+Error): (.*)")


def of_code(code: str, sentence: str) -> UserError:
    kinds = (kind for kind in globals().values() if isinstance(kind, type) and issubclass(kind, UserError))
    return next((kind for kind in kinds if kind.code == code), UserError)(sentence)


def sentences_in(text: str) -> list[str]:
    """Return the sentences of these errors in the traceback of an engine, whose other lines may quote a document."""
    return [sentence for _, sentence in _RAISED.findall(text)]


def user_error_in(text: str) -> UserError | None:
    """Return the last of these errors in the traceback of an engine, if it says that the call or its input is wrong."""
    name, sentence = (_RAISED.findall(text) or [("", "")])[-1]
    kind = globals().get(name)
    return kind(sentence) if isinstance(kind, type) and issubclass(kind, UserError) else None

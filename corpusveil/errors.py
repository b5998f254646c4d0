"""The errors that users see: one sentence that says what, where and what to do, and a stable code.

A sentence may be improved in any release; ``error.code`` is part of the interface, and so are the classes.
``scripts/error_codes.py`` writes ``docs/errors.md`` from the docstrings here.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterable, Sequence


_MOST_NAMES = 20
_NAME = re.compile(r"[^\W\d][\w.:@/+-]{0,39}(?: [\w.:@/()+-]{1,20}){0,2}")


class CorpusveilError(Exception):
    """Base of every error raised on purpose. Its text never quotes private text, and is one line that can be printed.

    A name in it may have been given with line breaks, or with characters that command a terminal: they are escaped.
    """

    exit_status = 1
    code: ClassVar[str]

    def __str__(self) -> str:
        text = super().__str__()
        return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)

    def __init_subclass__(cls, code: str | None = None) -> None:
        if code is not None:
            cls.code = code


class UserError(CorpusveilError, code="wrong-call"):
    """The call or its input was wrong: exit status 2."""

    exit_status = 2


class WorkError(CorpusveilError, code="work-failed"):
    """The call was right, but the work failed: exit status 1."""


# A table: two lines a code.
# fmt: off
# The call: its settings, arguments and names.
class BadValueError(UserError, code="wrong-value"):
    """A setting or argument has a value that is not allowed."""
class BadTypeError(UserError, code="wrong-type"):
    """An argument has a type that the call does not take."""
class ShapeError(UserError, code="wrong-shape"):
    """Arrays or lists do not have the lengths or dimensions that are required."""
class UnknownError(UserError, code="unknown-name"):
    """No mechanism, engine, key, word or other object has this name or number."""
class UnsetError(UserError, code="missing-setting"):
    """A setting, argument or environment variable that this call needs is missing."""
class ConflictError(UserError, code="conflicting-settings"):
    """Two settings contradict each other, or a setting does not apply to the choice that was made."""
class NoGuaranteeError(UserError, code="no-guarantee"):
    """The choice has no guarantee; choose another, or accept that explicitly."""
class SecretError(UserError, code="unusable-key"):
    """A secret cannot be read, is not random bytes of the right length, or is open to other users."""
class PackageError(UserError, code="missing-package"):
    """A package or program that this call needs is not installed, or cannot be loaded."""
# Places: addresses, rights, and what is there already.
class NoFileError(UserError, code="missing-file"):
    """There is no file or folder at this address, or a file that it should contain is missing."""
class NotMadeError(UserError, code="missing-artefact"):
    """There is no space, count, table, release or ledger here, or some of its files are missing."""
class AddressError(UserError, code="unusable-address"):
    """The file at this address cannot be opened, read or written, or its name or kind is not usable."""
class AccessError(UserError, code="no-permission"):
    """Rights or valid credentials for this address are missing."""
class TrustError(UserError, code="untrusted-file"):
    """Other users can write to a file that would be trusted."""
class OverlapError(UserError, code="overlapping-paths"):
    """Input, output and private files overlap."""
class InUseError(UserError, code="output-in-use"):
    """The place of the output already has other contents."""
class ChangedError(UserError, code="input-changed"):
    """An input or artifact is not the one that the work was started with, or that was released."""
# Content: files, rows and columns, artifacts.
class FormatError(UserError, code="wrong-format"):
    """A file has a format that is not read here, or the files have several formats."""
class BadFileError(UserError, code="damaged-file"):
    """A file is cut short, or its contents do not match its format."""
class ArtefactError(UserError, code="damaged-artefact"):
    """A space, counts, a table, a model or tokens are inconsistent; make them again."""
class BadRecordError(UserError, code="damaged-record"):
    """A record, manifest or ledger entry is damaged, and its contents are not guessed."""
class VersionError(UserError, code="other-version"):
    """The file or the worker needs another version of corpusveil or Python."""
class MismatchError(UserError, code="mismatch"):
    """Two arguments do not belong together, or an argument is of another kind."""
class ColumnError(UserError, code="wrong-column"):
    """A column or field is missing, is named twice, or has the wrong type."""
class BadRowError(UserError, code="bad-row"):
    """A row, line or id cannot be used; the sentence names it."""
class DataError(UserError, code="unsuitable-data"):
    """The data are sound but too few, empty, or such that the requested result is not defined for them."""
class SizeError(UserError, code="too-large"):
    """The data are larger than can be held or sent."""
class CapError(UserError, code="cap-exceeded"):
    """A privacy unit would have spent more than the ledger's cap; nothing was released."""

    over: frozenset[uuid.UUID] = frozenset()
    """The fingerprints of all such units in the ledger."""
# Work that failed.
class OtherRunError(WorkError, code="other-run"):
    """Another run is in progress in this folder; nothing was done."""
class EngineError(WorkError, code="engine-failed"):
    """Spark, Beam or a worker process failed; finished work is kept."""
class StoreError(WorkError, code="store-failed"):
    """A disk or store could not read or write; run again."""
class ChangedMeanwhileError(WorkError, code="changed-meanwhile"):
    """A file changed while it was read; run again."""
class UnfinishedError(WorkError, code="unfinished-work"):
    """Part of the work was not done; run again."""
class ReleaseDiffersError(WorkError, code="release-differs"):
    """The files of a release are not those that its manifest lists, or the manifest has another digest."""
class NotMetError(WorkError, code="not-met"):
    """A release, or a table made of one, does not claim what was required of it."""
class LedgerDiffersError(WorkError, code="ledger-differs"):
    """More was spent than the ledger says."""
class InstallationError(WorkError, code="broken-installation"):
    """A package is installed but does not work, or is incomplete."""
# fmt: on


OF_DATA = (FormatError, BadFileError, ColumnError, BadRowError, DataError, SizeError)
"""Faults in the data of a shard: the other shards can still be used. Any other error ends the work."""


class BadShardsError(UserError, code="bad-shards"):
    """The data of input shards cannot be used; ``sentences`` says why, by their numbers."""

    def __init__(self, sentences: dict[int, str]) -> None:
        first = sentences[min(sentences)]
        others = len(sentences) - 1
        more = f" ({others:,} more {'shard' if others == 1 else 'shards'} cannot be used.)" if others else ""
        super().__init__(first + more)
        self.sentences = sentences

    def __reduce__(self) -> tuple[type[BadShardsError], tuple[dict[int, str]]]:
        return BadShardsError, (self.sentences,)


# Sentences that several rooms say.
GO_ON = "Finished work is kept; run the same command again."
KILLED = "A worker process was killed"


def worker_killed() -> EngineError:
    return EngineError(
        f"{KILLED} (perhaps it ran out of memory). {GO_ON.removesuffix('.')}, perhaps with fewer workers."
    )


def either(choices: Iterable[object]) -> str:
    """Return choices for a sentence: a, b or c."""
    *others, last = map(str, choices)
    return f"{', '.join(others)} or {last}" if others else last


def is_name(text: str) -> bool:
    """Say whether a text looks like the name of a column."""
    return bool(_NAME.fullmatch(text))


def are_names(texts: Sequence[str]) -> bool:
    """Say whether all texts look like names of columns; one may be empty, as that of an index is.

    Two words may be a person's: the first line of a file without names can have one.
    """
    named = [text for text in texts if text]
    return any(texts) and all(is_name(text) and " " not in text for text in named) and texts.count("") < 2


def listed(names: Iterable[object]) -> str:
    """Return names of columns for a sentence: a, b and 3 more.

    A long list is cut. If anything in it does not look like a name, columns are only counted: these could be the values
    of a file without names.
    """
    every = [str(name) for name in names]
    shown = every[:_MOST_NAMES] if are_names(every) else []
    left = len(every) - len(shown)
    columns = f"{left:,} column{'' if left == 1 else 's'}"
    return ", ".join(shown) + (f" and {left:,} more" if shown and left else columns if left else "")


def not_a_choice(setting: str, value: object, choices: Iterable[object]) -> BadValueError:
    return BadValueError(f"{setting} = {value!r}: choose {either(choices)}.")


def below_least(setting: str, value: float, least: float) -> BadValueError:
    return BadValueError(f"{setting} = {value}: give at least {least}.")


def of_other_type(setting: str, value: object, needed: str) -> BadTypeError:
    return BadTypeError(f"{setting}: give {needed}, not a value of type {type(value).__name__}.")


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


def no_column(name: object, columns: Iterable[object]) -> ColumnError:
    return ColumnError(f"{name}: there is no such column{existing(name, columns)}")


def column_twice(name: object) -> ColumnError:
    return ColumnError(f"{name}: there are several columns of this name; rename them first.")


def file_in_the_way(url: object) -> InUseError:
    return InUseError(
        f"{url}: a folder is needed here, and a file has this name; move the file, or choose another folder."
    )


def replaced(url: object, what: str) -> ChangedError:
    return ChangedError(
        f"{url}: this is not the {what} that the work was started with; restore that {what}, or start again."
    )


def no_words() -> DataError:
    return DataError("The corpus has no words; name a corpus with text, or the column that has the text (text).")


def missing_ids(column: object) -> BadRowError:
    return BadRowError(f"{column}: the id column has empty values; give every document an id.")


def missing_parts(counts: str, there: int, parts: int) -> NotMadeError:
    return NotMadeError(f"{counts}: {there} of {parts} parts are here; copy all counts again.")


def same_id_twice(place: str, column: object) -> BadRowError:
    return BadRowError(f"{place}: two documents have the same {column}; name a column that identifies them.")


def unreadable(file: str, error: OSError) -> AddressError:
    return AddressError(f"{file}: this file could not be read ({error.strerror}).")


def not_writable(folder: str) -> AccessError:
    return AccessError(f"{folder}: there is no permission to write here.")


def changed_during_run(url: object) -> ChangedError:
    return ChangedError(f"{url}: this input changed during the run; run the same command again.")


def changed_while_read(url: object) -> ChangedMeanwhileError:
    return ChangedMeanwhileError(f"{url}: this file changed while it was read; run the same command again.")


class NoClosedForm(CorpusveilError, code="no-closed-form"):
    """The mechanism's output distribution has no closed form."""


_RAISED = re.compile(r".*\bcorpusveil\.errors\.(\w+Error): (.*)")


def of_code(code: str, sentence: str) -> UserError:
    """Return the error of this code with this sentence."""
    kinds = (kind for kind in globals().values() if isinstance(kind, type) and issubclass(kind, UserError))
    return next((kind for kind in kinds if kind.code == code), UserError)(sentence)


def sentences_in(text: str) -> list[str]:
    """Return the sentences of these errors in the traceback of an engine, whose other lines may quote a document."""
    return [sentence for _, sentence in _RAISED.findall(text)]


def user_error_in(text: str) -> UserError | None:
    """Return the last of these errors in the traceback of an engine, if it says that the call or its input is wrong."""
    name, sentence = (_RAISED.findall(text) or [("", "")])[-1]
    kind = globals().get(name)
    if not isinstance(kind, type) or not issubclass(kind, UserError):
        return None
    return BadShardsError({0: sentence}) if kind is BadShardsError else kind(sentence)

"""The errors a person sees: one sentence that says what, where and what to do, and a code that stays.

A sentence may be improved in any release; ``error.code`` is part of the interface, and so are the classes.
``scripts/error_codes.py`` writes ``docs/errors.md`` from the docstrings here.
"""

from __future__ import annotations

import re
from typing import ClassVar


class CorpusveilError(Exception):
    """Base of every error raised on purpose. Its text never quotes private text."""

    exit_status = 1
    code: ClassVar[str]

    def __init_subclass__(cls, code: str | None = None) -> None:
        if code is not None:
            cls.code = code


class UserError(CorpusveilError, code="wrong-call"):
    """The call or its input was wrong: exit status 2."""

    exit_status = 2


class WorkError(CorpusveilError, code="work-failed"):
    """The call was right and the work failed all the same: exit status 1."""


# A table: two lines a code.
# fmt: off
# The call: its settings, arguments and names.
class BadValueError(UserError, code="wrong-value"):
    """A setting or argument has a value that it may not have."""
class BadTypeError(UserError, code="wrong-type"):
    """An argument is of a type that the call does not take."""
class ShapeError(UserError, code="wrong-shape"):
    """Arrays or lists are of other lengths or dimensions than they have to be."""
class UnknownError(UserError, code="unknown-name"):
    """There is no mechanism, engine, profile, key, word or other thing of this name or number."""
class UnsetError(UserError, code="missing-setting"):
    """A setting, argument or environment variable that this call needs is not given."""
class ConflictError(UserError, code="conflicting-settings"):
    """Two settings contradict each other, or one is for another choice than was made."""
class NoGuaranteeError(UserError, code="no-guarantee"):
    """What was chosen has no guarantee, and one is needed or its lack has to be accepted."""
class SecretError(UserError, code="unusable-key"):
    """A secret can't be read, is not random bytes of the right length, or is open to others."""
class PackageError(UserError, code="missing-package"):
    """A package or program that this call needs is not installed, or can't be loaded."""
# Places: addresses, rights, and what is there already.
class NoFileError(UserError, code="missing-file"):
    """No file or folder, or none that is needed in it, is at this address."""
class NotMadeError(UserError, code="missing-artefact"):
    """No space, count, table, release or ledger is here, or not all of its files are."""
class AddressError(UserError, code="unusable-address"):
    """What is at this address can't be opened, read or written; its name or kind is not usable."""
class AccessError(UserError, code="no-permission"):
    """Rights or valid credentials for this address are missing."""
class TrustError(UserError, code="untrusted-file"):
    """Others than this user can write to a file that would be trusted."""
class OverlapError(UserError, code="overlapping-paths"):
    """Input, output and private files lie in one another."""
class InUseError(UserError, code="output-in-use"):
    """Something else is where the output would be."""
class ChangedError(UserError, code="input-changed"):
    """An input or artefact is another one than when the work was started, or than was released."""
# Content: files, rows and columns, artefacts.
class FormatError(UserError, code="wrong-format"):
    """A file is of a form that is not read here, or the files are of several."""
class BadFileError(UserError, code="damaged-file"):
    """A file is cut short, or not what its form says it is."""
class ArtefactError(UserError, code="damaged-artefact"):
    """A space, counts, a table, a model or tokens do not hold together; make them again."""
class BadRecordError(UserError, code="damaged-record"):
    """A record, manifest or ledger entry is damaged, and what it says is not guessed."""
class VersionError(UserError, code="other-version"):
    """Another version of corpusveil or Python made this, or runs here, than is needed."""
class MismatchError(UserError, code="mismatch"):
    """Two things that are given do not belong together, or one is of another kind."""
class ColumnError(UserError, code="wrong-column"):
    """A column or field is missing, named twice, or of the wrong type."""
class BadRowError(UserError, code="bad-row"):
    """A row, line or id can't be used; the sentence says which."""
class DataError(UserError, code="unsuitable-data"):
    """The data are sound, and too few, empty, or such that what was asked for is not defined on them."""
class SizeError(UserError, code="too-large"):
    """There is more of something than can be held or sent."""
class CapError(UserError, code="cap-exceeded"):
    """A document would have spent more than the ledger's cap; nothing was released."""
# Work that failed.
class OtherRunError(WorkError, code="other-run"):
    """Another run is at work in this folder; nothing was done."""
class EngineError(WorkError, code="engine-failed"):
    """Spark, Beam or a worker process failed; what was finished is kept."""
class StoreError(WorkError, code="store-failed"):
    """A disk or store could not read or write; run again."""
class ChangedMeanwhileError(WorkError, code="changed-meanwhile"):
    """A file changed while it was read; run again."""
class UnfinishedError(WorkError, code="unfinished-work"):
    """A part of the work was not done; run again."""
class LedgerDiffersError(WorkError, code="ledger-differs"):
    """More was spent than the ledger says."""
class InstallationError(WorkError, code="broken-installation"):
    """A package is installed and does not work, or is not whole."""
# fmt: on


class BadShardsError(UserError, code="bad-shards"):
    """Input shards can't be used; ``sentences`` says why, by their numbers."""

    def __init__(self, sentences: dict[int, str]) -> None:
        first = sentences[min(sentences)]
        more = f" ({len(sentences) - 1} more shards failed likewise or otherwise.)" if len(sentences) > 1 else ""
        super().__init__(first + more)
        self.sentences = sentences

    def __reduce__(self) -> tuple[type[BadShardsError], tuple[dict[int, str]]]:
        return BadShardsError, (self.sentences,)


class NoClosedForm(CorpusveilError, code="no-closed-form"):
    """The mechanism's output distribution has no closed form."""


def sentences_in(text: str) -> list[str]:
    """Return the sentences of these errors in the traceback of an engine, whose other lines may quote a document."""
    return re.findall(r".*\bcorpusveil\.errors\.\w+Error: (.*)", text)

"""The errors a person sees: one sentence that says what, where and what to do."""

from __future__ import annotations


class CorpusveilError(Exception):
    """Base of every error raised on purpose. Its text never quotes private text."""

    exit_status = 1


class UserError(CorpusveilError):
    """The call or its input was wrong: exit status 2."""

    exit_status = 2


class WorkError(CorpusveilError):
    """The call was right and the work failed all the same: exit status 1."""


class NoClosedForm(CorpusveilError):
    """The mechanism's output distribution has no closed form."""

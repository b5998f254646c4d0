"""The errors a person sees: one sentence that says what, where and what to do."""

from __future__ import annotations


class CorpusveilError(Exception):
    """Base of every error raised on purpose. Its text never quotes private text."""

    exit_status = 1


class UserError(CorpusveilError):
    """The call or its input was wrong: exit status 2."""

    exit_status = 2


class BadShardsError(UserError):
    """Input shards can't be used; ``sentences`` says why, by their numbers."""

    def __init__(self, sentences: dict[int, str]) -> None:
        first = sentences[min(sentences)]
        more = f" ({len(sentences) - 1} more shards failed likewise or otherwise.)" if len(sentences) > 1 else ""
        super().__init__(first + more)
        self.sentences = sentences

    def __reduce__(self) -> tuple[type[BadShardsError], tuple[dict[int, str]]]:
        return BadShardsError, (self.sentences,)


class WorkError(CorpusveilError):
    """The call was right and the work failed all the same: exit status 1."""


class NoClosedForm(CorpusveilError):
    """The mechanism's output distribution has no closed form."""


TOLD = ("WorkError: ", "UserError: ", "BadShardsError: ")
"""How a traceback in the words of an engine shows errors whose text may be told."""

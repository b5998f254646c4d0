"""The treatment of each kind of token: the text policy of a release."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from corpusveil.choices import HYPHENS, MARKUPS, POLICIES, Hyphens, Markup, Policy
from corpusveil.errors import not_a_choice
from corpusveil.text import languages

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

PRIVATIZE, RESAMPLE, MASK, DROP, KEEP, REPLACE = range(6)
_CHOICES = {
    "layout": ("normalize", "keep"), "case": ("lower", "restore"), "hyphens": HYPHENS, "markup": MARKUPS,
    "tokenizer": ("word", "gst", "mst"),
}  # fmt: skip

KNOWN_WORD, UNKNOWN_WORD, STOP_WORD, NUMBER, PUNCTUATION, CONTACT, OTHER, SPAN = range(8)
"""Roles: a token's class, with words split into known, unknown and stop words."""

ROLE_NAMES = ("words", "unknown_words", "stop_words", "numbers", "punctuation", "contacts", "other")
"""The roles that a text policy names."""
_FIRST = (*ROLE_NAMES[1:], "layout", "case", "tokenizer")
"""The fields that every digest covers."""
ALL_ROLES = (*ROLE_NAMES, "spans")
MASKS = ("[word]", "[unknown]", "[stop]", "[number]", "[punctuation]", "[contact]", "[other]", "[span]")
"""The mask of each role; that of a span is its kind (`SpanPolicy`)."""

DOCUMENT_LENGTH = "how many tokens a document has"
"""Disclosed under every text policy and mechanism: each input token becomes one output token, or is dropped."""
COLLOCATION_PLACES = "where collocations were, as far as their replacements show it"

_LEFT_IN_THE_CLEAR = {
    "unknown_words": "words outside the vocabulary",
    "stop_words": "stop words",
    "numbers": "numbers",
    "contacts": "URLs, e-mail addresses and handles",
    "punctuation": "all punctuation (also emoticons, codes and passwords made of punctuation marks)",
    "other": "symbols, emoji and control characters",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPolicy:
    """The treatment of each class of tokens that the mechanism does not replace, and how text is read and written.

    A class has one policy: ``resample`` (a word drawn from the space's public counts, independent of the token),
    ``mask`` (a public symbol, such as ``[contact]``), ``drop`` or ``keep`` (in the clear); ``stop_words`` also
    ``privatize`` (like other words). ``layout``: ``normalize`` (single blanks) or ``keep`` (white space of the input).
    ``tokenizer``: ``word``, or ``gst`` or ``mst`` for collocations. ``case``: ``lower`` or ``restore`` (capitals of the
    input, which this discloses). ``hyphens``: ``split`` (*long-term* is two words) or ``join``. ``markup``: ``words``
    (HTML is text) or ``strip`` (only the text between tags). ``language``: a code or English name; None is that of the
    space. Raises UserError for any other value.

    >>> cv.TextPolicy(numbers="mask").disclosed()[0]
    'how many tokens a document has'
    """

    unknown_words: Policy = "resample"
    stop_words: Policy = "privatize"
    numbers: Policy = "resample"
    contacts: Policy = "mask"
    punctuation: Policy = "keep"
    other: Policy = "drop"
    layout: Literal["normalize", "keep"] = "normalize"
    case: Literal["lower", "restore"] = "lower"
    tokenizer: Literal["word", "gst", "mst"] = "word"
    hyphens: Hyphens = "split"
    markup: Markup = "words"
    language: str | None = None

    def __post_init__(self) -> None:
        choices = {name: POLICIES if name == "stop_words" else POLICIES[1:] for name in ROLE_NAMES[1:]} | _CHOICES
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                raise not_a_choice(name, getattr(self, name), allowed)
        if self.language is not None:
            object.__setattr__(self, "language", languages.code_of(self.language))

    def actions(self) -> npt.NDArray[np.uint8]:
        """Return the policy code of each role; uint8 [8]."""
        import numpy as np  # the names of profiles, which help shows, need no NumPy

        codes = [PRIVATIZE, *(POLICIES.index(getattr(self, name)) for name in ROLE_NAMES[1:]), REPLACE]
        return np.array(codes, dtype=np.uint8)

    def parts_stop_words(self) -> bool:
        """Say whether stop words are treated differently from other words."""
        return self.stop_words != "privatize"

    def reading_version(self) -> str:
        """Return the versions of packages that decide how texts are read under this policy; mostly empty."""
        return languages.version_of(self.language, stop_words=self.parts_stop_words())

    def disclosed(self) -> tuple[str, ...]:
        """List everything that a reader of the output sees unprotected, in words."""
        shown = [DOCUMENT_LENGTH, "where sentences end, as far as kept punctuation shows it"]
        if self.tokenizer != "word":
            shown.append(COLLOCATION_PLACES)
        for name, words in _LEFT_IN_THE_CLEAR.items():
            value = getattr(self, name)
            if value == "keep":
                shown.append(f"{words}, as in the input")
            elif value == "mask":
                shown.append(f"where {words} are (not which)")
        if self.layout == "keep":
            shown.append("white space and line breaks, as in the input")
        else:
            shown.append("which tokens are separated by white space")
        if self.case == "restore":
            shown.append("which words had capitals")
        return tuple(shown)

    def as_dict(self) -> dict[str, str]:
        """Return the fields by name, for a digest or a manifest.

        Later fields are left out at their defaults, so a new field changes no existing release.
        """
        given = dataclasses.asdict(self)
        return {name: value for name, value in given.items() if name in _FIRST or value != getattr(DEFAULT, name)}


DEFAULT = TextPolicy()
"""The policy of a release that says nothing else."""

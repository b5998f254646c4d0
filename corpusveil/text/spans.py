"""Spans: the places in texts, such as names and phone numbers, that are treated as one token of a kind of its own."""

from __future__ import annotations

import contextlib
import itertools
import operator
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from corpusveil.choices import TREATMENTS, Treatment
from corpusveil.errors import DataError, SettingError, not_a_choice
from corpusveil.text import classes
from corpusveil.text.folding import plain
from corpusveil.text.languages import SEPARATOR, rule
from corpusveil.text.tokens import Tokens

KIND = re.compile("[a-z][a-z0-9_]{0,31}")
"""What a kind is called, such as ``name`` or ``phone``."""
CONTACT_KIND = "contact"
"""The kind of spans that are contacts, which a text policy has a treatment for."""
CHECKED = ("iban", "card", "national_id", "ip")
"""Kinds that are no guesses: they give a span its kind, however long another is."""
OTHERS = "other"
"""The name of all kinds without a treatment of their own."""


@dataclass(frozen=True, slots=True)
class Spans:
    """S spans in the data of some tokens: ``data[starts[s]:ends[s]]``, int64 [S] each, within one document each.

    The kind of a span is ``names[kinds[s]]``, int64 [S]. Spans may overlap and be in any order.
    """

    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    kinds: npt.NDArray[np.int64]
    names: tuple[str, ...]

    def __len__(self) -> int:
        return self.starts.size

    @classmethod
    def joined(cls, several: Iterable[Spans]) -> Self:
        """Return the spans of several recognizers as one."""
        names: dict[str, int] = {}
        starts, ends, kinds = ([np.zeros(0, np.int64)] for _ in range(3))
        for some in several:
            own = np.array([names.setdefault(name, len(names)) for name in some.names], np.int64)
            starts.append(some.starts)
            ends.append(some.ends)
            kinds.append(own[some.kinds] if len(some) else some.kinds)
        return cls(np.concatenate(starts), np.concatenate(ends), np.concatenate(kinds), tuple(names))


Recognizer = Callable[[Tokens], Spans]
"""What finds spans in documents; of equal documents it finds equal spans."""
Function = Callable[[list[str]], Sequence[Sequence[tuple[int, int, str]]]]
"""A recognizer as users write one: for each text the (start, end, kind) of its spans, counted in characters."""


@dataclass(frozen=True, slots=True)
class Declared:
    """What a recognizer with a name says of itself; ``version`` changes whenever it would find other spans.

    ``kinds`` are all that it finds, None if it may find any.
    """

    make: Callable[[Any], Recognizer]
    """From a space to what finds spans."""
    version: int | str
    kinds: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class OfFunction:
    """A user's function as a recognizer. Raises UserError, which quotes no text, for wrong spans."""

    name: str
    function: Function

    def __call__(self, tokens: Tokens) -> Spans:
        raw, bounds = tokens.data.tobytes(), tokens.documents.tolist()
        try:
            read = [raw[start:end].decode() for start, end in itertools.pairwise(bounds)]
        except UnicodeDecodeError:
            raise DataError("A text is not valid UTF-8, so recognizers cannot read it; convert the texts.") from None
        separator = SEPARATOR if rule(tokens.language, "unspaced") else ""  # which a user's text does not have
        texts = [plain(text.replace(separator, "") if separator else text) for text in read]
        try:
            answers = [list(answer) for answer in self.function(texts)]
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whose message may quote a text
            raise SettingError(
                f"{self.name}: this recognizer failed ({type(error).__name__}); try it on public text."
            ) from None
        if len(answers) != len(texts):
            raise SettingError(
                f"{self.name}: this recognizer was given {len(texts)} texts and answered for {len(answers)}; return a "
                "list of (start, end, kind) for each text."
            )
        names: dict[str, int] = {}
        spans: list[tuple[int, int, int]] = []
        for base, text, whole, answer in zip(bounds, texts, read, answers, strict=False):
            if not answer:
                continue
            places = range(len(text) + 1) if whole.isascii() else _places(whole, separator)
            for span in answer:
                start, end, kind = self._checked(span, len(text))
                spans.append((base + places[start], base + places[end], names.setdefault(kind, len(names))))
        table = np.array(spans, np.int64).reshape(-1, 3)
        return Spans(table[:, 0], table[:, 1], table[:, 2], tuple(names))

    def _checked(self, span: Any, size: int) -> tuple[int, int, str]:
        match span:
            case (start, end, str(kind)) if KIND.fullmatch(kind) and not isinstance(start, bool):
                with contextlib.suppress(TypeError):
                    start, end = operator.index(start), operator.index(end)
                    if 0 <= start <= end <= size:
                        return start, end, kind
        raise SettingError(
            f"{self.name}: this recognizer returned a value that is not a span; return (start, end, kind) in "
            "characters from 0 on, with a kind in small letters such as 'name'."
        )


def _places(text: str, left_out: str) -> list[int]:
    """Return at which byte each character begins, without those left out, and the end."""
    sizes = [len(character.encode()) for character in text]
    starts = itertools.accumulate(sizes, initial=0)
    return [*(start for start, character in zip(starts, text, strict=False) if character != left_out), sum(sizes)]


class Covered(NamedTuple):
    """The kinds of the S tokens of class ``SPAN``, in their order: numbers int64 [S] of ``names``."""

    kinds: npt.NDArray[np.int64]
    names: tuple[str, ...]


def covered(tokens: Tokens, spans: Spans) -> tuple[Tokens, Covered]:
    """Return the tokens with one token for each span, of class ``SPAN``; changes the arrays of ``tokens``.

    A span takes every token that it touches as a whole, and spans that touch one token become one, of the kind of the
    longest, or of one that a checksum decided.

    A span of only white space is ignored, and one of the kind ``contact`` becomes a token of that class.
    """
    firsts = np.searchsorted(tokens.ends, spans.starts, "right")
    lasts = np.searchsorted(tokens.starts, spans.ends, "left") - 1
    touching = np.flatnonzero((firsts <= lasts) & (spans.starts < spans.ends))
    order = touching[np.lexsort((-spans.ends[touching], spans.starts[touching]))]
    firsts, lasts = firsts[order], lasts[order]
    begins = np.flatnonzero(np.append(True, firsts[1:] > np.maximum.accumulate(lasts)[:-1])[: order.size])
    checked = np.array([name in CHECKED for name in spans.names], np.bool_)[spans.kinds]
    weights = spans.ends - spans.starts + (checked.astype(np.int64) << 32)
    groups = np.repeat(np.arange(begins.size), np.diff(begins, append=order.size))
    heaviest = order[np.lexsort((-weights[order], groups))[begins]]
    firsts, lasts, kinds = firsts[begins], np.maximum.reduceat(lasts, begins), spans.kinds[heaviest]
    is_contact = np.array([name == CONTACT_KIND for name in spans.names], np.bool_)[kinds]
    tokens.ends[firsts], tokens.ids[firsts] = tokens.ends[lasts], classes.UNKNOWN
    tokens.classes[firsts] = np.where(is_contact, classes.CONTACT, classes.SPAN)
    inside = np.zeros(len(tokens) + 1, np.int8)
    inside[firsts + 1] += 1
    inside[lasts + 1] -= 1
    return tokens.only(np.cumsum(inside)[:-1] == 0), Covered(kinds[~is_contact], spans.names)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanPolicy:
    """The recognizers of spans, and the treatment of each kind of span, which becomes one token of the output.

    ``find`` names recognizers: ``rules``, ``names``, ``presidio``, ``module:function``, ``terms:path`` (a file of
    terms), or a function from a list of texts to the (start, end, kind) of each text's spans, in characters. ``treat``
    gives the treatment by kind, and that of all others as ``other``: ``mask`` (default), such as ``[name]``, or
    ``resample``, a word drawn from public counts. Spans of the kind ``contact`` follow the text policy. Raises
    UserError for any other value.

    >>> cv.SpanPolicy(find=["rules"], treat={"phone": "resample"}).treatment("card")
    'mask'
    """

    find: Sequence[str | Function] = ("rules",)
    treat: Mapping[str, str] | Iterable[tuple[str, str]] = ()

    def __post_init__(self) -> None:
        find = (self.find,) if isinstance(self.find, str) or callable(self.find) else tuple(self.find)
        if not all(isinstance(name, (str, Hashable)) for name in find):
            raise SettingError("spans: a recognizer has to be hashable; give a function.")
        if not find:
            raise SettingError("spans: no recognizer is named; give one, such as rules.")
        pairs = dict(self.treat.items() if isinstance(self.treat, Mapping) else self.treat)
        for kind, treatment in pairs.items():
            if not isinstance(kind, str) or not KIND.fullmatch(kind):
                raise SettingError("treat: a kind is named in small letters, such as name or phone.")
            if kind == CONTACT_KIND:
                raise SettingError("treat: contacts have the treatment of the text policy; set contacts there.")
            if treatment not in TREATMENTS:
                raise not_a_choice(f"treat: {kind}", treatment, TREATMENTS)
        object.__setattr__(self, "find", find)
        object.__setattr__(self, "treat", tuple(sorted(pairs.items())))

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """``treat`` as pairs of kind and treatment, sorted."""
        return tuple(self.treat)  # type: ignore[arg-type]

    def treatment(self, kind: str) -> Treatment:
        """Return the treatment of a kind."""
        treatments = dict(self.pairs)
        return treatments.get(kind, treatments.get(OTHERS, "mask"))  # type: ignore[return-value]

    @property
    def treatments(self) -> set[str]:
        """The treatments that spans can have."""
        return {self.treatment(kind) for kind, _ in (*self.pairs, (OTHERS, ""))}

    def in_words(self) -> str:
        """Return the policy in a few words."""
        names = [
            name if isinstance(name, str) else getattr(name, "__qualname__", type(name).__qualname__)
            for name in self.find
        ]
        treated = [f"{kind} {how}" for kind, how in self.pairs] or ["mask"]
        return f"found by {', '.join(names)}; {', '.join(treated)}"

    def disclosed(self) -> tuple[str, ...]:
        """List what a reader of the output sees of spans, in words."""
        and_kinds = "" if self.treatments == {"resample"} else ", and their kinds"
        return (f"where recognized spans are{and_kinds}",)

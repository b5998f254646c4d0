r"""HTML in texts: what is a tag, and what is text.

The rules are those of the tokenizer of the HTML standard (13.2.5), less what only a browser needs:

* **tag**: ``<`` or ``</``, a name of ASCII letters, digits and ``:_.-`` that begins with a letter, and attributes up to
  ``>`` (which may stand in quotes). With other characters it is text, such as an address in angle brackets.
* **comment**, **declaration** (``<!``) and **processing instruction** (``<?``): left out. A CDATA section is text.
* **script** and **style**: left out with their content.
* **character references** in text are decoded.

Tags of text-level elements (``<b>``) join the text on both sides, all others separate it. Without a ``>`` after it,
``<`` is text; of a comment, script or style that does not end, nothing is left.

Python's own parser changes its reading of malformed input with patch releases, and a release has to keep its bytes.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from corpusveil.text.policy import TextPolicy
from corpusveil.text.tokens import read, strings

_JOINING = """
a abbr acronym b bdi bdo big cite code data dfn del em font i ins kbd mark nobr q ruby s samp small span strike strong
sub sup time tt u var wbr
"""
_TEXT_LEVEL = frozenset(_JOINING.split())
_WITHOUT_TEXT = ("script", "style")
_BREAK = "\n"

_CONSTRUCT = re.compile(
    r"""<(?:
        !--(?:-?>|.*?--!?>)
      | !\[CDATA\[(?P<section>.*?)\]\]>
      | (?P<endless>!--|!\[CDATA\[)
      | [!?][^>]*+>
      | (?P<close>/?)(?P<name>[a-z][a-z0-9:_.-]*+)(?<!:)(?=[\s/>])
        (?P<rest>[^=>]*+(?:=(?:\s*+(?:"[^"]*+"|'[^']*+')|(?!\s*+(?:"[^"]*+"|'[^']*+')))[^=>]*+)*)>
    )""",
    re.VERBOSE | re.DOTALL | re.ASCII | re.IGNORECASE,
)
"""Linear, since its alternatives are disjoint. No group is possessive: Python before 3.11.5 matches those wrongly."""


def plain(text: str) -> str:
    """Return the text without its tags; where a tag separates words there is a line break. Takes linear time."""
    out: list[str] = []
    last = text.rfind(">") + 1  # no construct ends after it
    at = 0
    while at < last and (construct := _CONSTRUCT.search(text, at, last)) is not None:
        start, end = construct.span()
        out.append(_decoded(text[at:start]))
        at = end
        match construct.lastgroup:
            case "rest":
                closes, name, rest = construct.group("close", "name", "rest")
                name = name.lower()
                out.append("" if name in _TEXT_LEVEL else _BREAK)
                if name in _WITHOUT_TEXT and not (closes or rest[-1:] == "/"):
                    close = re.compile(rf"</{name}(?=[\s/>])[^>]*+>", re.ASCII | re.IGNORECASE).search(text, at, last)
                    at = len(text) if close is None else close.end()
            case "section":
                out.append(construct["section"])
            case "endless":
                out.append("" if construct["endless"] == "!--" else text[at:])
                return "".join(out)
    out.append(_decoded(text[at:].partition("<!--")[0]))
    return "".join(out)


def _decoded(text: str) -> str:
    return html.unescape(text) if "&" in text else text


def plain_texts(texts: pa.Array) -> pa.Array:
    """Return strings [D] without their tags; nulls stay null."""
    texts = strings(texts)
    if not pc.any(pc.match_substring_regex(texts, "[<&]")).as_py():
        return texts
    return pa.array([text if text is None else plain(text) for text in texts.to_pylist()], pa.large_string())


@dataclass(frozen=True, slots=True)
class Texts:
    """D documents as they are read, ``data[documents[d]:documents[d + 1]]``; uint8 and int64 [D + 1]."""

    data: npt.NDArray[np.uint8]
    documents: npt.NDArray[np.int64]

    @classmethod
    def read(cls, texts: pa.Array, policy: TextPolicy) -> Texts:
        """Read strings [D] by the markup and the language of a policy; a null is an empty text."""
        texts = plain_texts(texts) if policy.markup == "strip" else strings(texts)
        return cls(*read(texts, policy.language))

    def part(self, first: int, last: int) -> Texts:
        """Return some documents."""
        return Texts(self.data, self.documents[first : last + 1])

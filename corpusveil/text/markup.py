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
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from corpusveil.text import languages
from corpusveil.text.policy import TextPolicy
from corpusveil.text.tokens import Tokens, string_buffers, strings

_JOINING = """
a abbr acronym b bdi bdo big cite code data dfn del em font i ins kbd mark nobr q ruby s samp small span strike strong
sub sup time tt u var wbr
"""
_SEPARATING = """
address area article aside audio base basefont blockquote body br button canvas caption center col colgroup datalist dd
details dialog dir div dl dt embed fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head header
hgroup hr html iframe img input label legend li link main map menu meta meter nav noframes noscript object ol optgroup
option output p param picture pre progress rp rt search section select slot source summary svg table tbody td template
textarea tfoot th thead title tr track ul video
"""
_TEXT_LEVEL = frozenset(_JOINING.split())
_ELEMENTS = _TEXT_LEVEL | frozenset(_SEPARATING.split())
"""The names that may be written; another name could be a person's."""
_WITHOUT_TEXT = ("script", "style")
_BREAK = "\n"

_CONSTRUCT = re.compile(
    r"""<(?:
        !--(?:-?>|.*?--!?>)
      | !\[CDATA\[(?P<section>.*?)\]\]>
      | (?P<endless>!--|!\[CDATA\[)
      | [!?][^>]*+>
      | (?P<close>/?)(?P<name>[a-z][a-z0-9:_.-]*+)(?<!:)(?=[\s/>])
        (?P<rest>(?:[^=>]++|=\s*+(?:"[^"]*+"|'[^']*+')?)*+)>
    )""",
    re.VERBOSE | re.DOTALL | re.ASCII | re.IGNORECASE,
)
_MAYBE = "[<&]"
_TAG = r"</?(?i:" + "|".join(sorted(_ELEMENTS)) + r")(?:\s[^<>]*)?/?>"
"""A tag of HTML as it mostly looks, for a count."""


def pieces(text: str) -> tuple[list[str], list[str]]:
    """Return the runs of text [k + 1] between the k tags that may be written, and these tags, without attributes.

    Where another tag separates words there is a line break. Takes time linear in the text.
    """
    texts: list[str] = []
    tags: list[str] = []
    here = ""  # the present run so far
    last = text.rfind(">") + 1  # no construct ends behind it
    at = 0
    while at < last and (construct := _CONSTRUCT.search(text, at, last)) is not None:
        start, end = construct.span()
        here += _decoded(text[at:start])
        at = end
        match construct.lastgroup:
            case "rest":
                closes, name, rest = construct.group("close", "name", "rest")
                name, alone = name.lower(), "/" if rest[-1:] == "/" else ""
                if name in _ELEMENTS:
                    texts.append(here)
                    tags.append(f"<{closes}{name}{alone}>")
                    here = ""
                    continue
                here += _BREAK
                if name in _WITHOUT_TEXT and not (closes or alone):
                    close = re.compile(rf"</{name}(?=[\s/>])[^>]*+>", re.ASCII | re.IGNORECASE).search(text, at)
                    at = len(text) if close is None else close.end()
            case "section":
                here += construct["section"]
            case "endless":
                return [*texts, here + ("" if construct["endless"] == "!--" else text[at:])], tags
    return [*texts, here + _decoded(text[at:].partition("<!--")[0])], tags


def _decoded(text: str) -> str:
    return html.unescape(text) if "&" in text else text


def plain(text: str) -> str:
    """Return the text without its tags."""
    texts, tags = pieces(text)
    out = [texts[0]]
    for tag, after in zip(tags, texts[1:], strict=True):
        out += ["" if tag.strip("</>") in _TEXT_LEVEL else _BREAK, after]
    return "".join(out)


def plain_texts(texts: pa.Array) -> pa.Array:
    """Return strings [D] without their tags; nulls stay null."""
    texts = strings(texts)
    if not pc.any(pc.match_substring_regex(texts, _MAYBE)).as_py():
        return texts
    return pa.array([text if text is None else plain(text) for text in texts.to_pylist()], pa.large_string())


def with_tags(texts: pa.Array) -> int:
    """Return how many texts have a tag of HTML."""
    return int(pc.sum(pc.match_substring_regex(texts, _TAG)).as_py() or 0)


@dataclass(frozen=True, slots=True)
class Texts:
    """D documents as they are read: S runs of text, ``data[spans[s]:spans[s + 1]]``, int64 [S + 1].

    ``first`` int64 [D + 1] says which runs are a document's, and ``tags`` [S] the text written after each run; both are
    None where a document is one run.
    """

    data: npt.NDArray[np.uint8]
    spans: npt.NDArray[np.int64]
    first: npt.NDArray[np.int64] | None = None
    tags: Sequence[str] | None = None

    @classmethod
    def read(cls, texts: pa.Array, policy: TextPolicy) -> Texts:
        """Read strings [D] by the markup and the language of a policy; a null is an empty text."""
        if policy.markup != "keep":
            texts = plain_texts(texts) if policy.markup == "strip" else strings(texts)
            return cls(*string_buffers(languages.read(texts, policy.language)))
        runs: list[str] = []
        written: list[str] = []
        first = [0]
        for text in strings(texts).to_pylist():
            some, tags = pieces(text or "")
            runs += some
            written += [*tags, ""]
            first.append(len(runs))
        read = languages.read(pa.array(runs, pa.large_string()), policy.language)
        return cls(*string_buffers(read), np.array(first, np.int64), written)

    @property
    def documents(self) -> npt.NDArray[np.int64]:
        """Where documents begin; int64 [D + 1]."""
        return self.spans if self.first is None else self.spans[self.first]

    def part(self, first: int, last: int) -> Texts:
        """Return some documents."""
        if self.first is None or self.tags is None:
            return Texts(self.data, self.spans[first : last + 1])
        begin, end = int(self.first[first]), int(self.first[last])
        own = self.first[first : last + 1] - begin
        return Texts(self.data, self.spans[begin : end + 1], own, self.tags[begin:end])

    def whole(self, tokens: Tokens) -> Tokens:
        """Return the tokens of runs as tokens of documents."""
        if self.first is None:
            return tokens
        return replace(tokens, documents=tokens.documents[self.first], offsets=tokens.offsets[self.first])

    def joined(
        self, out: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], *, blanks: bool
    ) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
        """Return private runs, ``out`` and ``offsets`` int64 [S + 1], with the tags between: bytes, and sizes [D].

        With ``blanks`` the runs have lost the white space at their ends, and get a blank in its place.
        """
        if self.first is None or self.tags is None:
            return out[: offsets[-1]], np.diff(offsets)
        written, data = out.tobytes(), self.data
        ends = set(self.first.tolist())
        sizes = np.zeros(len(self.tags), np.int64)
        parts: list[bytes] = []
        for run, tag in enumerate(self.tags):
            private = html.escape(written[offsets[run] : offsets[run + 1]].decode(), quote=False)
            if blanks:
                text = data[self.spans[run] : self.spans[run + 1]].tobytes().decode()
                begins, is_last = run in ends, run + 1 in ends
                before, behind = text[:1].isspace() and not begins, text[-1:].isspace() and not is_last
                if private:
                    private = " " * before + private + " " * behind
                elif not begins and not is_last:
                    private = " " * (before or behind)
            parts.append((private + tag).encode())
            sizes[run] = len(parts[-1])
        before_run = np.concatenate([[0], np.cumsum(sizes)])
        return np.frombuffer(b"".join(parts), np.uint8), np.diff(before_run[self.first])

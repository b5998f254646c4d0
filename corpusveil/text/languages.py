"""What reading depends on in a language: function words, abbreviations, elision, capitals, and words without blanks.

``languages.json`` says which rules a language has, by its ISO 639-1 code:

* ``elides``: an apostrophe ends a word, so *l'homme* is an article, a mark and a noun (as in Moses' tokenizer).
* ``dotless_i``: the small letter of *I* is *ı*, and of *İ* it is *i*.
* ``unspaced``: ICU's dictionaries say where words end. A separator, white space for the tokenizer, is put there before
  it reads a text, and is taken out of what is written.
* ``abbreviations``: words whose full stop ends no sentence, in addition to the English ones.

Function words and dictionaries are those of packages in the extra ``languages``; their versions decide bytes.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
from importlib import resources
from typing import TYPE_CHECKING, Any

from corpusveil.errors import PackageError, SettingError

if TYPE_CHECKING:
    import pyarrow as pa

_STOP_WORDS = """
    a about above after again against all am an and any are aren't as at be because been before being below between
    both but by can can't cannot could couldn't did didn't do does doesn't doing don't down during each few for from
    further had hadn't has hasn't have haven't having he he'd he'll he's her here here's hers herself him himself
    his how how's i i'd i'll i'm i've if in into is isn't it it's its itself just let's me more most mustn't my
    myself no nor not now of off on once only or other ought our ours ourselves out over own same shan't she she'd
    she'll she's should shouldn't so some such than that that's the their theirs them themselves then there there's
    these they they'd they'll they're they've this those through to too under until up very was wasn't we we'd we'll
    we're we've were weren't what what's when when's where where's which while who who's whom why why's will with
    won't would wouldn't you you'd you'll you're you've your yours yourself yourselves
"""

STOP_WORDS = frozenset(_STOP_WORDS.split())
"""English function words in lower case. Public; a change of this list needs a new ``KERNEL_VERSION``."""


@functools.cache
def known() -> dict[str, dict[str, Any]]:
    """Return what is known of each language, by ISO 639-1 code: ``languages.json``."""
    read: dict[str, dict[str, Any]] = json.loads((resources.files("corpusveil.text") / "languages.json").read_bytes())
    return read


def rule(language: Any, name: str) -> Any:
    """Return what a rule says of a language; None if nothing."""
    return known().get(str(language), {}).get(name)


_LETTERS = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ebd\u0ec0-\u0ece\u1000-\u103f\u1050-\u108f\u109a-\u109d\u1780-\u17d3\u17d7"
    "\u17dc\u17dd\u3005\u3006\u3041-\u3096\u3099\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U000323af"
)
UNSPACED = re.compile(f"[{_LETTERS}]+")
SEPARATOR = "\v"
"""What is put between words that have no blank, and is white space for the tokenizer."""
_SEPARATED = {
    "normalize": re.compile(f"(?<=[{_LETTERS}]) (?=[{_LETTERS}])"),
    "keep": re.compile(f"(?<=[{_LETTERS}]){SEPARATOR}|{SEPARATOR}(?=[{_LETTERS}])"),
}
"""By layout, the blanks of a written text that nobody writes in these scripts."""


def code_of(name: str) -> str:
    """Return the code of a language given by its code or English name. Raises SettingError."""
    if not isinstance(name, str):
        raise SettingError("language: give a code such as de, or an English name such as German.")
    by_name = {language["name"].lower(): code for code, language in known().items()}
    code = by_name.get(name.lower(), name.lower())
    if code not in known():
        raise SettingError(
            f"language = {name!r}: this language is not known here; give a code or an English name of docs/languages.md"
            ", such as de or German, or leave it out."
        )
    return code


def _missing(what: str) -> PackageError:
    return PackageError(f"{what} needs the extra 'languages': pip install 'corpusveil[languages]'.")


@functools.cache
def function_words(language: str | None) -> frozenset[str]:
    """Return the function words of a language in lower case; English ones by default.

    Empty for a language without a list. Raises PackageError without the package that has them.
    """
    if language in (None, "en"):
        return STOP_WORDS
    try:
        import stopwordsiso
    except ImportError:
        raise _missing(f"language {language}: a list of function words") from None
    if not stopwordsiso.has_lang(language):
        return frozenset()
    listed = frozenset(word.lower().replace("’", "'") for word in stopwordsiso.stopwords(language))
    return (
        listed | {part for word in listed for part in word.split("'") if part} if rule(language, "elides") else listed
    )


def version_of(language: str | None, *, stop_words: bool = False) -> str:
    """Return the versions of packages that decide how texts are read, to follow that of the tokenizer; mostly empty.

    With ``stop_words`` also a digest of the function words. Raises SettingError if the language has no list of them.
    """
    version = ""
    if rule(language, "unspaced"):
        version += f"/icu-{_icu()[1]}"
    if stop_words and language not in (None, "en"):
        if not function_words(language):
            raise SettingError(f"language = {language!r}: it has no list of function words; leave stop_words out.")
        words = "\n".join(sorted(function_words(language)))
        version += f"/words-{hashlib.sha256(words.encode()).hexdigest()[:16]}"
    return version


@functools.cache
def _icu() -> tuple[Any, str]:
    try:
        import icu4py
        from icu4py.breakers import WordBreaker
    except ImportError:
        raise _missing("a language whose words have no blanks between them") from None
    return WordBreaker, str(icu4py.icu_version)


def read(texts: pa.Array, language: str | None) -> pa.Array:
    """Return strings [D] as the tokenizer reads them in a language; nulls stay null."""
    if rule(language, "dotless_i"):
        import pyarrow.compute as pc

        for capital, small in (("I\u0307", "i"), ("\u0130", "i"), ("I", "\u0131")):
            texts = pc.replace_substring(texts, capital, small)
    if not rule(language, "unspaced"):
        return texts
    return _each(_segmented, texts)


def written(texts: pa.Array, language: str | None, layout: str) -> pa.Array:
    """Return private strings [D] without the blanks that ``read`` put between words."""
    if not rule(language, "unspaced"):
        return texts
    pattern = _SEPARATED[layout]
    return _each(lambda text: pattern.sub("", text).replace(SEPARATOR, " "), texts)


def _each(change: Any, texts: pa.Array) -> pa.Array:
    import pyarrow as pa

    return pa.array([None if text is None else change(text) for text in texts.to_pylist()], pa.large_string())


def _segmented(text: str) -> str:
    """Return a text with separators between the words of its runs of letters, and around these inside other words."""
    from corpusveil.text.characters import DIGIT, LETTER, MARK, TABLE_END, character_table

    breaker, kinds = _icu()[0], character_table()

    def is_part_of_word(at: int) -> bool:
        return 0 <= at < len(text) and kinds[min(ord(text[at]), TABLE_END - 1)] & 0xF in (LETTER, MARK, DIGIT)

    def segments(run: re.Match[str]) -> str:
        words = SEPARATOR.join(breaker(run[0], "root"))
        return SEPARATOR * is_part_of_word(run.start() - 1) + words + SEPARATOR * is_part_of_word(run.end())

    text = text.replace(SEPARATOR, " ")
    return UNSPACED.sub(segments, text)


def agreed(asked: str | None, recorded: str | None, what: str) -> str | None:
    """Return the language asked for, by code or name, or else the recorded one.

    Raises SettingError, which names ``what``, if another is recorded.
    """
    asked = None if asked is None else code_of(asked)
    if None not in (asked, recorded) and asked != recorded:
        raise SettingError(
            f"language {asked}: the text of {what} was read as {recorded}; read everything in the same way, or leave "
            "this setting out."
        )
    return asked or recorded

"""Write into README.md what its first Python example prints, its texts by both units, and nats, under one fixed key.

Run it after a change of the kernel or of the space ``en``: ``python scripts/readme_output.py``.
``tests/test_first_hour.py`` fails where README.md says something else.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import re
from pathlib import Path
from typing import Any
from unittest import mock

import corpusveil as cv
from corpusveil.display import rounded_up

README = Path(cv.__file__).parents[1] / "README.md"
SECRET = hashlib.sha256(b"corpusveil README").digest()
"""Known to everyone, so that the README can be checked; never the key of a release."""
RISK = 0.5
HIDING: dict[str, Any] = {"spans": ["rules", "names"], "markup": "strip", "case": "restore", "layout": "keep"}
"""How its words are drawn."""
ROW = re.compile(r"(?m)^\| ?(.*?) ?\|(.*)\|(.*)\|$")
"""A row of the README's first table, which alone has three columns; what begins in bold is no text."""


def example(page: str) -> str:
    """Return the first Python example of the page."""
    return str(re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)[0])


def written(page: str) -> str:
    """Return the page with what its example prints on this machine, and its texts released by both units."""
    names: dict[str, Any] = {}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), mock.patch.object(cv.Key, "generate", return_value=cv.Key(SECRET)):
        exec(compile(example(page), "README.md", "exec"), names)  # noqa: S102 - the page is ours
    passages, words = names["release"], cv.release(risk=RISK, key=cv.Key(SECRET), **HIDING)
    texts = [row[0] for row in ROW.findall(page) if row[0] not in ("original", "---") and not row[0].startswith("**")]
    released = [cv.privatize(texts, release, ids=range(len(texts))) for release in (passages, words)]
    for text, passage, drawn in zip(texts, *released, strict=True):
        page = re.sub(rf"(?m)^\| {re.escape(text)} \|.*$", f"| {text} | {passage} | {drawn} |", page)
    page = re.sub(
        r"(?s)(\n```python\n.*?\n```\n\n```\n)(.*?)(```\n)", rf"\g<1>{printed.getvalue()}\g<3>", page, count=1
    )
    nats = rounded_up(words.guarantee().plain_ldp)
    page = re.sub(r"at most [\d.]+ nats a word", f"at most {nats} nats a word", page)
    return re.sub(r"<!-- space \S+ -->", f"<!-- space {words.mechanism.space.digest[:12]} -->", page)


if __name__ == "__main__":
    README.write_text(written(README.read_text()))

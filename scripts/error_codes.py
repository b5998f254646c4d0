"""Write ``docs/errors.md``, the codes of errors and what they mean, from the docstrings of ``corpusveil/errors.py``.

``make lint`` runs it; ``tests/api/test_error_codes.py`` fails if the page is out of date.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import corpusveil
from corpusveil.errors import CorpusveilError

PAGE = Path(corpusveil.__file__).parents[1] / "docs" / "errors.md"
HEAD = """# Errors

Every error is a sentence that says what is wrong, where, and what to do. The command line writes it to standard error,
followed by its code (`corpusveil: SENTENCE [code]`), and ends with the exit status. In Python it is an exception of
`corpusveil.errors` with the same `code`. Sentences may be improved; codes, classes and statuses do not change. A usage
error of the command line itself (an unknown option) has status 2 and no code. This page is written by
`scripts/error_codes.py`.

| code | exit status | class | |
|---|---|---|---|
"""


def coded(of: type[CorpusveilError] = CorpusveilError) -> Iterator[type[CorpusveilError]]:
    """Yield the package's classes of errors that have a code of their own."""
    for kind in of.__subclasses__():
        if "code" in vars(kind) and kind.__module__.startswith("corpusveil."):
            yield kind
        yield from coded(kind)


def page() -> str:
    """Return the page."""
    rows = sorted(
        (kind.code, kind.exit_status, kind.__name__, str(kind.__doc__).partition("\n")[0]) for kind in coded()
    )
    return HEAD + "".join(f"| `{code}` | {status} | `{name}` | {said} |\n" for code, status, name, said in rows)


if __name__ == "__main__":
    PAGE.write_text(page())

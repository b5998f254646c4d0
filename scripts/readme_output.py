"""Write into README.md what its first Python example prints, and its before and after, all under one fixed key.

Run it after a change of the kernel or of the space ``en``: ``python scripts/readme_output.py``.
``tests/test_first_hour.py`` fails where README.md says something else.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import re
from pathlib import Path
from unittest import mock

import corpusveil as cv
from corpusveil.language.denoise import MARGIN, Denoiser, Search

README = Path(cv.__file__).parents[1] / "README.md"
SECRET = hashlib.sha256(b"corpusveil README").digest()
"""Known to everyone, so that the README can be checked; never the key of a release."""


def example(page: str) -> str:
    """Return the first Python example of the page."""
    return str(re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)[0])


def written(page: str) -> str:
    """Return the page with what its example prints on this machine."""
    names: dict[str, cv.Release] = {}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), mock.patch.object(cv.Key, "generate", return_value=cv.Key(SECRET)):
        exec(compile(example(page), "README.md", "exec"), names)  # noqa: S102 - the page is ours
    release, drawn = names["release"], printed.getvalue().splitlines()[0]
    search = Search(margin=MARGIN)
    denoiser = Denoiser(release.mechanism, release.budget, release.policy, cv.demo_model(), search, spans=True)
    page = re.sub(r"(?m)^\| drawn \| .* \|$", f"| drawn | {drawn} |", page)
    page = re.sub(r"(?m)^\| denoised \| .* \|$", f"| denoised | {denoiser.readable([drawn])[0]} |", page)
    page = re.sub(
        r"(?s)(\n```python\n.*?\n```\n\n```\n)(.*?)(```\n)", rf"\g<1>{printed.getvalue()}\g<3>", page, count=1
    )
    return re.sub(r"in the demo space \S+ -->", f"in the demo space {release.mechanism.space.digest[:12]} -->", page)


if __name__ == "__main__":
    README.write_text(written(README.read_text()))

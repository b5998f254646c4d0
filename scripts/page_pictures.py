"""Take screenshots in a real browser: of a release of bundled news in the demo space, and of the demo's page.

Usage: python -m scripts.page_pictures (make pictures). The key of the release is fixed, so that everybody gets the same
pages, and it is thrown away; the demo draws a key of its own. Fonts are this machine's.
"""

from __future__ import annotations

import contextlib
import hashlib
import sys
import tempfile
from pathlib import Path

import orjson
from PIL import Image  # apache-beam brings it

from corpusveil.cli.main import run
from corpusveil.collocations.public_texts import public_texts
from scripts.browser import browser, find_browser

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "pages"
DOCUMENTS = 50
SHOTS = {(1280, False): 2100, (390, False): 1700, (390, True): 1700}
"""Width in pixels, whether it is dark, and the height in pixels from the top."""
COLORS = 96
"""The colors of a picture's palette, so that it stays small."""


def main() -> int:
    """Make the pages and write their pictures, of the demo's a wide one; return the exit status."""
    executable = find_browser()
    if executable is None:
        sys.stderr.write("no browser is on the path; name one with CORPUSVEIL_BROWSER\n")
        return 2
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        pages = make_pages(Path(scratch))
        with browser(executable, Path(scratch)) as tab:
            for name, page in pages.items():
                for (width, dark), height in SHOTS.items():
                    if name == "demo" and width < max(SHOTS)[0]:
                        continue
                    tab.open(page, width, dark=dark)
                    target = FOLDER / f"{name}-{width}{'-dark' if dark else ''}.png"
                    tab.screenshot(target, height)
                    Image.open(target).convert("RGB").quantize(COLORS).save(target, optimize=True)
                    sys.stdout.write(f"{target.name}: {target.stat().st_size:,} bytes\n")
    return 0


def make_pages(scratch: Path) -> dict[str, Path]:
    """Release bundled news, evaluate the release, run the demo; return the pages."""
    from gensim.test.utils import datapath

    private = Path(datapath("lee.cor")).read_text(encoding="cp1252").splitlines()[:DOCUMENTS]
    write(scratch / "news.jsonl", private)
    write(scratch / "public.jsonl", list(public_texts()))
    key = scratch / "release.key"
    key.write_bytes(hashlib.sha256(b"screenshots: what is made under it is thrown away").digest())
    key.chmod(0o600)
    news, counts, released = (str(scratch / name) for name in ("news.jsonl", "counts", "private"))
    calls = [
        ["count", str(scratch / "public.jsonl"), "--output", counts, "--engine", "local", "--min-count", "2"],
        ["privatize", news, "--space", "demo", "--mechanism", "ring-geometric", "--epsilon", "2",
         "--key", str(key), "--output", released],
        ["evaluate", "release", news, released, "--space", "demo", "--counts", counts, "--seeds", "2",
         "--output", str(scratch / "evaluation")],
        ["demo", "--output", str(scratch / "demo")],
    ]  # fmt: skip
    with contextlib.redirect_stdout(sys.stderr):
        for call in calls:
            if run(call):
                raise SystemExit(1)
    return {
        "public": scratch / "private.report.html", "report": scratch / "evaluation" / "report.html",
        "demo": scratch / "demo" / "index.html",
    }  # fmt: skip


def write(path: Path, texts: list[str]) -> None:
    path.write_bytes(b"".join(orjson.dumps({"text": text}) + b"\n" for text in texts))


if __name__ == "__main__":
    sys.exit(main())

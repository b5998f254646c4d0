"""Public text that the dependencies ship: gensim's wheel carries news articles and an extract of an encyclopedia."""

from __future__ import annotations

import bz2
import functools
import importlib
from collections.abc import Iterator
from typing import Any

from corpusveil.errors import PackageError

ARTICLES = 1000
_WIKI = "enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2"


def of_gensim(module: str) -> Any:
    """Return a module of gensim. Raises UserError where gensim is not installed, as by default on Python 3.14."""
    try:
        return importlib.import_module(f"gensim.{module}")
    except ModuleNotFoundError:
        raise PackageError(
            "Training, the demo and the default connector words need gensim, which has no wheel for Python 3.14: use "
            "Python 3.11, 3.12 or 3.13, or have pip build it: pip install 'corpusveil[train]'."
        ) from None


@functools.cache
def news() -> tuple[str, ...]:
    with open(of_gensim("test.utils").datapath("lee_background.cor"), encoding="utf-8") as file:
        return tuple(line.strip() for line in file)


@functools.cache
def encyclopedia() -> tuple[str, ...]:
    """Return articles of an encyclopedia, plain text without markup; redirections are short ones."""
    wiki = of_gensim("corpora.wikicorpus")
    texts: list[str] = []
    with bz2.open(of_gensim("test.utils").datapath(_WIKI)) as dump:
        for _, text, _ in wiki.extract_pages(dump, ("0",)):
            if len(texts) == ARTICLES:
                break
            texts.append(wiki.filter_wiki(text))
    return tuple(texts)


def public_texts() -> Iterator[str]:
    """Yield all of it, as training text for collocations and vectors."""
    yield from news()
    yield from encyclopedia()

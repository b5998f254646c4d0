"""Public text that the dependencies ship: gensim's wheel carries news articles and an extract of an encyclopedia."""

from __future__ import annotations

import bz2
import functools
from collections.abc import Iterator

ARTICLES = 1000
_WIKI = "enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2"


@functools.cache
def news() -> tuple[str, ...]:
    """Return 300 news articles of about 200 words."""
    from gensim.test.utils import datapath

    with open(datapath("lee_background.cor"), encoding="utf-8") as file:
        return tuple(line.strip() for line in file)


@functools.cache
def encyclopedia() -> tuple[str, ...]:
    """Return articles of an encyclopedia, plain text without markup; redirections are short ones."""
    from gensim.corpora.wikicorpus import extract_pages, filter_wiki
    from gensim.test.utils import datapath

    texts: list[str] = []
    with bz2.open(datapath(_WIKI)) as dump:
        for _, text, _ in extract_pages(dump, ("0",)):
            if len(texts) == ARTICLES:
                break
            texts.append(filter_wiki(text))
    return tuple(texts)


def public_texts() -> Iterator[str]:
    """Yield all of it, as training text for collocations and vectors."""
    yield from news()
    yield from encyclopedia()

"""Capitalised runs as names: recall of planted names, what the rule cannot see, and equal results in any batch."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from faker import Faker

from corpusveil import demo_space
from corpusveil.recognizers.names import Names
from corpusveil.text.tokens import Tokenizer, Tokens
from corpusveil.text.word_table import WordTable

LOCALES = ["en_US", "en_GB", "de_DE", "fr_FR", "es_ES", "it_IT", "pl_PL", "tr_TR", "sv_SE", "cs_CZ", "ru_RU"]
TEMPLATES = [
    "I spoke with {} about the order last week.",
    "please ask {} to call me back",
    "It is broken, please help. Thanks, {}",
    "Did {} say so? He did.",
]


@pytest.fixture(scope="module")
def names() -> Names:
    return Names(demo_space())


def _tokens(names: Names, texts: list[str]) -> Tokens:
    words = names.space.vocabulary
    return Tokenizer(WordTable.build(words.text, words.offsets)).tokenize(texts)


def found(names: Names, texts: list[str]) -> list[list[str]]:
    tokens = _tokens(names, texts)
    spans = names(tokens)
    lists: list[list[str]] = [[] for _ in texts]
    for start, end in zip(spans.starts, spans.ends, strict=True):
        document = int(np.searchsorted(tokens.documents, start, side="right")) - 1
        lists[document].append(tokens.data[start:end].tobytes().decode())
    return lists


def _planted(change: str = "__str__") -> list[tuple[str, str]]:
    rows = []
    for locale in LOCALES:
        faker = Faker(locale)
        faker.seed_instance(5)
        for k in range(60):
            name = getattr(f"{faker.first_name()} {faker.last_name()}", change)()
            rows.append((name, TEMPLATES[k % len(TEMPLATES)].format(name)))
    return rows


def _recall(names: Names, rows: list[tuple[str, str]]) -> float:
    lists = found(names, [text for _, text in rows])
    return sum(any(name in span for span in spans) for (name, _), spans in zip(rows, lists, strict=True)) / len(rows)


def test_names_inside_sentences_are_found(names: Names) -> None:
    assert _recall(names, _planted()) > 0.93


def test_without_capitals_or_in_capitals_alone_no_name_is_found(names: Names) -> None:
    assert _recall(names, _planted("lower")) == 0
    assert _recall(names, _planted("upper")) == 0


def test_few_runs_of_public_text_without_names_are_taken_for_names(names: Names) -> None:
    text = (
        "The delivery was late again. I've called twice, and They said that it's on its way! However, nothing came. On "
        "Monday I wrote to the office in London. In May the price went up. She'll see; That's all. I am English, and "
        "the President of the United States met the Prime Minister there. We had a good time in New York. "
    )
    assert found(names, [text * 20]) == [[]]


def test_runs_end_where_names_end(names: Names) -> None:
    cases = {
        "we met Zorblat Quuxley, who left": ["Zorblat Quuxley"],
        "we met J. R. Zorblat there": ["J. R. Zorblat"],
        "we met Anne-Zorblat Quux-Smith there": ["Anne-Zorblat Quux-Smith"],
        "it was Zorblat's, not O’Quuxley’s": ["Zorblat's", "O’Quuxley’s"],
        "Smith Zorblat\nQuuxley left": ["Smith Zorblat", "Quuxley"],
        "we met Şazime Güçlüoğlu and Řehoř": ["Şazime Güçlüoğlu", "Řehoř"],
        "ask for ZORBLAT or NATO": [],
        "J": [],
        "": [],
    }
    for (text, expected), spans in zip(cases.items(), found(names, list(cases)), strict=True):
        assert spans == expected, text


def test_what_is_found_in_a_document_depends_on_it_alone(names: Names) -> None:
    texts = [text for _, text in _planted()[::7]] + ["Zorblat", "Quuxley", "...", ""]
    together = found(names, texts)
    assert together == [found(names, [text])[0] for text in texts]
    assert found(pickle.loads(pickle.dumps(names)), texts) == together


def test_a_rare_word_counts_by_public_counts_alone(names: Names) -> None:
    counts = names.space.counts
    assert counts is not None
    order = np.argsort(counts)
    rare, usual = (names.space.word(int(order[place])).capitalize() for place in (0, -200))
    assert found(names, [f"we met {rare} there", f"we met {usual} there"]) == [[rare], []]

"""Recognizers by name: functions, files of terms, what is missing; nothing private in names and sentences."""

from __future__ import annotations

import contextlib
import hashlib
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from corpusveil import load_space, registry
from corpusveil.recognizers.registry import RECOGNIZERS, named
from corpusveil.recognizers.terms import ListedTerms
from corpusveil.spaces import Space
from corpusveil.text.folding import composed_text
from corpusveil.text.spans import Declared, OfFunction, Recognizer, Spans
from corpusveil.text.tokens import Tokenizer, Tokens
from tests.calls import refused

TOKENIZER = Tokenizer.of_words(["a"])
TERMS = "bob smith\nproduct\tFlux Ω\n\n名\t田中\n".replace("名", "person")


def found(texts: Sequence[str], recognizer: Recognizer) -> list[list[tuple[str, str]]]:
    """Return kind and text of what is found in each document."""
    tokens = TOKENIZER.tokenize(texts)
    spans = recognizer(tokens)
    lists: list[list[tuple[str, str]]] = [[] for _ in texts]
    for start, end, kind in zip(spans.starts, spans.ends, spans.kinds, strict=True):
        document = int(np.searchsorted(tokens.documents, start, side="right")) - 1
        lists[document].append((spans.names[kind], tokens.data[start:end].tobytes().decode()))
    return lists


@pytest.fixture(scope="module")
def space() -> Space:
    return load_space("en")


def scripted(texts: list[str]) -> list[list[tuple[int, int, str]]]:
    return [[(text.index("Ömer"), text.index("Ömer") + 4, "name")] if "Ömer" in text else [] for text in texts]


scripted.version = "7"  # type: ignore[attr-defined]


@pytest.fixture
def terms(tmp_path: Path) -> str:
    path = tmp_path / "terms.tsv"
    path.write_text(TERMS, encoding="utf-8")
    return str(path)


def test_names_make_recognizers(space: Space) -> None:
    """What is found by a name, and which version found it."""
    assert found(["call +49 30 901820"], named("rules").make(space)) == [[("phone", "+49 30 901820")]]
    assert found(["Dear Anna Smith,"], named("names").make(space)) == [[("name", "Anna Smith")]]
    assert named("rules").identity.startswith("rules/3, phonenumbers ")
    assert named("names").identity == "names/2"


def test_a_function_is_a_recognizer_by_its_name_or_itself(
    space: Space, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_rules.py").write_text("def f(texts):\n    return [[(0, 2, 'code')] for text in texts]\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    assert found(["ab c", "xyz"], named("own_rules:f").make(space)) == [[("code", "ab")], [("code", "xy")]]
    assert named("own_rules:f").identity == "own_rules:f"
    assert found(["ich, Ömer, …", "", "y"], named(scripted).make(space)) == [[("name", "Ömer")], [], []]
    assert named(scripted).identity == f"{__name__}:scripted/7"


def test_a_name_that_is_none_is_no_file_and_the_nearest_is_told(space: Space, tmp_path: Path) -> None:
    (tmp_path / "people").write_text("Bob Smith\n")
    for name, near in (("ruels", "rules"), ("presidoi", "presidio"), ("name", "names"), ("names,rules", "terms:PATH")):
        for call in (lambda name=name: named(name).make(space), lambda name=name: named(name)):
            with refused("wrong-setting", name, near):
                call()
    with contextlib.chdir(tmp_path):
        for name in ("terms:people", "./people", f"terms:{tmp_path}/people"):
            assert found(["hi bob smith"], named(name).make(space)) == [[("name", "bob smith")]], name
            assert named(name).identity == "terms/2"
            assert named(name).mark == hashlib.sha256(b"Bob Smith\n").hexdigest()


def test_a_kind_that_is_not_declared_is_refused_when_it_appears_and_no_text_is_quoted(
    space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A typing error in a declaration would mask what should be drawn; a kind may be made of the text."""

    def find(texts: list[str]) -> list[list[tuple[int, int, str]]]:
        return [[(0, 2, "hash" if text == "ab c" else "hashh")] for text in texts]

    def of_text(tokens: Tokens) -> Spans:
        one = np.zeros(1, np.int64)
        return Spans(one, one + 2, one, ("canary",))

    for name, made in (("typed", OfFunction("own", find)), ("quoting", of_text)):
        declared = Declared(lambda _, made=made: made, 1, ("hashh",))
        monkeypatch.setitem(RECOGNIZERS.entered, name, declared)
    assert found(["xy"], named("typed").make(space)) == [[("hashh", "xy")]]
    with refused("wrong-setting", "typed", "it declares hashh;"):
        found(["xy", "ab c"], named("typed").make(space))
    with refused("wrong-setting", "quoting") as caught:
        found(["my canary"], named("quoting").make(space))
    assert "canary" not in str(caught.value)


def test_what_cannot_be_imported_is_named(space: Space) -> None:
    """A recognizer that is missing masks nothing, so the call ends."""
    for name in ("no_such_module:f", "json:no_such_function", "json:__doc__"):
        with refused("wrong-setting", name):
            named(name).make(space)


def test_terms_are_found_in_any_case_as_words(space: Space, terms: str) -> None:
    recognizer = named(terms).make(space)
    text = "Bob\nSMITH, bob smithson, “BOB SMITH”, FLUX ω; 田中さん; abob smith; İ bob smith"
    expected = [
        ("name", "Bob\nSMITH"), ("name", "BOB SMITH"), ("product", "FLUX ω"), ("person", "田中"), ("name", "bob smith")
    ]  # fmt: skip
    texts = [text, "bob", " smith", "Flux ", "Ω"]
    assert found(texts, recognizer) == [expected, [], [], [], []]
    assert found(texts[::-1], recognizer) == [[], [], [], [], expected]


def test_terms_are_found_however_quotes_hyphens_blanks_and_letters_are_encoded(space: Space, tmp_path: Path) -> None:
    (tmp_path / "t").write_text("Zoë O'Dell-Groß\n")
    recognizer = named(str(tmp_path / "t")).make(space)
    for text in (
        "Zoë O’Dell-Groß", "Zoe\u0308 O'Dell-Groß", "Zoë\r\nO'Dell-Groß", "Zoë  O'Dell-Groß", "Zoë\n> > O'Dell-Groß",
        "Zoë O'Dell\u2011Groß", "Zo\u00adë O'De\u200bll-Groß", "ZOË O'DELL-GROSS", "ZOË\u202fO`DELL‐GROẞ",
        "Zoë O＇Dell-Groß", "Zoë-O'Dell Groß", "zoë_o'dell_groß", "Zoë O'Dell-\n> Groß", "Zoë O'Dell – Groß",
        "Zoë\n * O'Dell―Groß",
    ):  # fmt: skip
        (spans,) = found([f"so {text}, yes"], recognizer)
        assert [span for _, span in spans] == [composed_text(text)], ascii(text)
    assert found(["Zoë O'Dell-Grossi", "AZoë O'Dell-Groß", "Zoë O'DellGroß"], recognizer) == [[], [], []]
    for term, texts in {
        "O'Neill": ["O`Neill", "O´NEILL", "O'Neill"], "Yıldız": ["YILDIZ", "yıldız", "Yildiz"],
        "İpek": ["ipek", "İPEK", "IPEK", "i\u0307pek"],
        "Béla Dvořák": ["Bela Dvorak", "Béla DVORAK"], "Jose Pena": ["José Peña"],
        "Jørgensen": ["Jorgensen", "JOERGENSEN"],
        "Böttcher": ["Bottcher", "boettcher"], "Sơn": ["SƠN"], "Łukasik": ["Lukasik"],
        "Meyer": ["Meyers", "MEYER"], "Red Falcon": ["Red Falcons", "red_falcon", "Red—Falcon"], "B-12": ["b‑12"],
        "Çelik": ["Çeli\u0307k"], "Ελένη Ρήγα": ["ΕΛΕΝΗ ΡΗΓΑ"], "Μαΐρη": ["ΜΑΙΡΗ"],
        "Mr": ["Mr."], "C++": ["C++"], "@$$": ["@$$"], ".NET": [".NET"],
    }.items():  # fmt: skip
        (tmp_path / "t").write_text(f"{term}\n")
        recognizer = named(str(tmp_path / "t")).make(space)
        assert [[span for _, span in spans] for spans in found(texts, recognizer)] == [
            [text.rstrip("s.")] for text in texts
        ]
    (tmp_path / "t").write_text("Thi\nMark\nB-12\nRed Falcon\nSơn\n")
    assert found(["My son. This one marks b 12 red, falcon", "12-34"], named(str(tmp_path / "t")).make(space)) == [
        [],
        [],
    ]


def test_functions_get_simple_quotes_hyphens_and_blanks_and_their_places_are_those_of_the_text(space: Space) -> None:
    def ids(texts: list[str]) -> list[list[tuple[int, int, str]]]:
        return [[(*match.span(), "id") for match in re.finditer("A-1 'b'", text)] for text in texts]

    ids.version = "1"  # type: ignore[attr-defined]
    texts = ["é A-1 'b'", "é A‑1\xa0’b’ 😀", "é \u200bA\u00ad-1 'b'"]
    assert found(texts, named(ids).make(space)) == [[("id", "A-1 'b'")], [("id", "A‑1\xa0’b’")], [("id", "A-1 'b'")]]


def test_terms_that_overlap_are_all_found(space: Space, tmp_path: Path) -> None:
    """No part of a term stays because it is in another one."""
    (tmp_path / "t").write_bytes("\ufeffa b\r\nb c\r\nname\tb c\r\n".encode())
    assert found(["a b c"], named(str(tmp_path / "t")).make(space)) == [[("name", "a b"), ("name", "b c")]]


@pytest.mark.parametrize("row", [b"Secret Kind\tBob", b"name\t", b"\tBob", b"\xffBob", b"\xc2\xad\xe2\x80\x8b"])
def test_a_row_that_cannot_be_used_is_named_and_not_quoted(space: Space, tmp_path: Path, row: bytes) -> None:
    path = tmp_path / "terms"
    path.write_bytes(b"Alice\n" + row + b"\n")
    with refused("unsuitable-data", path, "row 2") as error:
        named(str(path)).make(space)
    assert not any(word in str(error.value) for word in ("Bob", "Alice", "Secret"))


def test_no_file_and_no_terms_are_refused(space: Space, tmp_path: Path) -> None:
    with refused("missing-file", "none.txt"):
        named(str(tmp_path / "none.txt")).make(space)
    (tmp_path / "empty").write_text("\n\n")
    with refused("unsuitable-data", "empty"):
        named(str(tmp_path / "empty")).make(space)


def test_a_finder_that_is_not_installed_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "points", lambda _: {})
    for name in ("rules", "names", "presidio"):
        with refused("missing-package", name, "pip install 'corpusveil[spans]'"):
            named(name)


OTHER_FORMS = (
    "jdoe\tx\tJohn Doe", '"Quinn, Ada"', "Quinn;Ada", "Quinn,7", '{"name": "Quinn"}', '["Quinn"]', "name=Quinn",
    "<b>Quinn</b>", "Quinn | Ada", ",Quinn", "Quinn,", "a\tb\tc", "Quinn\x01",
)  # fmt: skip


def test_a_list_in_another_form_is_refused_by_its_row_and_quotes_nothing(tmp_path: Path) -> None:
    """It would mask nothing, with status 0: CSV, JSON, quotes, markup, further columns."""
    for line in OTHER_FORMS:
        with refused("unsuitable-data", "terms.txt, row 2") as caught:
            ListedTerms.of_bytes(f"Ada Quinn\n{line}\n".encode(), str(tmp_path / "terms.txt"))
        assert "Quinn" not in str(caught.value), line
    for line in ("O'Neil-Smith", "Smith, John", "St. Mary & Sons", "product\tGizmo 7+", "naïve café", "7-Eleven"):
        assert ListedTerms.of_bytes(line.encode(), "x").terms


def test_a_column_of_names_before_the_tab_is_no_list_of_kinds(tmp_path: Path) -> None:
    """Each kind is written into the release: a login before each name would be, too."""
    lines = "".join(f"login{number}\tperson {number}\n" for number in range(21))
    with refused("unsuitable-data", "terms.txt", "21"):
        ListedTerms.of_bytes(lines.replace("login", "user").encode(), "terms.txt")
    (tmp_path / "terms.txt").write_text("person\tAda Quinn\nplace\tNowhere\nAda\n")
    said = named(f"terms:{tmp_path}/terms.txt").said
    assert "3 terms" in said
    assert "name, person, place" in said

"""The built-in rules: each kind with valid, invalid and boundary cases, planted identifiers, and few false alarms."""

from __future__ import annotations

import calendar
import importlib
import ipaddress
import random
import sys
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import phonenumbers
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stdnum import iban, luhn

from corpusveil.text.spans import Recognizer, Spans, covered
from corpusveil.text.tokens import Tokenizer, Tokens
from corpusveil_spans import rules as rules_module
from corpusveil_spans.rules import NAMES, REGIONS, _iban_lengths, _package, rules
from tests.calls import refused, texts_of

TOKENIZER = Tokenizer.of_words(["the", "born", "de89"])
Found = list[tuple[str, str]]

CASES: dict[str, Found] = {
    # phones
    "call +49 (0)30 1234-5678 now": [("phone", "+49 (0)30 1234-5678")],
    "at +12125550123, or": [("phone", "+12125550123")],
    "(555) 123-4567 or 555-123-4567 or 212.555.0123": [
        ("phone", "(555) 123-4567"), ("phone", "555-123-4567"), ("phone", "212.555.0123")
    ],
    "ring (020 7946 0958)": [("phone", "020 7946 0958")],
    "call 0176\u00a012345678": [("phone", "0176\u00a012345678")],
    "06 12 34 56 78": [("phone", "06 12 34 56 78")],
    "8 (912) 345-67-89": [("phone", "8 (912) 345-67-89")],
    "Tel.: 612 34 56 78": [("phone", "612 34 56 78")],
    "the number 612 34 56 78": [],
    # dates are none, but numbers after them are
    "call by 24.12.2023 or 24/12/23, phone 1999-06-01 at 9": [],
    "tel 07-11-2022 18:40, call us 2019/2020, 07.11.2022 18:40": [],
    "call +1 201 555 0123 on 7.11.2022": [("phone", "+1 201 555 0123")],
    "phone 01.02.30.40.50, 24/12/2023 943 4769": [("phone", "01.02.30.40.50"), ("phone", "24/12/2023 943 4769")],
    "+49 12": [],
    "in 1998 1999 2000 2001 and 1998-1999 (30 min)": [],
    "12-555-123-4567-8": [],
    "id_2125550123 2125550123_x": [],
    "415-555-0199 or call 943 476 5919": [("phone", "415-555-0199"), ("phone", "943 476 5919")],  # ids by their digits
    "call about order 7361928, or phone, SSN 536-90-4399": [("national_id", "536-90-4399")],
    "order 7361928 9 times, 7361928.9 m": [],
    "RUT 7361928-9, NHS 943 476 5919": [("national_id", "7361928-9"), ("national_id", "943 476 5919")],
    # IBANs
    "to DE89 3704 0044 0532 0130 00 today": [("iban", "DE89 3704 0044 0532 0130 00")],
    "de89370400440532013000": [("iban", "de89370400440532013000")],
    "GB82 WEST 1234 5698 7654 32, please": [("iban", "GB82 WEST 1234 5698 7654 32")],
    "GB82 WEST 1234 5698 7654 33": [],
    # cards
    "4111 1111 1111 1111": [("card", "4111 1111 1111 1111")],
    "4111-1111-1111-1112": [],
    "378282246310005.": [("card", "378282246310005")],
    "x4111111111111111": [],
    # national ids
    "SSN 536-90-4399.": [("national_id", "536-90-4399")],
    "536 90 4399 000-12-3456": [],
    "12345678Z 12.345.678-Z 12345678A": [("national_id", "12345678Z"), ("national_id", "12.345.678-Z")],
    "RSSMRA85T10A562S": [("national_id", "RSSMRA85T10A562S")],
    "131052-308T 131052-308U": [("national_id", "131052-308T")],
    "756.9217.0769.85": [("national_id", "756.9217.0769.85")],
    "85.07.30-033.28": [("national_id", "85.07.30-033.28")],
    "(86095742719) 86095742718": [("national_id", "86095742719")],
    # IP addresses
    "from 192.168.1.1:8080, 192.168.1.256 or 1.2.3.4.5": [("ip", "192.168.1.1")],
    "fe80::1 and 2001:db8::ff00:42:8329.": [("ip", "fe80::1"), ("ip", "2001:db8::ff00:42:8329")],
    "12:30:45 std::vector abc::def a::b [Enum]::Get fe80::1::2": [],
    "call +31(0)082 122830 whenever": [("phone", "+31(0)082 122830")],
    # dates of birth
    "born on 3 May 1980 in": [("date_of_birth", "3 May 1980")],
    "D.O.B. 05/03/80; geboren am 3. März 1980": [("date_of_birth", "05/03/80"), ("date_of_birth", "3. März 1980")],
    "née le 1er août 1975": [("date_of_birth", "1er août 1975")],
    "nacido el 3 de mayo de 1980": [("date_of_birth", "3 de mayo de 1980")],
    "birth date: 1980-05-03": [("date_of_birth", "1980-05-03")],
    "we met on 3 May 1980": [],
    "born to run. 3 May 1980": [],
    "born in 3 weeks": [],
    # contacts
    "see example.com/path?q=1.": [("contact", "example.com/path?q=1")],
    "www2.example.co.uk": [("contact", "www2.example.co.uk")],
    "foo.it foo.it/x yes.It node.js a.m. e.g. i.e. U.S. run.me() x.com_y": [("contact", "foo.it/x")],
    "user＠example.com": [("contact", "user＠example.com")],
    "邮件ｕｓｅｒ＠ｅｘａｍｐｌｅ．ｃｏｍ。": [("contact", "ｕｓｅｒ＠ｅｘａｍｐｌｅ．ｃｏｍ")],
    'he said "hi" to "john smith"@example.org!': [("contact", '"john smith"@example.org')],
    '"hello"@bob': [],
    # one after the other, and what overlaps
    "DE89370400440532013000 4111111111111111 (212) 555-0123": [
        ("iban", "DE89370400440532013000"), ("card", "4111111111111111"), ("phone", "(212) 555-0123")
    ],
    "": [],
}  # fmt: skip


def found(texts: Sequence[str], recognizer: Recognizer = rules) -> list[Found]:
    """Return kind and text of what is found in each document, and see that each lies in one."""
    tokens = TOKENIZER.tokenize(texts)
    spans = recognizer(tokens)
    lists: list[Found] = [[] for _ in texts]
    for start, end, kind in zip(spans.starts, spans.ends, spans.kinds, strict=True):
        document = int(np.searchsorted(tokens.documents, start, side="right")) - 1
        assert tokens.documents[document] <= start < end <= tokens.documents[document + 1]
        lists[document].append((spans.names[kind], tokens.data[start:end].tobytes().decode()))
    return lists


def test_each_kind_is_found_where_it_is_valid_and_stands_alone() -> None:
    for (text, expected), spans in zip(CASES.items(), found(list(CASES)), strict=True):
        assert spans == expected, text


def test_an_identifier_with_a_checksum_or_a_plus_ends_at_any_mark_and_others_at_commas() -> None:
    checked = [("iban", "DE89370400440532013000"), ("card", "4111 1111 1111 1111"), ("card", "4111111111111111"),
               ("phone", "+49 170 1234567"), ("ip", "10.20.30.40")]  # fmt: skip
    for kind, value in checked:
        for before, behind in (("1,", ",2"), ("1/", "/24"), ("1-", "-2"), ("(", ")"), ("7;", ";"), ("x=1,", ",a")):
            (spans,) = found([before + value + behind])
            assert [of for of, span in spans if value in span] == [kind], (before, value, behind)
        assert sum(value in span for _, span in found([f"{value},{value}"])[0]) == 2, value
    for text in ("9,536-90-4399,x", "536-90-4399/2", "2,0176 12345678,3", "Tel. 0301234567,5"):
        assert found([text])[0], text
    for text in ("1.10.20.30.40", "10.20.30.40.5", "1-536-90-4399-2", "v1,234,567", "2,345 678,901"):
        assert found([text]) == [[]], text


def test_no_half_of_two_phone_numbers_side_by_side_is_left() -> None:
    """Of all countries with + and 00, and as they are written at home."""
    for region in sorted(phonenumbers.SUPPORTED_REGIONS):
        number = phonenumbers.example_number_for_type(region, phonenumbers.PhoneNumberType.MOBILE)
        if number is None:
            continue
        plus = phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.INTERNATIONAL)
        home = phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.NATIONAL)
        for own in (plus, plus.replace("+", "00"), *([f"tel. {home}"] if region in REGIONS.split() else [])):
            for between in (" ", "/", " / ", ", ", " - "):
                text = f"{own}{between}{own}"
                (spans,) = found([text])
                left = sum(map(str.isdigit, text)) - sum(map(str.isdigit, "".join(span for _, span in spans)))
                assert left == 0, (region, text, spans)
    assert found(["+49 170 123 3456789 3456789"]) == [[("phone", "+49 170 123 3456789 3456789")]]


def test_dates_of_birth_are_found_as_databases_write_them() -> None:
    dates = ("1984-03-09", "09.03.84", "84-03-09", "19840309", "09031984", "840309", "3/9/1984", "09-MAR-1984")
    named = ("9.Mar.1984", "1984-MAR-09", "09MAR1984", "9mar84", "09-MAR-84", "1984MAR09", "MAR091984", "9 March '84")
    bare = ("09 03 84", "9 3 84", "84 03 09", "090384", "030984", "03091984", "9 March 84", "März 84", "9 aout 45")
    other = ("9 MÄRZ 1984", "9 AOÛT 1969", "9 maart 1984", "9. desember 1984", "9 Ağustos 1984", "April of 87")
    for date in (*dates, *named, *bare, *other, "09 03 1984", "9.III.1984", "9/3-84"):
        for form in (
            "DOB {}",
            "dob={}",
            "dateOfBirth: {}",
            '"dob": "{}"',
            "birth_date: {}",
            '{{"birthDate":"{}"}}',
            "geb. {}",
            "DOB|{}|",
        ):
            assert found([form.format(date)]) == [[("date_of_birth", date)]], form.format(date)
    assert found(["born 1234567, DOB 84031", "dob=20241399", "born 3 May 20 minutes"]) == [[], [], []]


def test_numbers_of_persons_are_found_after_their_word_without_a_checksum() -> None:
    for text, value in {
        "ssn={}": "536228726", "MRN#{}": "4829133", "mrn {},": "00482913",
        "my SSN is {}.": "987-65-4321", "social security number: {}": "536904399",
        "BSN {}": "111222333", "nino={};": "AB123456C", "NI number: {}": "AB 12 34 56 C", "PAN {}": "ACUPA7085R",
        "passport no. {}, valid": "L8471209", '{{"ssn":"{}"}}': "536228726", "ssn# {}": "536904399",
    }.items():  # fmt: skip
        assert found([text.format(value)]) == [[("national_id", value)]], text
    for text in (
        "the security of 12 states",
        "a pan of 30 cm, 1200000 sold",
        "insurance 2019-2020",
        "a sin in 1984",
        "security patch KB5034441",
        "the sin of 1234567 people",
    ):
        assert found([text]) == [[]], text


def test_addresses_that_are_spelled_for_readers_are_contacts() -> None:
    for address in (
        "anna.k [at] example [dot] com", "anna.k(at)example.com", "anna.k at example dot co dot uk",
        "anna@example[.]com", "anna.k AT example DOT com", "anna.k[@]example.com", "anna.k @ example.com",
        "j.doe=40mail.example.org", "jdoe\\u0040example.co.uk", "j-doe&#64;example.net", "j.doe @example.org",
        "jdoe@ example.org", "anna.k%40example.com", "anna { at } example { dot } org", "anna at gmail dot com",
    ):  # fmt: skip
        for text in (f"write to {address} soon", f"write to {address}"):
            tokens = TOKENIZER.tokenize([text])
            whole, _ = covered(tokens, rules(tokens))
            assert texts_of(whole)[2] == address, address
    for text in (
        "meet at noon at the dot com boom",
        "I am at home (at last), at work",
        "3 apples @ 2 euros",
        "2=40, and 3\\u0040",
        "a (dot) b",
    ):
        assert found([text]) == [[]], text


def test_a_kind_with_a_checksum_is_the_kind_of_a_span_however_long_a_guess_is() -> None:
    def guess(tokens: Tokens) -> Spans:
        return Spans(np.array([0]), np.array([tokens.data.size]), np.array([0]), ("name",))

    for text, kind in (("Ada Example DE89370400440532013000", "iban"), ("Ada 4111111111111111", "card")):
        tokens = TOKENIZER.tokenize([text])
        whole, marked = covered(tokens, Spans.joined(recognize(tokens) for recognize in (guess, rules)))
        assert [marked.names[of] for of in marked.kinds] == [kind]
        assert texts_of(whole) == [text]


@settings(deadline=None)
@given(st.lists(st.text(alphabet='0129Zé@.:-+/() "\u2011＠bornDE89com\n💥'), max_size=4))
def test_any_text_is_read_in_any_batch(texts: list[str]) -> None:
    assert found(texts) == [found([text])[0] for text in texts]


def _digits(rng: random.Random, many: int) -> str:
    return "".join(rng.choices("0123456789", k=many))


def _valid(module: str, pattern: Callable[[random.Random], str]) -> Callable[[random.Random], str]:
    is_valid = importlib.import_module(f"stdnum.{module}").is_valid

    def draw(rng: random.Random) -> str:
        while not is_valid(number := pattern(rng)):
            pass
        return number

    return draw


def _phone(rng: random.Random) -> str:
    region = rng.choice(["US", "GB", "DE", "FR", "NL", "BE", "AT", "AU", "ES", "PL", "PT", "DK"])
    number = phonenumbers.example_number_for_type(region, phonenumbers.PhoneNumberType.MOBILE)
    number.national_number = number.national_number // 10000 * 10000 + rng.randrange(10000)
    national = region not in {"ES", "PL", "PT", "DK"}  # which begin with no 0
    return phonenumbers.format_number(number, rng.choice([0, 1, 2] if national else [0, 1]))


def _iban(rng: random.Random) -> str:
    country, rest = rng.choice([("DE", _digits(rng, 18)), ("GB", "WEST" + _digits(rng, 14)), ("AT", _digits(rng, 16))])
    number = country + iban.calc_check_digits(f"{country}00{rest}") + rest
    return iban.format(number) if rng.random() < 0.5 else number


def _card(rng: random.Random) -> str:
    number = rng.choice("456") + _digits(rng, 14)
    number += luhn.calc_check_digit(number)
    return rng.choice(["", " ", "-"]).join(number[k : k + 4] for k in range(0, 16, 4))


IDS = [
    _valid("us.ssn", lambda rng: f"{_digits(rng, 3)}-{_digits(rng, 2)}-{_digits(rng, 4)}"),
    _valid("de.idnr", lambda rng: _digits(rng, 11)), _valid("pl.pesel", lambda rng: _digits(rng, 11)),
    _valid("br.cpf", lambda rng: f"{_digits(rng, 3)}.{_digits(rng, 3)}.{_digits(rng, 3)}-{_digits(rng, 2)}"),
    _valid("es.dni", lambda rng: _digits(rng, 8) + rng.choice("TRWAGMYFPDXBNJZSQVHLCKE")),
    _valid("ch.ssn", lambda rng: f"756.{_digits(rng, 4)}.{_digits(rng, 4)}.{_digits(rng, 2)}"),
    _valid("in_.aadhaar", lambda rng: f"{_digits(rng, 4)} {_digits(rng, 4)} {_digits(rng, 4)}"),
]  # fmt: skip


def _ip(rng: random.Random) -> str:
    return str(ipaddress.ip_address(rng.getrandbits(rng.choice([32, 128]))))


def _birth(rng: random.Random) -> str:
    day, month, year = rng.randint(1, 28), rng.randint(1, 12), rng.randint(1930, 2015)
    name, numerals = calendar.month_name[month], f"{year}-{month:02}-{day:02}"
    return rng.choice([f"{day} {name} {year}", f"{name} {day}, {year}", numerals, f"{day}/{month}/{year}"])


def _contact(rng: random.Random) -> str:
    name = "".join(rng.choices("abcdefgh", k=6))
    return rng.choice([f"{name}.com", f"{name}.de/page", f"{name}＠example.org", f'"{name} {name}"@example.org'])


PLANTED: dict[str, tuple[Callable[[random.Random], str], list[str], float]] = {
    "phone": (_phone, ["please ring {} today", "My number is {}."], 0.95),
    "iban": (_iban, ["it was paid to {} on Monday", "IBAN: {}"], 1.0),
    "card": (_card, ["the card {} was charged", "Card no. {}, expired"], 1.0),
    "national_id": (lambda rng: rng.choice(IDS)(rng), ["the id is {} in the file", "(no. {})"], 0.99),
    "ip": (_ip, ["a request from {} failed", "host {}, down"], 1.0),
    "date_of_birth": (_birth, ["she was born on {} there", "DOB: {}"], 1.0),
    "contact": (_contact, ["write to {} instead", "It is {}, I think."], 1.0),
}


def test_two_thousand_planted_identifiers_are_found() -> None:
    rng = random.Random(7)
    assert set(PLANTED) == set(NAMES)
    for kind, (draw, forms, least) in PLANTED.items():
        planted = [draw(rng) for _ in range(290)]
        lists = found([rng.choice(forms).format(identifier) for identifier in planted])
        hits = sum(
            any(identifier in span for of, span in spans if of == kind or kind == "national_id")
            for identifier, spans in zip(planted, lists, strict=True)
        )
        assert hits >= least * len(planted), (kind, hits)


def test_ordinary_numbers_raise_few_alarms() -> None:
    """Years, prices, dates, times, scores, ranges, ordinals, versions, ISBNs, and decimals between ordinary words."""
    rng = random.Random(3)
    shapes = [
        "####", "$#,###.##", "##/##/20##", "20##-##-##", "##:##:##", "#-#", "19##-19##", "#rd", "v#.##.#", "##%",
        "978-#-##-######-#", "#.###", "### ###", "A#-##", "#,###,###", "######", "##.##.20##", "p. ##-##", "#####-####",
        "1#### #### ####", "(19##)", "10^#", "#x####", "MP#", "R#D#",
    ]  # fmt: skip
    words = ["the", "price", "of", "this", "was", "about", "then,", "and", "we", "had", "more", "in", "it", "again."]
    pieces = [
        "".join(_digits(rng, 1) if sign == "#" else sign for sign in rng.choice(shapes))
        if rng.random() < 0.1
        else rng.choice(words)
        for _ in range(40_000)
    ]
    alarms = Counter(kind for spans in found([" ".join(pieces)]) for kind, _ in spans)
    assert alarms.total() <= 80, alarms  # of 4,000 numbers


def test_wrong_checksums_of_ibans_are_refused_in_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each ``DE00`` of a text of nothing else took 94 µs, because five lengths of it were handed to python-stdnum."""
    judged: list[str] = []
    monkeypatch.setattr(rules_module, "_is_valid", lambda _kind, text, _form: bool(judged.append(text)))
    assert found(["DE00 " * 1000]) == [[]]
    assert len(judged) < 1200


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "stdnum", None)
    _package.cache_clear()
    _iban_lengths.cache_clear()
    with refused("missing-package", "corpusveil[spans]") as error:
        found(["DE89 3704 0044 0532 0130 00"])
    assert "3704" not in str(error.value)

"""Built-in rules: IBANs, cards, national ids, IP addresses, phone numbers, dates of birth, contacts.

A compiled loop lists the few places that could be meant: groups of ASCII letters and digits, joined by a blank, hyphen,
full stop, slash or brackets, and what stands around some marks and words. Whether such a place is a number of its kind
is the word of python-stdnum and phonenumbers. A part of a longer chain (*12-555-123-4567-8*) is ignored.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import ipaddress
import itertools
import re
from importlib import metadata, resources
from typing import Any

import numpy as np

from corpusveil.errors import PackageError
from corpusveil.text.folding import plain
from corpusveil.text.spans import Declared, Spans
from corpusveil.text.tokens import Tokens
from corpusveil.text.word_table import WordTable
from corpusveil_spans.rule_loops import BIRTH, CALLED, CARD, CONTACT, IBAN, ID, IP, PHONE, pick, scan

IDS = """
us.ssn 3-2-4; us.itin 3-2-4; ca.sin 3-3-3; gb.nhs 3-3-4; de.idnr 11 2-3-3-3; fr.nif 13 2-2-3-3-3; dk.cpr 6-4; cz.rc 6-4
6-3; fr.nir 15 13-2 1-2-2-2-3-3-2; be.nn 11 2-2-2-3-2 6-3-2; nl.bsn 4-2-3 3-3-3; ch.ssn 13 3-4-4-2; at.vnr 4-6; pl.pesel
11; se.personnummer 10 12 6-4 8-4; no.fodselsnummer 11 6-5; fi.hetu +6-4 +11; is_.kennitala 10 6-4; ro.cnp 13; bg.egn
10; ee.ik 11; lt.asmens 11; lv.pvn 6-5; gr.amka 11; si.emso 13; es.dni +9 +8-1 +2-3-3-1; es.nie +9 +8-1; pt.cc +12
+8-1-3; it.codicefiscale +16; ie.pps +8 +9 +7-1 +7-2; br.cpf 11 3-3-3-2 9-2; cl.rut 1-3-3-1 2-3-3-1 7-1 8-1 +1-3-3-1
+2-3-3-1 +7-1 +8-1; ar.cuit 2-8-1; mx.curp +18; cn.ric 18 +18; kr.rrn 13 6-7; in_.aadhaar 4-4-4; my.nric 6-2-4; th.pin
1-4-5-2-1; tr.tckimlik 11; za.idnr 13 6-4-3; pk.cnic 5-7-1
"""
"""Modules of python-stdnum, and how many characters stand between the marks of their numbers, ``+`` if also letters.

A form without marks is listed where at most one in fifty numbers of that many digits is valid.
"""
REGIONS = "US GB DE FR NL BE CH AT SE FI IT AU IN JP BR ZA CN RU KR TR IE NZ IL"
"""Where phone numbers without a country's code are looked for; most of them begin with 0 or a bracket."""
PHONE_WORDS = """
call cell cellphone celular fax fon gsm handy mob mobil mobile móvil ph phone portable tel telefax telefon telefono
telefoon telephone teléfono téléphone telefone tfno tlf viber whatsapp
"""
BIRTH_WORDS = """
birth birthdate birthday born dateofbirth dob b doğum fødselsdato född geb geboortedatum geboren geburtsdatum geburtstag
nacida nacido nacimiento naissance nascida nascido nascimento nascita nata nato né née født urodzenia urodzona urodzony
"""
ID_WORDS = "bsn insurance mrn ni nif nino pan passport reisepass sin ssn steuernummer security tfn tin"
"""Words for numbers of persons that have no checksum, or nine bare digits."""
LABELS = """
auftrag auftragsnummer bestellnummer bestellung commande confirmation factura facture fattura id invoice item ordine
order pedido rechnung rechnungsnummer ref reference serial sku ticket tracking
"""
"""Words for other numbers: after one of these, an earlier word for phones says nothing of a number."""
MONTHS = """
jan feb mar apr may jun jul aug sep oct nov dec mär mai okt dez jän fév fev avr jui aoû déc ene abr ago dic gen mag giu
lug set ott out mrt mrz maa mei maj sty lut kwi cze lip sie wrz paź lis gru aou des oca şub nis haz tem ağu eyl eki
kas ara
"""
"""How months begin, in some languages."""
ENDINGS = """
com net org edu gov mil int info biz mobi coop aero io ai app dev xyz ae ar au be bg br ca ch ci cl cn cr cu cz de dk ec
ee eg eu fi fr ge gr hk hr hu ie ir jp ke kr kz lk lt lu lv mt mx ng nl nz ph pt ro ru sg sk tr tw ua uk uy vn za
"""
WORDLIKE = """
ac as at blog cat cc cloud club co id il in is it la law life live ma md me my news no online page pe pl pro py rs sa se
sh shop si site so store tech th to top tv us ve web wiki work world ws zone
"""
"""Endings of domains, of the IANA's list; those that are also words only before a path or after two dots."""

NAMES = ("iban", "card", "national_id", "ip", "phone", "date_of_birth", "contact")
_RANKS = {IBAN: 0, CARD: 1, IP: 2, ID: 4, PHONE: 5}
"""Of the same characters, the kind with the lowest rank that is valid is taken; a phone number after its word has 3."""
_AMERICAN = r"(?:1[-. ])?(?:\([2-9]\d\d\) ?|[2-9]\d\d[-.])\d{3}[-.]\d{4}"
_NO_ID = re.compile(rf"\d{{3}} \d\d \d{{4}}|\d{{7,9}}[ .]\d\d?|{_AMERICAN}")
"""Likelier columns of a table, a number and a count, a decimal, or a phone number: ids have other marks there."""
_IPV4 = re.compile(r"(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}")
_REST = re.compile(rb"(?:[-. /()]|\xc2\xa0){1,3}(\d+)")
"""More digits after a number."""
_DAY, _YEAR = "(?:0?[1-9]|[12][0-9]|3[01])", "(?:19|20)[0-9]{2}"
_DATE = re.compile(
    rf"(?:{_DAY}[./-]{_DAY}[./-]{_YEAR}|{_YEAR}[./-]{_DAY}[./-]{_DAY})(?: \d\d?)?|{_DAY}([./]){_DAY}\1\d\d|"
    rf"(?:{_DAY} )?{_DAY}[ ./-]{_YEAR}|{_YEAR}[/-]{_YEAR}"
)
"""No phone number, also after a word for these; an hour may follow."""
_AMERICAN_PHONE, _MARKS = re.compile(_AMERICAN), re.compile("[^0-9A-Za-z]")


@functools.cache
def _forms() -> dict[int, list[Any]]:
    """Return the modules of python-stdnum by forms: 3-2-4 is a number of base 20, below zero with letters."""
    modules: dict[int, list[Any]] = {}
    for entry in IDS.split(";"):
        name, *forms = entry.split()
        for form in forms:
            code = functools.reduce(lambda code, size: code * 20 + int(size), form.lstrip("+").split("-"), 0)
            modules.setdefault(-code if form[0] == "+" else code, []).append(_package(f"stdnum.{name}"))
    return modules


@functools.cache
def _package(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise PackageError("The recognizer 'rules' needs packages: pip install 'corpusveil[spans]'.") from None


@functools.cache
def _tables() -> tuple[Any, ...]:
    """Return the arguments of the loop that are the same at each call."""
    texts = (ID_WORDS, BIRTH_WORDS, LABELS, PHONE_WORDS, ENDINGS + WORDLIKE)
    *before, endings = (text.split() for text in texts)
    words = (WordTable.of_words(words).arrays for words in ([*itertools.chain(*before)], endings))
    return np.array(sorted(_forms()), np.int64), *np.cumsum([*map(len, before[:3])]).tolist(), *words


@functools.cache
def _iban_lengths() -> dict[str, int]:
    """Return the length of an IBAN by country, of python-stdnum's table: AD bban="4!n4!n12!c" has 24 characters."""
    lines = resources.files(_package("stdnum")).joinpath("iban.dat").read_text("utf-8").splitlines()
    forms = (re.match(r'([A-Z]{2}) .*bban="([^"]*)"', line) for line in lines)
    return {form[1]: 4 + sum(map(int, re.findall(r"(\d+)!", form[2]))) for form in forms if form}


@functools.cache
def _national() -> re.Pattern[str]:
    """Return what the digits of a valid phone number of a region are, with its prefix for calls within the country."""
    metadata = _package("phonenumbers.phonemetadata").PhoneMetadata
    patterns = []
    for region in REGIONS.split():
        about = metadata.metadata_for_region(region)
        kinds = (about.fixed_line, about.mobile, about.toll_free, about.shared_cost, about.voip, about.personal_number)
        numbers = "|".join(kind.national_number_pattern for kind in kinds if kind and kind.national_number_pattern)
        prefix = {"1": "1?", None: "(?=0)"}.get(about.national_prefix, about.national_prefix)
        patterns.append(f"{prefix}(?:{numbers})")
    return re.compile("|".join(patterns))


@functools.cache
def _patterns() -> dict[int, re.Pattern[bytes]]:
    """Return what is looked for around a word or a mark: the first group of a pattern, in UTF-8."""
    letter, day, year = r"[A-Za-z\x80-\xff]", r"[0-3]?\d(?:st|nd|rd|th|er|\.)?", r"(?:1[89]|20)\d\d"
    month = rf"(?:{'|'.join((MONTHS + MONTHS.upper()).split())}){letter}{{0,8}}\.?"
    dd, mm = r"(?:[0-2]\d|3[01])", "(?:0[1-9]|1[0-2])"
    blank, of = r"[\s,./-]{0,3}", r"(?:\s(?:of|de|del|di))?"
    named = rf"(?:{year}|(?:'|\xe2\x80\x99)\d\d|(?:0|[3-9])\d)"
    dates = (
        rf"{day}{of}{blank}{month}{of}{blank}{named}|{month}{blank}{day}[\s,./-]{{1,3}}{named}|{month}{of}{blank}{named}|"
        rf"{year}{blank}{month}{blank}{day}|{day}(?P<c>[-./]?){month}(?P=c)\d\d|{month}[0-3]\d{year}|"
        rf"[0-3]?\d(?P<d>[-./]\s?|\s)(?:[01]?\d|[IVX]{{1,4}})(?P=d){year}|[0-3]?\d/[01]?\d[- ](?:{year}|\d\d)|"
        rf"[0-3]?\d(?P<a>\s?[-./]\s?|\s)[0-3]?\d(?P=a)(?:{year}|\d\d)|(?:{year}|\d\d)(?P<b>[-./\s])[01]?\d(?P=b)[0-3]?\d|"
        rf"(?:{year}|\d\d){mm}{dd}|(?:{dd}{mm}|{mm}{dd})(?:{year}|\d\d)"
    )
    mark = r"""[\s,:;()*"'=_|>\[\]-]"""
    birth = rf"(?i)\A\.?(?:{mark}{{1,3}}{letter}{{1,15}}){{0,5}}?{mark}{{1,6}}({dates})(?!\d)"
    insured, taxed = r"[A-Z]{2}(?:[ -]?\d\d){3}[ -]?[A-D]", r"[A-Z]{5}\d{4}[A-Z]"
    number = r"[A-Z]{0,5}(?!(?:19|20)\d\d[ -])\d(?:[ -]?\d){6,13}[A-Z]?"
    between = r"""[\s,:;()*"'=_|>\[\]#.-]"""
    named_so = r"(?:card|code|est?|id|is|ist|no|nr|num|number|nummer|numero|was)"
    person = rf"(?i)\A(?:{between}{{1,3}}{named_so}){{0,3}}?{between}{{1,6}}({insured}|{number}|{taxed})(?!\w)"
    plain, every = ("|".join((text + text.upper()).split()) for text in (ENDINGS, ENDINGS + WORDLIKE))
    label, path = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?\.", r"""/[^\x00-\x20"<>]*[^\x00-\x20"<>!'),.:;?]|/"""
    domain = (
        rf"(?<![\w@/:.\\-])((?:(?:{label})+(?={label}(?:{every})(?!\w))[^.]{{2,}}\.(?:{every})|{label}(?:{plain}|(?:{every})(?=/)))"
        rf"(?:{path})?)(?![\w(@]|-|\.\w)"
    )
    wide = r"\xef\xbc[\x8d\x8e\x90-\x99\xa1-\xba\xbf]|\xef\xbd[\x81-\x9a]"
    local = rf"(?:[A-Za-z0-9._%+-]|{wide})+"
    quoted = r"""("(?:[^"\\\n]|\\.){1,64}"@[\w.\x80-\xff-]+\.[\w\x80-\xff]+)"""
    at, dot = (rf"\s?[\[({{]\s?(?:{word})\s?[\])}}]\s?" for word in ("at|@", r"dot|\."))
    host = rf"(?!the\b|an?\b)[\w-]+(?:(?:{dot}|\sdot\s)[\w-]+)*(?:{dot}|\sdot\s)(?:{every})(?!\w)"
    coded, behind = r"%40|=40|\\u0040|&#64;|&commat;|\s?@\s", rf"(?:{label})+(?:{every})(?![\w-])"
    named_at = rf"[\w+-]*[._\d][\w.+-]*+\s@{behind}"
    hidden = rf"(?i:(?<![\w.+-])([\w.+-]++(?:(?:{at}|\sat\s|@){host}|(?:{at}|{coded}){behind})|{named_at}))"
    contact = rf"{hidden}|{domain}|({local}\xef\xbc\xa0{local}(?<![.-]))|{quoted}"
    six = r"(?<![\w:.])((?:[0-9A-Fa-f]{0,4}:){2,7}(?:\d+(?:\.\d+){3}|[0-9A-Fa-f]{0,4}))(?![\w:])"
    patterns = ((BIRTH, birth), (ID, person), (CONTACT, contact), (IP, six))
    return {kind: re.compile(pattern.encode()) for kind, pattern in patterns}


def _around(raw: bytes, kind: int, mark: int) -> tuple[int, int] | None:
    """Return start and end of what a pattern finds around a mark; of what follows a word, where ``mark`` is 0."""
    for match in _patterns()[kind].finditer(raw):
        if not mark or match.start() < mark <= match.end():
            return match.span(match.lastindex or 1 if kind == CONTACT else 1)
    return None


def _is_valid(kind: int, text: str, form: int) -> bool:
    if kind == IP:
        if ":" not in text:
            return bool(_IPV4.fullmatch(text))
        try:
            return bool(ipaddress.ip_address(text)) and any(map(str.isdigit, text))
        except ValueError:
            return False
    if kind == CARD:  # whose checksum the loop has computed, as that of an IBAN
        return True
    digits = _MARKS.sub("", text := plain(text))
    if kind == PHONE:
        return _is_phone(text, digits, form)
    if kind == IBAN:
        return _iban_lengths().get(digits[:2].upper()) == len(digits)
    if _NO_ID.fullmatch(text):
        return False
    for module in _forms()[form]:
        try:
            if module.is_valid(text if module.__name__ == "stdnum.fi.hetu" else digits):  # whose sign is a century
                return True
        except (LookupError, ValueError):  # which python-stdnum raises for some numbers that are none
            continue
    return False


def _is_phone(text: str, digits: str, form: int) -> bool:
    """Say whether a phone number is valid; with ``+`` or in the form of North America it only has to be possible."""
    phones = _package("phonenumbers")
    if "+" not in text and _DATE.fullmatch(text):
        return False
    if "+" in text or digits[:2] == "00":
        says = phones.is_possible_number if "+" in text else phones.is_valid_number
        with contextlib.suppress(phones.NumberParseException):
            if says(phones.parse(text if "+" in text else f"+{digits[2:]}")):
                return True
        if "+" in text:
            return False
    if form == CALLED or _AMERICAN_PHONE.fullmatch(text):
        return True
    valid = _national().fullmatch
    return bool(valid(digits) or ("(" in text and valid(f"0{digits}")))


def _phones(data: Any, documents: Any, rows: list[list[int]]) -> dict[int, tuple[int, int]]:
    """Return the end of the phone number at each start, and of what is masked: no half of the digits in a row.

    Of several ends the longest is right after which no digits are left, or another phone number begins.
    """
    ends: dict[int, list[int]] = {}
    for start, end, _, form in rows:
        if _is_phone(text := plain(data[start:end].tobytes().decode()), _MARKS.sub("", text), form):
            ends.setdefault(start, []).append(end)
    phones: dict[int, tuple[int, int]] = {}
    for start, several in ends.items():
        behind = documents[np.searchsorted(documents, start, side="right")]
        rests = [_REST.match(data[end : min(end + 24, behind)].tobytes()) for end in several]
        clean = [
            end
            for end, rest in zip(several, rests, strict=True)
            if not rest or not ends.keys().isdisjoint(range(end + 1, end + rest.start(1) + 1))
        ]
        end, rest = (clean[0], None) if clean else (several[0], rests[0])
        last = len(_MARKS.split(plain(data[start:end].tobytes().decode()))[-1])
        phones[start] = end, end + rest.end() if rest and (len(rest[1]) > 4 or len(rest[1]) == last) else end
    return phones


def rules(tokens: Tokens) -> Spans:
    """Find what is of the kinds ``NAMES``. Raises UserError if a package is missing."""
    forms, *tables = _tables()
    data, arrays = tokens.data, (tokens.starts, tokens.ends, tokens.classes)
    picked, out, size = np.empty(len(tokens) + 1, np.int32), np.empty((0, 4), np.int64), 1 << 10
    picked = picked[: pick(data, tokens.starts, tokens.classes, picked)]
    while size > len(out):
        out = np.empty((size, 4), np.int64)
        size = scan(data, tokens.documents, arrays, tokens.offsets, picked, forms, *tables, out)
    out = out[:size]
    ranks = np.array([_RANKS.get(kind, 6) for kind in range(len(NAMES))], np.int64)[out[:, 2]]
    ranks[(out[:, 2] == PHONE) & (out[:, 3] == CALLED)] = 3
    spans: set[tuple[int, int, int]] = set()
    behind = 0
    rows = out[np.lexsort((ranks, -out[:, 1], out[:, 0]))].tolist()
    phones = _phones(data, tokens.documents, [row for row in rows if row[2] == PHONE])
    for start, end, kind, form in rows:
        raw = data[start:end].tobytes()
        if kind in {BIRTH, CONTACT} or (kind == IP and form) or (kind == ID and form == CALLED):
            span = _around(raw, kind, form * (kind != ID))
            if span and (kind != IP or _is_valid(IP, raw[slice(*span)].decode(), 0)):
                spans.add((start + span[0], start + span[1], kind))
        elif start >= behind and (
            phones.get(start, (0, 0))[0] == end if kind == PHONE else _is_valid(kind, raw.decode(), form)
        ):
            behind = phones[start][1] if kind == PHONE else end
            spans.add((start, behind, kind))
    table = np.array(sorted(spans), np.int64).reshape(-1, 3)
    return Spans(table[:, 0], table[:, 1], table[:, 2], NAMES)


_VERSIONS = ", ".join(f"{package} {metadata.version(package)}" for package in ("phonenumbers", "python-stdnum"))
RECOGNIZER = Declared(lambda _: rules, f"3, {_VERSIONS}", NAMES)

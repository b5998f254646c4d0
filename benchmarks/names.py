"""Names of persons in eight places of texts, from lists that no recognizer ships, and false alarms in texts without.

``python -m benchmarks names [--rows N] [--alarms TEXTS.json] [--forms]``. Names are Faker's: the commonest of the
United States, rare ones of which no part is on a list that ships, and foreign ones. TEXTS.json has public texts by
kind, each with the (start, end) of its persons as another recognizer sees them. ``--forms`` measures the forms of
forms.txt instead, most of which were written before the rules that find them.
"""

import argparse
import functools
import itertools
import json
import random
import re
import time
import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import phonenumbers
import pyarrow as pa
from faker import Faker
from phonenumbers import PhoneNumberFormat

import corpusveil as cv
from benchmarks import inputs
from benchmarks.report import Table
from corpusveil.recognizers.registry import make
from corpusveil.text import classes
from corpusveil.text.spans import Spans, covered
from corpusveil.text.tokens import Tokenizer, read
from corpusveil.text.word_table import WordTable
from corpusveil_spans.names import Names, listed_bits

ROWS = 20 if inputs.SMALLEST else 4_000
LOCALES = {
    "common": ["en_US"],
    "rare": ["en_IN", "en_NG", "zu_ZA", "vi_VN", "id_ID", "et_EE", "hu_HU", "ro_RO"],
    "foreign": ["de_DE", "fr_FR", "es_ES", "it_IT", "pl_PL", "tr_TR", "cs_CZ", "nl_NL", "sv_SE", "pt_BR"],
}
OWN = {"en": "en_US", "de": "de_DE", "fr": "fr_FR", "es": "es_ES", "it": "it_IT"}
_TEXTS = {
    "en": """
greeting: Hi {n}, the parcel never arrived. | Hello {n},⏎I still wait for my refund. | Dear {n},⏎⏎thank you. |
  Hey {f} can you look into this? | Good morning {n}, any news? | Dear Mr. {l},⏎it broke. | Hi {f}!⏎It fails.
signature: It broke.⏎⏎Best,⏎{f} | It broke. Regards,⏎{n} | Please help.⏎⏎Kind regards⏎{n} | It is
  late.⏎Thanks,⏎{f} | Call me. Thank you, {n} | It fails, please help. Thanks, {f} | Where is it?⏎Cheers {f} |
  Sincerely yours,⏎⏎{n} | Thanks for your help,⏎{f} | Best regards,⏎{n}⏎Sales manager | I wait for it.⏎- {f} |
  Many thanks,⏎{n}
introduction: Hi, this is {n}, my router stopped. | My name is {n} and I need help. | I am {n} from flat 4. |
  I'm {f}, the owner of the account. | Hello, it is {n} again. | Good day, my name is {f}.
sentence start: {n} called me about it. | It is late. {f} said so yesterday. | {n}'s order is missing.
middle: I spoke with {n} about the order. | please ask {f} to call me back | my neighbour {n} has the parcel
header: From: {n}⏎Subject: refund⏎⏎It broke. | Name: {n}⏎Order: 1234 | To: {n}⏎Date: 1 May | Contact: {f}
capitals: HI, THIS IS {n}, MY ROUTER IS BROKEN. | PLEASE ASK {n} TO CALL ME. | IT BROKE. REGARDS,⏎{n}
small letters: hi, this is {n} and my router broke | i spoke with {n} yesterday | thanks, {n}
""",
    "de": """
greeting: Hallo {n}, das Paket fehlt. | Sehr geehrte Frau {l},⏎es fehlt. | Liebe {f},⏎danke. | Guten Tag {n},
  es fehlt.
signature: Es fehlt.⏎⏎Mit freundlichen Grüßen⏎{n} | Viele Grüße,⏎{f} | Danke,⏎{f} | Es ist kaputt. Gruß, {f}
introduction: Hallo, hier ist {n}, mein Router geht nicht. | mein Name ist {n} und ich warte. | Ich bin {n}
  aus Haus 4. | ich heiße {f}.
""",
    "fr": """
greeting: Bonjour {n}, le colis manque. | Chère {f},⏎merci. | Bonjour Mme {l},⏎il manque. | Salut {f} !
signature: Il manque.⏎⏎Cordialement,⏎{n} | Merci,⏎{f} | Bien à vous. Merci, {f} | Cordialement⏎{n}
introduction: Bonjour, je suis {n}, mon colis manque. | je m'appelle {n} et j'attends. | mon nom est {n}. |
  Moi, c'est {f}.
""",
    "es": """
greeting: Hola {n}, falta el paquete. | Estimada {f}:⏎gracias. | Buenos días {n}, falta. | Querido {f},⏎falta.
signature: Falta.⏎⏎Saludos,⏎{n} | Gracias,⏎{f} | Un abrazo,⏎{f} | Atentamente,⏎{n}
introduction: Hola, soy {n}, falta el paquete. | me llamo {n} y espero. | mi nombre es {n}. | Soy {f} de
  Madrid.
""",
    "it": """
greeting: Ciao {n}, manca il pacco. | Cara {f},⏎grazie. | Gentile Sig.ra {l},⏎manca. | Buongiorno {n}, manca.
signature: Manca.⏎⏎Cordiali saluti,⏎{n} | Grazie,⏎{f} | Saluti⏎{n} | Distinti saluti,⏎{n}
introduction: Ciao, sono {n}, manca il pacco. | mi chiamo {n} e aspetto. | il mio nome è {n}. | Sono {f} di
  Roma.
""",
}
"""Places by language: templates between bars, ⏎ for a line break, {n} for a full name, {f} and {l} for its parts."""


def templates(language: str) -> dict[str, list[str]]:
    """Return the templates of each place."""
    lines = re.sub(r"\n  ", " ", _TEXTS[language]).strip().split("\n")
    places = (line.partition(": ") for line in lines)
    return {place: [text.strip(" ").replace("⏎", "\n") for text in texts.split(" | ")] for place, _, texts in places}


def finder(space: cv.Space) -> Any:
    """Return what lists the (start, end) of the names in each of some texts, in bytes."""
    names, words = Names(space), space.vocabulary
    tokenizer = Tokenizer(WordTable.build(words.text, words.offsets))

    def find(texts: Sequence[str]) -> list[list[tuple[int, int]]]:
        tokens = tokenizer.tokenize(list(texts))
        spans = names(tokens)
        out: list[list[tuple[int, int]]] = [[] for _ in texts]
        for start, end in zip(spans.starts.tolist(), spans.ends.tolist(), strict=True):
            document = int(np.searchsorted(tokens.documents, start, side="right")) - 1
            out[document].append((start - int(tokens.documents[document]), end - int(tokens.documents[document])))
        return out

    return find


def pool(kind: str, locales: Sequence[str], size: int, rng: random.Random) -> list[tuple[str, str]]:
    """Return pairs of a given and a family name; of rare ones, no part is on a list that ships."""
    bits = listed_bits()
    pairs: list[tuple[str, str]] = []
    fakes = [Faker(locale) for locale in locales]
    for number, fake in enumerate(fakes):
        fake.seed_instance(number)
    for _ in range(60 * size):
        fake = rng.choice(fakes)
        given, family = fake.first_name().split(" ")[0], fake.last_name().split(" ")[-1]
        if given[:1].isupper() and family[:1].isupper() and (
            kind != "rare" or not any(bits.get(word.lower(), 0) & 3 for word in (given, family))
        ):  # fmt: skip
            pairs.append((given, family))
        if len(pairs) == size:
            break
    return pairs


def recall(find: Any, kind: str, template: Sequence[str], names: Sequence[tuple[str, str]], rows: int) -> float:
    """Return the share of planted names of which every letter is in a span."""
    change = {"capitals": str.upper, "small letters": str.lower}.get(kind, str)
    texts, places = [], []
    for row in range(rows):
        given, family = (change(part) for part in names[row % len(names)])
        text = template[row % len(template)]
        name = {"{n}": f"{given} {family}", "{f}": given, "{l}": family}
        mark = next(mark for mark in name if mark in text)
        start = len(text[: text.index(mark)].encode())
        texts.append(text.replace(mark, name[mark]))
        places.append((start, start + len(name[mark].encode())))
    spans = find(texts)
    return float(np.mean([any(a <= s and e <= b for a, b in own) for (s, e), own in zip(places, spans, strict=True)]))


FIRMS = """
Park House Bank Group Church Hill Street Hall West Temple College Rose Young Page Case Banks Field Brooks
""".split()  # noqa: SIM905
"""Family names that are words, most of firms and streets."""
TERMS = ("Zoë D'Angelo-Groß", "Renée O'Brien-Núñez", "Jürgen d'Souza-Weiß", "Ána L'Évêque-Strauß", "Łucja O'Dowd-Preuß")


def _with(old: str, new: str) -> Callable[[str], str]:
    return lambda text: text.replace(old, new)


def _within(mark: str) -> Callable[[str], str]:
    return lambda text: text[:3] + mark + text[3:]


CHANGES: dict[str, Callable[[str], str]] = {
    "lower": str.lower,
    "iso": str,
    "upper": str.upper,
    "nfd": lambda text: unicodedata.normalize("NFD", text),
    "at": lambda text: text.replace("@", "@\u200b"),
    "compact": lambda text: text.replace("-", ""),
    "german": lambda text: ".".join(reversed(text.split("-"))),
    "dashes": lambda text: "-".join(reversed(text.split("-"))),
    "short": lambda text: ".".join(reversed(text[2:].split("-"))),
    "us": lambda text: f"{text[5:7]}/{text[8:]}/{text[:4]}",
    "month": lambda text: f"{text[8:]} MAR {text[:4]}",
    "march": lambda text: f"{text[8:]} March {text[2:4]}",
    "aout": lambda text: f"{text[8:]} aout {text[:4]}",
    "maerz": lambda text: f"{text[8:]} MÄRZ {text[:4]}",
    "maart": lambda text: f"{text[8:]} maart {text[:4]}",
    "joined": lambda text: text[8:] + text[5:7] + text[2:4],
    "apart": lambda text: " ".join(reversed(text[2:].split("-"))) if text[:1].isdigit() else text.replace("-", " "),
    "genitive": lambda text: text + "s",
    "lines": lambda text: text.replace(" ", "_"),
    "spelled": lambda text: text.replace("@", " at ").replace(".", " dot "),
    "brackets": lambda text: text.replace("@", " [at] ").replace(".", " [dot] "),
    "round": lambda text: text.replace("@", "(at)"),
    "coded": lambda text: text.replace("@", "%40"),
    "spread": lambda text: text.replace("@", " @ ").replace("-", " - "),
    "wrapped": lambda text: text.replace("-", "-\n> "),
    **{name: _with("'", mark)
       for name, mark in zip(("curly", "backtick", "modifier", "prime"), "’`ʼ′", strict=True)},
    **{name: _with("-", mark) for name, mark in (("u2010", "‐"), ("u2011", "‑"))},
    **{name: _with(" ", mark)
       for name, mark in (("crlf", "\r\n"), ("two", "  "), ("nbsp", "\xa0"), ("narrow", "\u202f"), ("tab", "\t"),
                          ("break", "\n"), ("figure", "\u2007"), ("thin", "\u2009"), ("quoted", "\n> "),
                          ("quoted2", "\n> > "), ("bar", "\n|"))},
    **{name: _within(mark)
       for name, mark in (("shy", "\xad"), ("zwsp", "\u200b"), ("zwj", "\u200d"), ("bom", "\ufeff"), ("lrm", "\u200e"),
                          ("joiner", "\u2060"))},
}  # fmt: skip
"""How a value is written in another way."""


def _values(rng: random.Random) -> dict[str, Callable[[], Any]]:
    """Return what invents the value of a kind."""
    fake = Faker(["en_US", "en_GB", "de_DE", "fr_FR", "it_IT", "es_ES"])
    fake.seed_instance(2)
    numbers = [number for region in ("DE", "FR", "GB", "ES", "PL", "IN", "CZ", "GR", "PT", "DK", "HU", "SG")
               if (number := phonenumbers.example_number(region))]  # fmt: skip

    def phone(plus: str) -> str:
        number, form = rng.choice(numbers), rng.choice([PhoneNumberFormat.INTERNATIONAL, PhoneNumberFormat.E164])
        return phonenumbers.format_number(number, form).replace("+", plus)

    def iban() -> str:
        made = fake[rng.choice(["de_DE", "fr_FR", "it_IT", "en_GB"])].iban()
        return " ".join(re.findall(".{1,4}", made)) if rng.random() < 0.5 else made

    rare = pool("rare", LOCALES["rare"], 200, rng)
    return {
        "r": lambda: " ".join(rng.choice(rare)), "q": lambda: rng.choice(rare)[0],
        "f": lambda: fake.first_name().split(" ")[0], "l": lambda: fake.last_name().split(" ")[-1],
        "w": lambda: rng.choice(FIRMS), "t": lambda: rng.choice(TERMS), "email": fake.ascii_email, "iban": iban,
        "card": lambda: " ".join(re.findall("....", fake.credit_card_number("visa16")))
        if rng.random() < 0.5 else fake.credit_card_number("mastercard"),
        "ip": fake.ipv4_public, "ssn": fake["en_US"].ssn,
        "nino": lambda: f"AB{rng.randrange(10**6):06d}{rng.choice('ABCD')}",
        "phone": lambda: phone("+"), "phone00": lambda: phone("00"),
        "url": lambda: f"https://{fake.domain_name()}/a", "web": lambda: f"www.{fake.domain_name()}",
        "domain": lambda: f"{fake.user_name()}.com", "d": lambda: str(fake.date_of_birth(minimum_age=20)),
    }  # fmt: skip


def forms(rows: int, space: cv.Space) -> None:
    """Print, of each form, the share masked in full and in part, and what was masked of nothing, in 1,000 words."""
    with TemporaryDirectory() as folder:
        (listed := Path(folder) / "terms.txt").write_text("\n".join(TERMS))
        built_in, terms = [make(name, space) for name in ("rules", "names")], [make(str(listed), space)]
    table = WordTable.build(space.vocabulary.text, space.vocabulary.offsets)

    def hidden(texts: Sequence[str], recognizers: Any) -> list[Any]:
        """Return which bytes of each text, as it is read, are in spans or contacts."""
        tokens = Tokenizer(table).tokenize(texts)
        whole, _ = covered(tokens, Spans.joined(recognize(tokens) for recognize in recognizers))
        masked = np.zeros(tokens.data.size, np.bool_)
        for t in np.flatnonzero(np.isin(whole.classes, (classes.SPAN, classes.CONTACT))):
            masked[whole.starts[t] : whole.ends[t]] = True
        return np.split(masked, tokens.documents[1:-1])

    whole = Path(__file__).with_name("forms.txt").read_text()
    for section in re.split(r"\n\[(?=\d+ |- )", whole)[1:]:
        title, lines = section.split("]\n")
        _form(title, lines, rows, functools.partial(hidden, recognizers=terms if "12 term" in title else built_in))


def _form(title: str, lines: str, rows: int, hidden: Any) -> None:
    rng, texts = random.Random(title), [text for line in lines.strip().split("\n") for text in line.split(" | ")]
    make_value = _values(rng)
    written: list[str] = []
    places: list[tuple[int, str, str]] = []
    for row in range(rows if "{" in lines else len(texts)):
        text, same = "", dict[tuple[str, str], str]()
        for part in re.split(r"(\{\w+ ?(?:@\d)?(?::[\w ]+)?\})", texts[row % len(texts)].replace("⏎", "\n")):
            if not (match := re.fullmatch(r"\{(\w+) ?(@\d)?:?([\w ]*)\}", part)):
                text += part
                continue
            kind, number, changes = match.groups()
            parts = ["f", "l"] if kind == "n" else [kind]
            values = [same.setdefault((name, number or str(len(same))), make_value[name]()) for name in parts]
            value = " ".join(values)
            for change in changes.split():
                value = CHANGES[change](value)
            places.append((row, text, text + value))
            text += value
        written.append(text)
    masked, shares = hidden(written), []
    for row, start, end in places:
        a, b = np.diff(read(pa.array([start, end], pa.large_string()), None)[1])
        shares.append(masked[row][a:b].mean())
        masked[row][a:b] = False
    extra = sum(int(np.count_nonzero(np.diff(np.r_[False, own].astype(np.int8)) == 1)) for own in masked)
    alarms, whole = 1000 * extra / sum(len(text.split()) for text in written), np.array(shares or [0])
    part = np.mean((whole > 0) & (whole < 1))
    print(f"{title:48s} {np.mean(whole == 1):6.3f} {part:6.3f} {alarms:8.1f}", flush=True)


def run(arguments: Sequence[str] = ()) -> list[Table]:
    """Print recall by place, kind of name and language, and false alarms by kind of text; no table is returned."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks names")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--alarms", type=Path)
    parser.add_argument("--space", default="en")
    parser.add_argument("--forms", action="store_true")
    asked = parser.parse_args(list(arguments))
    if asked.forms:
        forms(asked.rows, cv.load_space(asked.space))
        return []
    rng, find = random.Random(1), finder(cv.load_space(asked.space))
    size = max(10, asked.rows // 8)
    pools = {kind: pool(kind, locales, size, rng) for kind, locales in LOCALES.items()}
    bits = listed_bits()
    for kind, names in pools.items():
        on = np.array([sum(bool(bits.get(word.lower(), 0) & 3) for word in name) for name in names])
        print(f"{kind}: {len(names)} names, both parts on a list {(on == 2).mean():.3f}, none {(on == 0).mean():.3f}")
    print(f"{'':18s}" + "".join(f"{kind:>10s}" for kind in pools))
    for place, texts in templates("en").items():
        shares = (recall(find, place, texts, names, asked.rows) for names in pools.values())
        print(f"{place:18s}" + "".join(f"{share:10.3f}" for share in shares))
    for language, locale in OWN.items():
        own = pool("own", [locale], size, rng)
        shares = (recall(find, place, texts, own, asked.rows) for place, texts in templates(language).items())
        print(f"{language:18s}" + "".join(f"{share:10.3f}" for share in itertools.islice(shares, 3)))
    if asked.alarms:
        for kind, rows in json.loads(asked.alarms.read_text()).items():
            print(f"{kind}: {alarms(find, rows)}")
    return []


def alarms(find: Any, rows: Sequence[tuple[str, Sequence[tuple[int, int]]]]) -> str:
    """Return false alarms and found persons in texts with the (start, end) of their persons."""
    words = sum(len(text.split()) for text, _ in rows)
    began = time.perf_counter()
    found = find([text for text, _ in rows])
    seconds = time.perf_counter() - began
    wrong = persons = seen = 0
    for (text, known), spans in zip(rows, found, strict=True):
        places = [(len(text[:start].encode()), len(text[:end].encode())) for start, end in known]
        wrong += sum(not any(a < end and b > start for a, b in places) for start, end in spans)
        seen += sum(any(start < b and end > a for start, end in spans) for a, b in places)
        persons += len(places)
    return (
        f"{words:,} words, {1000 * wrong / words:.2f} false alarms in 1,000, {seen / max(1, persons):.3f} of persons, "
        f"{words / seconds:,.0f} words/s"
    )

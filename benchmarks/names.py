"""The share of persons' names that is masked, by origin and position, and the share of other text that is.

    python -m benchmarks names [--rows N]

The names are Faker's, and some that are written here, which no list that ships was made of; the forms were written
before the rules that find them. The other text is the held-out part of open-en: many of its masks are persons', too.
"""

import argparse
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
from faker import Faker

import corpusveil as cv
from benchmarks import inputs
from benchmarks.report import Skipped, Table
from corpusveil.text.tokens import Tokenizer
from corpusveil.text.word_table import WordTable
from corpusveil_spans.names import Names

LOCALES = {
    "American": "en_US", "British, Irish": "en_GB en_IE",
    "European": "de_DE fr_FR es_ES it_IT pl_PL cs_CZ sv_SE hu_HU ro_RO pt_PT",
    "Indian": "en_IN", "African, Asian": "en_NG en_KE en_PK id_ID vi_VN tr_TR",
}  # fmt: skip
OWN = {
    "Indian": ["""Arvind Anil Ramesh Suresh Mahesh Deepak Sanjay Vijay Ajay Ashok Pooja Neha Kavita Anjali Meena Lakshmi
        Divya Shreya Venkatesh Manoj Rohit Sneha Geeta Usha Harish""",
        """Sharma | Verma | Gupta | Agarwal | Iyer | Menon | Nair | Reddy | Rao | Patil | Joshi | Desai | Mehta | Chopra
        | Malhotra | Kapoor | Mishra | Pandey | Yadav | Naidu | Pillai | Bose | Banerjee | Mukherjee | Das"""],
    "with a particle": [
        "Anna Jeroen Maarten Sofie Pieter Ingrid Elena Carlos Luisa Marco Willem Femke Lotte Karl Isabel",
        """van Dijk | de Boer | van den Heuvel | ten Broek | ter Horst | te Riele | van 't Hof | von Hagen | zu Sayn
        | de la Torre | del Bosque | dos Anjos | da Costa | di Marco | della Valle | van de Ven | op den Kamp
        | in 't Veld | la Rosa | de los Reyes | el Khoury | al Fassi | bin Rashid | Le Goff | Mac Giolla"""],
}  # fmt: skip
"""Given and family names beside Faker's."""
_PLACES = """
greeting: Hi {n}, the boiler leaks. | Hello {f},⏎is it fixed? | Dear {n},⏎⏎we wait. | Hey {f} any news? |
  Good evening {n}, sorry to write so late. | Dear Mrs {l},⏎the lift is out of order.
introduction: Hello, my name is {n} and I rent the garage. | This is {n} writing about the fence. | I am {n}, your
  new neighbour. | i'm {f} from upstairs | My name is {l}. | Good day, it is {n} again.
closing: It leaks again.⏎⏎Kind regards,⏎{n} | Where is it? Thanks, {f} | Yours faithfully⏎{n} | Cheers⏎{f}⏎Sales |
  We wait for an answer.⏎Best wishes,⏎{n}
full name: We saw {n} at the gate yesterday. | The bill was paid by {n} in cash. | I got a letter from {n} about the
  lease. | The nurse said that {n} had a fever. | It was {n} who left the door open. | A parcel for {n} arrived. | Our
  lawyer, {n}, will write to you. | They gave the keys to {n} on the way out.
full name first: {n} left the door open. | It was late. {n} came by car. | {n} has not paid yet. | {n}, who lives
  upstairs, complained.
given name: We saw {f} at the gate yesterday. | The bill was paid by {f} in cash. | I told {f} about the lease. | When
  {f} came home, the door was open. | The keys are with {f} now. | It was late, and {f} was tired.
family name: We saw {l} at the gate yesterday. | The bill was paid by {l} in cash. | I told {l} about the lease. | When
  {l} came home, the door was open. | Dr. {l} will call back. | The keys are with Mr {l} now.
family name first: Tenant: {l}, {f} | {l}, {f} (2nd floor) | The list has {l}, {f} and two more. | Surname: {l}⏎Flat: 4
  | Last name: {l} | Family name: {l}, First name: {f} | {{"id": 7, "last": "{l}", "first": "{f}"}} |
  {{"surname": "{l}"}} | lastName={l}&x=1 | <familyName>{l}</familyName> | PID|1||7|{l}^{f}^B||F | last_name: {l}
capitals: PLEASE ASK {n} TO CALL. | DEAR {n}, THE LIFT IS STUCK. | THE BILL WAS PAID BY {n} IN CASH.
small letters: hi, this is {n} from upstairs | we saw {n} at the gate | thanks, {f} | the bill was paid by {n}
"""
"""Forms of each place, ⏎ for a line break; {n} is a full name, {f} and {l} are its parts."""


def forms(text: str) -> dict[str, list[str]]:
    """Return the forms of each line."""
    lines = (line.partition(": ") for line in text.strip().replace("\n  ", " ").split("\n"))
    return {title: [form.strip().replace("⏎", "\n") for form in rest.split(" | ")] for title, _, rest in lines}


PLACES = forms(_PLACES)


def finder(space: cv.Space) -> Any:
    """Return what lists the (start, end) of the names in each of some texts, in bytes."""
    names, words = Names(space), space.vocabulary
    tokenizer = Tokenizer(WordTable.build(words.text, words.offsets))

    def find(texts: Sequence[str]) -> list[list[tuple[int, int]]]:
        tokens = tokenizer.tokenize(pa.array(texts, pa.large_string()))
        spans = names(tokens)
        out: list[list[tuple[int, int]]] = [[] for _ in texts]
        for start, end in zip(spans.starts.tolist(), spans.ends.tolist(), strict=True):
            document = int(np.searchsorted(tokens.documents, start, side="right")) - 1
            out[document].append((start - int(tokens.documents[document]), end - int(tokens.documents[document])))
        return out

    return find


def people(origin: str, size: int) -> list[tuple[str, str]]:
    """Return pairs of a given and a family name."""
    chance = random.Random(origin)
    fakes = [Faker(locale) for locale in LOCALES.get(origin, "").split()]
    for number, fake in enumerate(fakes):
        fake.seed_instance(number)
    given, family = OWN.get(origin, ["", ""])
    sources: list[Any] = [*fakes, *([None] if given else [])]
    families = [name.strip() for name in family.split("|")]
    pairs: list[tuple[str, str]] = []
    while len(pairs) < size:
        fake = sources[len(pairs) % len(sources)]
        first = fake.first_name().split(" ")[0] if fake else chance.choice(given.split())
        last = fake.last_name().split(" ")[-1] if fake else chance.choice(families)
        if first[:1].isupper() and last[-1:].isalpha():
            pairs.append((first, last))
    return pairs


def planted(place: str, pairs: Sequence[tuple[str, str]]) -> list[tuple[str, list[str]]]:
    """Return texts with the names that each has."""
    change: Callable[[str], str] = {"capitals": str.upper, "small letters": str.lower}.get(place, str)
    rows = []
    for number, pair in enumerate(pairs):
        first, last = map(change, pair)
        form = PLACES[place][number % len(PLACES[place])]
        values = {"{n}": f"{first} {last}", "{f}": first, "{l}": last}
        said = [value for mark, value in values.items() if mark in form]
        rows.append((form.format(n=values["{n}"], f=first, l=last), said))
    return rows


def recall(find: Any, rows: Sequence[tuple[str, list[str]]]) -> float:
    """Return the share of names of which every letter is masked."""
    hits = []
    for (text, said), spans in zip(rows, find([text for text, _ in rows]), strict=True):
        raw, masked = text.encode(), set[int]()
        for start, end in spans:
            masked.update(range(start, end))
        for name in map(str.encode, said):
            start = raw.index(name)
            hits.append(masked.issuperset(at for at in range(start, start + len(name)) if raw[at] not in b" '-"))
    return float(np.mean(hits))


def masked(find: Any, texts: Sequence[str]) -> float:
    """Return the share of the words of texts that is masked."""
    raws = [text.encode() for text in texts]
    spans = zip(raws, find(texts), strict=True)
    count = sum(len(raw[start:end].split()) for raw, places in spans for start, end in places)
    return count / sum(len(raw.split()) for raw in raws)


def other_text() -> list[str]:
    """Return the held-out texts of open-en."""
    folder = inputs.data()
    if folder is None or not (path := folder / "open-en" / "held-out.jsonl.zst").is_file():
        return []
    with pa.input_stream(str(path), compression="zstd") as lines:
        return [orjson.loads(line)["text"] for line in lines.read().splitlines()]


def run(arguments: Sequence[str] = ()) -> list[Table]:
    parser = argparse.ArgumentParser(prog="python -m benchmarks names")
    parser.add_argument("--rows", type=int, default=40 if inputs.SMALLEST else 1_200)
    rows = parser.parse_args(list(arguments)).rows
    if inputs.data() is None and not inputs.SMALLEST:
        raise Skipped("the shared data is not on this machine.")
    find = finder(cv.load_space("en"))
    origins = [*LOCALES, *(origin for origin in OWN if origin not in LOCALES)]
    found = Table("Names that are masked whole, by place and origin", ("place", *origins))
    pairs = {origin: people(origin, rows) for origin in origins}
    for place in PLACES:
        found.rows.append((place, *(recall(find, planted(place, pairs[origin])) for origin in origins)))
    if texts := other_text():
        found.notes.append(f"Of the words of open-en, {masked(find, texts):.1%} are masked.")
    return [found]

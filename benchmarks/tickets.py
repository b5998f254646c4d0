"""Support tickets with planted identifiers: what a release shows of them, by recognizer, beside what the law says.

``python -m benchmarks tickets [--rows N]``; 200,000 rows take two minutes.
"""

import argparse
import random
import re
import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from faker import Faker

import corpusveil as cv
from benchmarks import inputs
from benchmarks.report import Table
from corpusveil.transforms.release.risk import epsilon_at

ROWS, POOL, CLEAN = (200, 50, 20) if inputs.SMALLEST else (200_000, 6_000, 10_000)
LOCALES = ["en_US", "en_GB", "en_IN", "de_DE", "fr_FR", "es_ES", "it_IT", "pl_PL", "nl_NL", "sv_SE", "tr_TR", "pt_BR"]
IDS = {"en_US": "ssn", "fr_FR": "ssn", "it_IT": "ssn", "pl_PL": "ssn", "sv_SE": "ssn", "es_ES": "nif", "pt_BR": "cpf"}
BOB = "Hi, this is Bob Smith, my router <b>stopped</b> working, call +49 170 1234567"
ISSUES = ["my router {}stopped{} working", "the app is {}very{} slow", "the parcel {}never{} arrived at my house"]
SAID = {"phone": ("call {}", "rufen Sie {} an"), "iban": ("my account is {}", "mein Konto ist {}"),
        "card": ("you charged the card {}", "belastet wurde die Karte {}"), "ip": ("my IP is {}", "meine IP ist {}"),
        "national_id": ("my id is {}", "meine Nummer ist {}"), "email": ("write to {}", "schreiben Sie an {}"),
        "date_of_birth": ("I was born on {}", "ich bin geboren am {}")}  # fmt: skip
MAKERS = {"phone": "phone_number", "ip": "ipv4", "email": "email", "iban": "iban"}
NAMES = ["name", "first name", "name misspelled", "name in small letters"]
FOUND = re.compile(r"\[name\]|name_\w+")


def place(text: str) -> str:
    """Return what stands where the name was."""
    return text.split(",")[1].strip().split(" ", 2)[2]


def words_in(text: str) -> list[str]:
    """Return the words of a text; a small I with a dot has two characters."""
    return re.findall(r"[\w\u0307]+(?:['’]\w+)*", text.lower())


def planted_value(kind: str, rng: random.Random, fakes: dict[str, Any]) -> str:
    """Return a value of a kind, from Faker in one of several locales."""
    fake = fakes[where := rng.choice({"national_id": list(IDS), "iban": LOCALES[3:8]}.get(kind, LOCALES))]
    if kind in NAMES:
        name = fake.first_name() if kind == "first name" else f"{fake.first_name()} {fake.last_name()}"
        at = rng.randrange(1, max(2, len(name) - 1))  # two letters exchanged, or one lost
        wrong = name[:at] + rng.choice([name[at + 1 : at + 2] + name[at] + name[at + 2 :], name[at + 1 :]])
        return {"name misspelled": wrong, "name in small letters": name.lower()}.get(kind, name)
    if kind == "date_of_birth":
        return fake.date_of_birth().strftime(rng.choice(["%d.%m.%Y", "%Y-%m-%d", "%d/%m/%Y", "%d %B %Y"]))
    if kind == "card":
        made = fake.credit_card_number(rng.choice(["visa", "mastercard", "amex"]))
        return " ".join(re.findall("....", made)) if len(made) == 16 and rng.random() < 0.5 else made
    return getattr(fake, IDS[where] if kind == "national_id" else MAKERS[kind])()


def tickets(size: int, rng: random.Random, pool: dict[str, list[str]]) -> tuple[pd.DataFrame, list[Any]]:
    """Return the frame, and the (kind, value) of each row, the name first."""
    texts: list[str | None] = [BOB]
    planted = [[("name", "Bob Smith"), ("phone", "+49 170 1234567")]]
    for _ in range(1, size):
        kinds = [rng.choice(NAMES[:1] * 6 + NAMES[1:]), *rng.sample(list(SAID), 2)]
        items = [(kind, rng.choice(pool[kind])) for kind in kinds]
        german, tags = rng.random() < 0.1, ("<b class='x'>", "</b>") if rng.random() < 0.2 else ("", "")
        start = "Hallo, hier ist" if german else "Hi, this is"
        issue = "mein Router {}geht{} nicht" if german else rng.choice(ISSUES)
        rest = ". ".join(SAID[kind][german].format(value) for kind, value in items[1:])
        texts.append(None if rng.random() < 0.02 else f"{start} {items[0][1]}, {issue.format(*tags)}. {rest}.")
        planted.append(items if texts[-1] else [])
    return pd.DataFrame({"id": range(size), "customer": rng.choices(range(size // 4), k=size), "text": texts}), planted


def law_row(title: str, pairs: list[Any], chance: dict[str, float]) -> None:
    """Print how many of the (before, after) came back, and how many the law expects."""
    p = np.array([np.prod([chance.get(word, 0.0) for word in words_in(before)]) for before, _ in pairs])
    came, sd = sum(words_in(before) == words_in(after) for before, after in pairs), np.sqrt((p * (1 - p)).sum())
    z = f"{(came - p.sum()) / sd:+.1f} sd" if sd else ""
    print(f"  {title:42s} {len(p):8,d} {came:8,d} {p.sum():10,.1f} ± {sd:5.1f}  {z}", flush=True)


def run(arguments: Sequence[str] = ()) -> list[Table]:
    """Print what each way leaves of each kind; the figures are lists of their own shape, so no table is returned."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks tickets")
    parser.add_argument("--rows", type=int, default=ROWS)
    rows = parser.parse_args(list(arguments)).rows
    rng, fakes = random.Random(1), {locale: Faker(locale) for locale in LOCALES}
    Faker.seed(1)
    pool = {kind: [planted_value(kind, rng, fakes) for _ in range(POOL)] for kind in (*NAMES, *SAID)}
    frame, planted = tickets(rows, rng, pool)
    total = sum(len(text.split()) for text in frame["text"].dropna())
    mechanism = cv.RingGeometric(space := cv.load_space("en"))
    found = epsilon_at(mechanism, 0.5, cv.TextPolicy())
    print(f"{rows:,d} tickets, {total:,d} words between blanks\n{found}")
    used = {word for kind in NAMES for value in pool[kind] for word in words_in(value)} & set(space.vocabulary.words)
    chance = {word: mechanism.distribution(i := space.id(word), found.epsilon)[i] for word in {*used, "bob", "smith"}}
    names = cv.SpanPolicy(find=["rules", "names"])
    key, strip = cv.Key.generate(), cv.TextPolicy(markup="strip")
    variants: dict[str, dict[str, Any]] = {
        "none": {},
        "rules": {"spans": cv.SpanPolicy(find=["rules"])},
        "rules+names": {"spans": names},
        "strip, rules+names": {"spans": names, "policy": strip},
    }
    for title, settings in variants.items():
        release = cv.Release(mechanism, cv.Budget(found.epsilon), key=key, risk=found, **settings)
        with warnings.catch_warnings(record=True, action="always") as said:
            cv.privatize(frame[:1000], release, ids="id")  # what is compiled and imported once
            clock = time.perf_counter()
            private = cv.privatize(frame, release, ids="id")["text"]
        seconds = time.perf_counter() - clock
        print(f"\n{title}: {seconds:.1f} s, {total / seconds:,.0f} words/s; row 0: {private[0]}")
        print(*(f"  said: {one}" for one in {str(one.message) for one in said}), sep="\n")
        planted_rows = [
            (str(text).lower(), *item) for text, items in zip(private, planted, strict=True) for item in items
        ]
        print(f"  {'kind':24s}  planted  verbatim      share  recognized")
        for kind in pool:
            mine = [(text, value.lower()) for text, k, value in planted_rows if k == kind]
            mark = "[contact]" if kind == "email" else f"[{kind}]"
            marked = [bool(FOUND.search(place(t))) if kind in NAMES else mark in t for t, _ in mine]
            whole = [value in text for text, value in mine]
            print(f"  {kind:24s} {len(mine):8,d} {sum(whole):9,d} {np.mean(whole):10.5f} {np.mean(marked):11.4f}")
        slots = [(kind, value.lower(), place(text)) for text, kind, value in planted_rows if kind in NAMES]
        print(f"  {'names that nothing recognized':42s}    names     back        law")
        for kind in NAMES:
            law_row(kind, [(v, slot) for k, v, slot in slots if k == kind and not FOUND.search(slot)], chance)
    print(f"\nno spans, {CLEAN:,d} documents a kind, word by word      words     back        law")
    plain = cv.Release(mechanism, cv.Budget(found.epsilon), key=key)
    for kind in (*NAMES, "national_id", "iban", "phone", "card"):
        values = rng.choices(pool[kind], k=CLEAN)
        out = cv.privatize([f"Hi, this is {value}, I heard" for value in values], plain, ids=cv.RowNumbers(kind))
        both = [(words_in(value), words_in(place(text))) for value, text in zip(values, out, strict=True)]
        pairs = [pair for b, a in both if len(b) == len(a) for pair in zip(b, a, strict=True)]
        for known, what in ((True, "known words"), (False, "other words, numbers")):
            law_row(f"{kind}: {what}", [pair for pair in pairs if (pair[0] in chance) == known], chance)
    return []

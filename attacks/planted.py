"""Passages: tickets with planted names, phones and passwords, none of which may stand in anything that a run writes.

Then public text has them, too: how many get into a store since no recognizer finds them, and how many tickets are then
replaced by a piece with a planted value, or with their own.
"""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path

from faker import Faker

import corpusveil as cv
from attacks.attempt import Attempt
from benchmarks.tickets import LOCALES, planted_value
from corpusveil.passages.build import build_store
from tests.calls import command

ROWS, POOL, SALT = 20_000, 2_000, "6b" * 16
KINDS = ("name", "name in small letters", "phone", "password")
ISSUES = ("my router stopped working", "the app is slow", "the parcel never arrived", "you charged me twice")
PUBLIC = {
    "name": "My neighbor {} told me that the router stopped working after the last storm.",
    "name in small letters": "My neighbor {} told me that the router stopped working after the last storm.",
    "phone": "The man at the desk told me to call {} whenever the router stops working again.",
    "password": "I can't log in to the router any more, since {} is no longer the password that works.",
}


def attack(scale: float) -> Attempt:
    attempt, rng, rows = Attempt(), random.Random(58), int(ROWS * scale)
    fakes = {locale: Faker(locale) for locale in LOCALES}
    Faker.seed(58)
    pool = {kind: [_value(kind, rng, fakes) for _ in range(max(50, int(POOL * scale)))] for kind in KINDS}
    planted = [{kind: rng.choice(values) for kind, values in pool.items()} for _ in range(rows)]
    texts = [
        f"Hi, this is {row['name']}, {rng.choice(ISSUES)}. Ask {row['name in small letters']} or call {row['phone']}. "
        f"My password is {row['password']}."
        for row in planted
    ]
    values = {value.lower() for some in pool.values() for value in some}
    with tempfile.TemporaryDirectory() as folder:
        store = cv.load_store("en")
        for per in ("document", "sentence"):
            _released(attempt, Path(folder) / per, texts, values, per)
        public = [*store.texts.to_pylist(), *(PUBLIC[kind].format(value) for kind in KINDS for value in pool[kind])]
        rng.shuffle(public)
        _write(Path(folder) / "public" / "0.jsonl", [{"text": text} for text in public])
        made = build_store(f"{folder}/public", f"{folder}/store", store.space, "CC0", None, salt=SALT)
        held = {text.lower() for text in made.texts.to_pylist()}
        for kind in KINDS:
            got = {v.lower() for v in pool[kind] if PUBLIC[kind].format(v).lower() in held}
            attempt.tried(f"{kind}: values planted in public text", len(set(pool[kind])))
            attempt.tried(f"{kind}: not recognized, so in the store", len(got))
            _of_the_store(attempt, made, kind, texts, [row[kind].lower() for row in planted], got)
    return attempt


def _value(kind: str, rng: random.Random, fakes: dict[str, Faker]) -> str:
    if kind == "password":
        return "".join(rng.choices("bcdfghjkmnpqrstvwxz", k=10))
    return planted_value(kind, rng, fakes)


def _write(path: Path, rows: Sequence[dict[str, object]]) -> None:
    path.parent.mkdir(parents=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def _released(attempt: Attempt, folder: Path, texts: Sequence[str], values: set[str], per: str) -> None:
    """Release as the command does, with a ledger, a row that is no JSON and a second run that a cap refuses."""
    _write(folder / "in" / "tickets.jsonl", [{"id": n, "who": n // 3, "text": text} for n, text in enumerate(texts)])
    with (folder / "in" / "tickets.jsonl").open("a") as file:
        file.write(f'{{"id": 0, "text": "{texts[0]}\n')
    cv.Key.generate().save(str(folder / "key"))
    words = ["privatize", folder / "in", "--store", "en", "--epsilon", "10", "--per", per, "--id", "id", "--key",
             folder / "key", "--records", folder / "records"]  # fmt: skip
    books = ["--ledger", folder / "ledger", "--unit", "who", "--cap", "130", "--over-cap", "refuse"]
    first = command(*words, "--output", folder / "refused")
    done = command(*words, *books, "--output", folder / "out", "--on-bad-rows", "drop")
    attempt.check((first.status, done.status) == (2, 0), f"{per}: {first.err} {done.err}")
    said = [first, done, command("status", folder / "out", "--records", folder / "records"),
            command("verify", folder / "out"), command("ledger", "show", folder / "ledger"),
            command(*words, *books, "--output", folder / "more", "--epsilon", "11")]  # fmt: skip
    outputs = {
        f"what command {number} said": part for number, ended in enumerate(said) for part in (ended.out, ended.err)
    }
    for path in folder.rglob("*"):
        outputs[f"the name {path.name}"] = path.name
        if path.is_file() and folder / "in" not in path.parents:
            outputs[str(path.relative_to(folder))] = path.read_bytes().decode("utf-8", "replace")
    attempt.tried(f"tickets with planted values, a passage for a {per}", len(texts))
    attempt.tried("outputs read for planted values", len(outputs))
    given = (folder / "in" / "tickets.jsonl").read_text().lower()
    attempt.check(any(value in given for value in values), f"{per}: the control found no value in the input")
    attempt.tried("controls: values found in the input")
    for name, content in outputs.items():
        small = content.lower()
        there = [value for value in values if value in small]
        attempt.check(not there, f"{per}: {len(there)} planted values stand in {name}")


def _of_the_store(
    attempt: Attempt, store: cv.Store, kind: str, texts: Sequence[str], own: Sequence[str], got: set[str]
) -> None:  # fmt: skip
    """Count what the store has and a release shows: a name that the space knows and no list has may be found again."""
    release = cv.PassageRelease(cv.PassageExchange(store), 10.0, key=cv.Key.for_tests(), accept_overlap=True)
    shown = cv.privatize(list(texts), release, ids=range(len(texts)))
    template = PUBLIC[kind].lower().split("{}")
    drawn = [t.lower().removeprefix(template[0]).removesuffix(template[1]) for t in shown]
    hits = sum(value in got for value in drawn)
    mine = sum(value == its and value in got for value, its in zip(drawn, own, strict=True))
    attempt.tried(f"{kind}: tickets that became a piece with one", hits)
    attempt.tried(f"{kind}: of these, with their own", mine)

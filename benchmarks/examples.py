"""Twenty texts of five kinds, as written, by words and by passages: writes ``docs/examples.md``.

    python -m benchmarks examples

News and reviews are of gensim's package, and the others were written for this page before any of them was released,
since the task sets may not be published. A seed chooses four of each kind.
"""

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import corpusveil as cv
from benchmarks import inputs
from benchmarks.report import Table
from benchmarks.stores import released
from corpusveil.collocations.public_texts import news
from corpusveil.transforms.release.risk import epsilon_at

FILE = (inputs.work() if inputs.SMALLEST else inputs.ROOT / "docs") / "examples.md"
RISK, EPSILON, SEED, EACH, WORDS = 0.5, 10.0, 0, 4, range(10, 26)
"""How many texts of each kind, and of how many words those of gensim's package are."""
WRITTEN = {
    "Tickets": """
        I was charged twice for my subscription this month, please refund the second payment.
        The router you sent me does not turn on, and the light stays red after I press the button.
        My parcel was delivered to the wrong address last week and your driver did not leave a note.
        How do I reset my password? The link in your email has expired.
        The invoice for order 4471 shows the old price, can you send a correct one to our office?
        The app closes as soon as I open a photo on my new phone, since the update on Friday.
        I would like to cancel my hotel booking for two nights in June and get my deposit back.
        Nobody answers the phone at your store, and I have waited three weeks for the washing machine.
    """,
    "Notes of a doctor": """
        Patient is a 54 year old man with chest pain that began two hours ago and goes to the left arm.
        She was given antibiotics for a throat infection and comes back with a rash on both arms.
        Blood pressure is still high, so we doubled the dose and will see him again in four weeks.
        The child fell from a swing, there is no fracture, and the wound was cleaned and closed.
        Mother reports fever and cough for three days, the lungs are clear and the ears look fine.
        Known diabetes and kidney disease, complains of tiredness, we took blood and stopped one drug.
        He stopped smoking last year, drinks little, and walks to work every morning without any pain.
        After surgery on the knee she slept badly, takes a pill for pain at night and feels dizzy.
    """,
    "Chat": """
        hey are you coming to the party on saturday or do you have to work again
        my sister had her baby last night, it is a girl and they are both doing well
        i lost my keys on the bus yesterday and my landlord wants fifty dollars for new ones
        can you pick up the kids from school today, my train is late and i am still in the city
        we broke up, he moved out on sunday and took the dog with him
        the exam was so hard, i think i failed the second part but i do not really care any more
        do not tell mom but i quit my job this morning, i just could not stand my boss
        dinner at our place on friday, bring some wine and that cheese cake you made last time
    """,
}
HEAD = """# Twenty texts

Four texts of each of five kinds, chosen by a seed: as written, with words drawn (`ring-geometric` on `en` at risk
{risk:g}, ε = {at:.2g} a word), and with a passage for a passage (`--store en --epsilon {epsilon:g}`, whole texts).
*Reviews* and *news* are sentences of {first} to {last} words that gensim's package ships; the others were written for
this page before they were released, and before the store had such texts, whose subjects were listed by somebody who
knew these. One key, first draw. `python -m benchmarks examples` writes this page.

**No line of a passage was written by the author of its row: it may keep topic, and keeps no fact.** [Who read them
blind](evaluation-figures.md#a-blind-reading) found this.
"""


def run() -> list[Table]:
    law, store = cv.RingGeometric(cv.load_space("en")), cv.load_store("en")
    key = cv.Key(hashlib.sha256(b"examples").digest())
    at = epsilon_at(law, RISK, cv.TextPolicy()).epsilon
    words = cv.Release(law, cv.Budget(at), key=key)
    passages = cv.PassageRelease(cv.PassageExchange(store), EPSILON, key=key)
    page = [HEAD.format(risk=RISK, at=at, epsilon=EPSILON, first=WORDS[0], last=WORDS[-1])]
    for kind, texts in kinds().items():
        rows = zip(texts, cv.privatize(texts, words, cv.RowNumbers(kind)), released(passages, texts, kind), strict=True)
        page.append(f"## {kind}\n\n| as written | words drawn | a passage for a passage |\n|---|---|---|")
        page += ["| " + " | ".join(text.replace("*", r"\*") for text in row) + " |" for row in rows]
        page[-1] += "\n"
    FILE.write_text("\n".join(page), encoding="utf-8")
    return [Table(f"{FILE.name} is written", ())]


def kinds() -> dict[str, list[str]]:
    """Return some texts of each kind."""
    from gensim.test.utils import datapath

    def lines(name: str) -> list[str]:
        return Path(datapath(name)).read_text(encoding="utf-8", errors="replace").splitlines()

    rng = np.random.default_rng(SEED)
    own = {kind: [line.strip() for line in texts.strip().splitlines()] for kind, texts in WRITTEN.items()}
    reviews = sentences([line.partition(" ")[2] for line in lines("pang_lee_polarity.cor")])
    return {kind: some(texts, rng) for kind, texts in {**own, "Reviews": reviews, "News": sentences(news())}.items()}


def some(texts: Sequence[str], rng: np.random.Generator) -> list[str]:
    return [texts[at] for at in np.sort(rng.permutation(len(texts))[:EACH])]


def sentences(texts: Sequence[str]) -> list[str]:
    """Return the sentences of plain ASCII and of so many words."""
    pieces = [" ".join(piece.split()) for text in texts for piece in re.split(r"(?<=[.!?])\s+", text)]
    return [piece for piece in pieces if len(piece.split()) in WORDS and piece.isascii() and "|" not in piece]


__all__ = ["run"]

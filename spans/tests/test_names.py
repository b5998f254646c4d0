"""Names in their places: recall of planted names, what is taken for none, and equal results in any batch."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from faker import Faker

import corpusveil as cv
from corpusveil.spaces.vectors import Vectors
from corpusveil.text.tokens import Tokenizer
from corpusveil.text.word_table import WordTable
from corpusveil_spans.names import Names

LOCALES = ["en_US", "en_GB", "de_DE", "fr_FR", "es_ES", "it_IT", "pl_PL", "tr_TR", "sv_SE", "cs_CZ", "ru_RU"]
PLACES = {
    0.97: [
        "Hi {}, it is lost.", "Dear {},\nit broke.", "Hello {}!", "It broke.\n\nBest,\n{}", "Kind regards\n{}",
        "Please help. Thanks, {}", "Thanks for your help,\n{}", "Hi, this is {}, it broke.", "My name is {} and I",
        "I am {} from flat 4.", "From: {}\nSubject: refund", "Name: {}", "Mit freundlichen Grüßen\n{}",
        "je m'appelle {}.",
    ],
    0.9: ["I spoke with {} about the order last week.", "please ask {} to call me back", "It is late. {} said so."],
}  # fmt: skip
"""Places of a name, and the share of names that is found there."""


@pytest.fixture(scope="module")
def names() -> Names:
    return Names(cv.load_space("en"))


def found(names: Names, texts: list[str]) -> list[list[str]]:
    words = names.space.vocabulary
    tokens = Tokenizer(WordTable.build(words.text, words.offsets)).tokenize(texts)
    spans = names(tokens)
    lists: list[list[str]] = [[] for _ in texts]
    for start, end in zip(spans.starts, spans.ends, strict=True):
        document = int(np.searchsorted(tokens.documents, start, side="right")) - 1
        lists[document].append(tokens.data[start:end].tobytes().decode())
    return lists


def _planted(templates: list[str], change: str = "__str__") -> list[tuple[str, str]]:
    rows = []
    for locale in LOCALES:
        faker = Faker(locale)
        faker.seed_instance(5)
        for k in range(60):
            name = getattr(f"{faker.first_name()} {faker.last_name()}", change)()
            name = name if k % 2 else name.split()[0]
            rows.append((name, templates[k % len(templates)].format(name)))
    return rows


def _recall(names: Names, rows: list[tuple[str, str]]) -> float:
    lists = found(names, [text for _, text in rows])
    return sum(any(name in span for span in spans) for (name, _), spans in zip(rows, lists, strict=True)) / len(rows)


def test_names_are_found_in_their_places(names: Names) -> None:
    """*Sarah* is a word of the vocabulary, and its commonest place is where a line or a sentence begins."""
    for least, templates in PLACES.items():
        assert _recall(names, _planted(templates)) > least, templates
    assert _recall(names, _planted(PLACES[0.9], "lower")) < 0.5, "the check can fail"


CASES = {
    # words count by capital and place
    "Best,\nWill": ["Will"],
    "Dear Grace,\nthank you": ["Grace"],
    "Dear Mr. Young, call Mrs May": ["Young", "May"],
    "I saw Mark there. Will you come? Mark the date.": ["Mark"],
    "Mark Young said so, and Will Smith": ["Mark Young", "Will Smith"],
    "In May the hill was green, young and old": [],
    "Thanks for your help,\nRiver": ["River"],
    # lines, lists and marks: as people sign, greet two, quote, fill in forms and chat
    "It broke.\n\nGrace": ["Grace"],
    "It broke.\n\nZorblat\nSent from my phone": ["Zorblat"],
    "It broke.\nZorblat Hill (Mrs)": ["Zorblat Hill"],
    "It broke.\n\nConclusion\n\nThe Support Team": [],
    "Zorblat,\nplease see below": [],  # the first line of a text is no line of its own
    "Subject: refund\n\nRuby,\nplease see below": ["Ruby"],
    "Good morning Zorblat and Grace, hello": ["Zorblat", "Grace"],
    "Dear Zorblat, dear Quuxley, it broke": ["Zorblat", "Quuxley"],
    "> Hi Grace,\n> it broke.\n> Thanks,\n> Will": ["Grace", "Will"],
    "Received by (print name): Zorblat\nDriver: A. Quuxley": ["Zorblat", "A. Quuxley"],
    "Yours faithfully\nI. Zorblat": ["I. Zorblat"],
    "please ask Zorblat B. about it": ["Zorblat B"],
    "[10:12] Zorblat: hi\n[10:13] Agent: hello": ["Zorblat"],
    "It broke. Please call. Zorblat": ["Zorblat"],
    "Zorblat here from accounts": ["Zorblat"],
    "Hi Zorblat\u2028Thanks\x0bQuuxley": ["Zorblat", "Quuxley"],
    "Zorblat\tQuuxley\tGrace Lee\t4": ["Grace Lee"],
    "Best\nZorblat\nP.S. Call me": ["Zorblat"],
    "Menu\nCaesar Salad\nPage: 3\nGrant: 500": [],
    # runs end where names end
    "we met Zorblat Quuxley, who left": ["Zorblat Quuxley"],
    "this is J. R. Zorblat there": ["J. R. Zorblat"],
    "my name is Anne-Zorblat Quux-Smith now": ["Anne-Zorblat Quux-Smith"],
    "I met Zorblat's son, and asked O’Quuxley’s": ["Zorblat's", "O’Quuxley’s"],
    "Regards,\nSmith Zorblat\nSenior Manager": ["Smith Zorblat"],
    "we met Şazime Güçlüoğlu and Jean-Luc Picard": ["Şazime Güçlüoğlu", "Jean-Luc Picard"],
    "Ludwig van Beethoven, Maria de la Cruz, Ahmed al-Rashid": [
        "Ludwig van Beethoven", "Maria de la Cruz", "Ahmed al-Rashid",
    ],
    "From: Sarah Lee\nTo: Zorblat Hill, Bob Stone\nSubject: Refund Request": [
        "Sarah Lee", "Zorblat Hill", "Bob Stone",
    ],
    "HI, THIS IS KEVIN O'NEILL FROM FLAT 4. ASK SARAH LEE": ["KEVIN O'NEILL", "SARAH LEE"],
    "hi, this is sarah lee and she is young": ["sarah lee"],
    "merger of the Zorblat company with YouTube or NATO": [],
    "J": [],
    "": [],
    # an initial, a possessive and small letters tell a name
    "the driver H. Lindner has the parcel of the U.S. army": ["H. Lindner"],
    "I saw Michael's phone": ["Michael's"],
    "i spoke with kevin yesterday, my wife sarah is home": ["kevin", "sarah"],
}  # fmt: skip


def test_each_name_is_found_in_its_place_and_as_far_as_it_goes(names: Names) -> None:
    for (text, expected), spans in zip(CASES.items(), found(names, list(CASES)), strict=True):
        assert spans == expected, text


def test_few_runs_of_public_text_without_names_are_taken_for_names(names: Names) -> None:
    text = (
        "The delivery was late again. I've called twice, and They said that it's on its way! However, nothing came. On "
        "Monday I wrote to the office in London. In May the price went up. She'll see; That's all. I am English, and "
        "the President of the United States met the Prime Minister there. We had a good time in New York. "
        "Dear Customer,\nHello World. Hi there. Best Regards,\nThe Support Team\nThis is London. Thanks! Please call. "
    )
    assert found(names, [text * 20]) == [[]]


def test_a_part_of_a_name_is_found_again_in_its_document(names: Names) -> None:
    """Wherever it stands, in any case after a cue; not in another document, and no word that means something else."""
    texts = [
        "Dr Brijesh Zorblat came. Zorblat was late, so was Brijesh, and ZORBLAT and zorblat.", "Zorblat was late.",
        "Best,\nMay Quuxley\n\nQuuxley's phone broke. May was fine.", "The bag of Zorblat Quux. ZORBLAT, quux.",
        "From: Zorblat Quux\n\nzorblat's phone broke, QUUX WAITS",
    ]  # fmt: skip
    assert found(names, texts) == [
        ["Brijesh Zorblat", "Zorblat", "Brijesh", "ZORBLAT", "zorblat"], [], ["May Quuxley", "Quuxley's"],
        ["Zorblat Quux"], ["Zorblat Quux", "zorblat's", "QUUX"],
    ]  # fmt: skip
    long = " ".join(f"I met Mr. Quux{letter * 9} there." for letter in "abcdefghijklmnopqrstuvwxyz" * 4)
    assert len(found(names, [f"{long} Zorblat. {long}"])[0]) == 2 * 104, "the latest names are remembered"


def test_what_a_cue_told_is_found_again_even_if_it_is_a_word(names: Names) -> None:
    """At the beginning of a sentence, too; not where it is a part of another name, nor in small letters."""
    for text, expected in {
        "Hi, this is Rajesh King, it broke. Rajesh can wait. King said so.": ["Rajesh King", "Rajesh", "King"],
        "Pt Will Park seen today. Park denies pain, and the park is near Park Street.": ["Will Park", "Park"],
        "Dr. House was kind. I like House. The house is new.": ["House", "House"],
        "my name is martine lopez and martine waits": ["martine lopez", "martine"],
        "Ann Page came. Page 3 is missing, see page 4.": ["Ann Page", "Page"],
        "We met in Hyde Park. Park there. House prices rise.": [],
    }.items():
        assert found(names, [text]) == [expected], text


def test_suffixes_firms_words_small_titles_and_speakers(names: Names) -> None:
    cases = {
        "I saw Robert Downey Jr. there.": ["Robert Downey Jr"], "Ask Ann Lee, Sr., or John Lucas III.": [
            "Ann Lee, Sr", "John Lucas III"],
        "I spoke with Anna Park and asked Linda House.": ["Anna Park", "Linda House"],
        "We met in Stanley Park and at Brooks House.": [], "King's Bank said so.": [],
        "dear mr smith, it broke": ["smith"], "please ask mrs. zorblat again": ["zorblat"], "hi dr Smith": ["Smith"],
        "the doctor will see you, a dr visit, mr and mrs": [], "ordinary MS sufferers": [],
        "12/03/2024, 10:15 - Zorblat Quux: where is it?": ["Zorblat Quux"], "[10:15] zorblat: hi": ["zorblat"],
        "<zorblat> is it open?": ["zorblat"], "1\n00:00:01,000 --> 00:00:04,000\n<v Zorblat>hi": ["Zorblat"],
        "Zorblat [10:15 AM]\nwhere is it?": ["Zorblat"], "Zorblat: is it open?": ["Zorblat"],
        "Zorblat — Today at 10:15 AM\nhi": ["Zorblat"], "Zorblat, [12.03.2024 10:15]\nhi": ["Zorblat"],
        "Zorblat (2024-03-12 10:15): hi": ["Zorblat"], "> Zorblat: hi": ["Zorblat"],
        "Zorblat 3 weeks ago at 10:15": [], "Kick-off 10:15": [],
        "10:15 - ~\u202fZorblat: hi": ["Zorblat"], "[Zorblat]: hi\n**Quuxley**: ok": ["Zorblat", "Quuxley"],
        "10:15:22 From Zorblat Quux to Everyone: hi": ["Zorblat Quux"], "at 7:40 am from Sacramento to Anaheim": [],
        "20/6/2017 8:28 p. m. - Zorblat: hi": ["Zorblat"], "[31/12/2019, 2:14:40 a.m.] Zorblat: hi": ["Zorblat"],
        "Telefon: 1234567\nGeburtsdatum: 12.03.1984\n* Zorblat: sold": [], "From Jun 3 on": [],
        "Ask Robert Lang jun. and Robert Lang sen.": ["Robert Lang jun", "Robert Lang sen"],
        "This is Amazing! I am Vegan, it is Broken": [], "my name is Amazing, I am Quuxley": ["Amazing", "Quuxley"],
        "[10:15] server: hi": [], "<p>is it open?</p>": [], "Total 10:15": [],
        "Sent on Jan 12, Thu 10:15, from Jan to Jun, am 3. Mai": [], "IBAN: DOB: Thu, 4 Jan 2024": [],
        "Hi Jan, this is June.": ["Jan", "June"],
    }  # fmt: skip
    for text, expected in cases.items():
        assert found(names, [text]) == [expected], text


def test_family_names_by_how_public_text_writes_them(names: Names) -> None:
    """One that has nearly always a capital is masked wherever it has one; a word, or a place, by what stands there."""
    for name in ("Pearson", "Gallagher", "Figueredo", "Strickland", "Banerjee", "Iyer", "Ochieng"):
        for text in ("we saw {} at the gate", "Hi {}, it leaks", "my name is {}", "paid by {} in cash"):
            assert found(names, [text.format(name)]) == [[name]], (name, text)
    for name in ("Bishop", "Page", "Boston", "Sheffield"):
        assert found(names, [f"Hi {name}, it leaks", f"the {name} was late"]) == [[name], []], name
    for name in ("Suresh Iyer", "Lakshmi Nair", "Arjun Kapoor", "Ngozi Balogun", "Kavita Rao"):
        assert found(names, [f"a letter from {name} came", f"{name} was late"]) == [[name], [name]], name


def test_family_names_first_in_fields_and_with_particles(names: Names) -> None:
    cases = {
        "Quuxley, Grace": ["Quuxley", "Grace"], "the list: Zorblat, A., and others": ["Zorblat"],
        "Surname: Zorblat\nForename: Quux": ["Zorblat", "Quux"], "PV1|1||Page^Zorblat^J": ["Page", "Zorblat"],
        '{"surname": "Page", "first_name": "Hope"}': ["Page", "Hope"], "<last>Zorblat</last>": ["Zorblat"],
        "familyName=Zorblat&x=Page": ["Zorblat"], "she saw ter Haar and de Groot": ["ter Haar", "de Groot"],
        "my name is van der Zorblat": ["van der Zorblat"], "we met Lotte op den Bosch": ["Lotte op den Bosch"],
        "In Santa Barbara, New Zealand and San Jose": [], "x^Y^Zone, to the van": [],
        "Alzheimer's disease, Fabry disease, Kaufman syndrome": [], "Fabry said so, and Kaufman": ["Fabry", "Kaufman"],
    }  # fmt: skip
    for text, expected in cases.items():
        assert found(names, [text]) == [expected], text


def test_what_is_found_in_a_document_depends_on_it_alone(names: Names) -> None:
    texts = [text for _, text in _planted(PLACES[0.97])[::7]]
    texts += [
        "is Page",
        "am de Wit",
        "^Page",
        "van",
        "de",
        "New",
        "York, Ann",
        '"',
        "Page's",
        "I am",
        "zorblat",
        "Hi",
        "sarah lee",
        "Dr.",
        "ra",
        "Quuxley",
        "Best,",
        "River",
        "...",
        "",
    ]
    together = found(names, texts)
    assert together == [found(names, [text])[0] for text in texts]
    assert found(pickle.loads(pickle.dumps(names)), texts) == together


def test_the_vocabulary_decides_only_about_words_that_no_list_has() -> None:
    """The same names are found by a space that knows them as usual words and by one that does not."""
    words = ["the", "sarah", "lee", "will", "zorblat", "called"]
    vectors = np.random.default_rng(0).normal(size=(len(words), 4)).astype(np.float32)
    spaces = [
        cv.build_space(Vectors(some, vectors[: len(some)]), counts=np.full(len(some), 100))
        for some in (words, ["the", "a"])
    ]
    text = "I met Will there. Sarah Lee called. Hi, this is Zorblat. Best,\nZorblat"
    expected = ["Will", "Sarah Lee", "Zorblat", "Zorblat"]
    assert [found(Names(space), [text])[0] for space in spaces] == [expected, expected]

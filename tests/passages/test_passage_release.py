"""Releases by passages: only public pieces are written, equal on every engine, and counted as they are promised."""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import corpusveil as cv
from corpusveil.passages.encoder import mean_vectors
from corpusveil.passages.passage_exchange import PassageExchange
from corpusveil.passages.pieces import pieces_of
from corpusveil.storage.documents import Documents
from corpusveil.storage.rows import Columns
from corpusveil.text.tokens import string_buffers
from tests.calls import QUIET, fails, privatize_corpus, refused, succeeds
from tests.engines.corpora import TEST_KEY, WORDS, data_files, make_space, write_shard
from tests.passages.stores import FIGURES, PIECES, passage_release, small_store

PER: tuple[Any, ...] = ("document", "paragraph", "sentence")
MAIL = """Hi Tom,

the router that you sent to me last week is broken again and I want
my money back, please. Mr. Smith told me so!
Thanks,
Ann

> on monday you wrote
- milk
1. eggs"""
PLANTED = ("Zebulon", "555-0199", "hunter2", "ada@example.org")


def texts(count: int) -> list[str | None]:
    """Return texts of one to three sentences with planted secrets; some are empty or missing."""
    made: list[str | None] = []
    for number in range(count):
        parts = [
            f"{' '.join(WORDS[number + at : number + at + 5]).capitalize()} {PLANTED[at]}." for at in range(number % 4)
        ]
        made.append(None if number % 11 == 7 else " ".join(parts))
    return made


class TestPieces:
    def split(self, text: str, per: Any, most: int | None = None) -> list[str]:
        tokenizer = mean_vectors(small_store().space).tokenizer
        found = pieces_of(tokenizer, *string_buffers(pa.array([text], pa.large_string())), per, most)
        return [found.text(piece) for piece in range(len(found))]

    def test_wrapped_lines_are_one_sentence_and_items_are_their_own(self) -> None:
        assert self.split(MAIL, "sentence") == [
            "Hi Tom,",
            "the router that you sent to me last week is broken again and I want my money back, please.",
            "Mr. Smith told me so!", "Thanks,", "Ann", "> on monday you wrote", "- milk", "1. eggs",
        ]  # fmt: skip
        assert len(self.split(MAIL, "paragraph")) == 3
        assert self.split(MAIL, "document") == [MAIL]
        dos = self.split(MAIL.replace("\n", "\r\n"), "sentence")
        assert [" ".join(piece.split()) for piece in dos] == self.split(MAIL, "sentence")

    def test_quotations_are_wrapped_as_mail_is_and_items_headings_and_tables_are_a_piece_a_line(self) -> None:
        long = "and this line is as long as lines of mail are when they are wrapped"
        for text, pieces in (
            (f"> {long}\n> Here it goes on. Next.\n>> Deeper", ["> … Here it goes on.", "Next.", ">> Deeper"]),
            (f"> {long}\nHere is an answer", ["> …", "Here is an answer"]),
            (f"> > {long}\n>> Here it goes on\n>\n> bye", ["> > … Here it goes on", ">", "> bye"]),
            (f"{long}:\na) milk\nB) eggs\n(1) one\n+ two\n\u2013 three\n\u2022 four\n12. five", 8),
            (f"# {long}\nThe text", ["# …", "The text"]),
            (f"{long}\n\u201cThis\u201d goes on", 1), (f"{long}\n(so does this)", 1),
            ("| a | b |\n| c | d |", 2),
            ("for x in y:\n    print(x)\n\treturn", 3),
            (f"{long}\n", 1), ("\n>\n\n> >", 2), (">", 1), ("a)", 1), ("(", 1),
        ):  # fmt: skip
            made = [" ".join(piece.split()).replace(long, "…") for piece in self.split(text, "sentence")]
            assert pieces in (made, len(made)), (text, made)

    def test_the_most_pieces_hold_all_that_follows(self) -> None:
        assert self.split("One. Two. Three. Four.", "sentence", 2) == ["One.", "Two. Three. Four."]
        assert self.split("One. Two.", "sentence", 5) == ["One.", "Two."]

    def test_a_text_of_blanks_has_no_sentence_and_is_one_whole_text(self) -> None:
        for text in ("", " \n\t"):
            assert [len(self.split(text, per)) for per in PER] == [1, 0, 0]


class TestVectors:
    def test_are_of_their_words_alone_whatever_else_there_is(self) -> None:
        encoder = mean_vectors(small_store().space)
        given = [PIECES[3], f"  {PIECES[3].upper()} 17 zzyzx :)", "", "zzyzx 17", " ".join(WORDS) * 40]
        vectors = encoder.encode(pa.array(given, pa.large_string()))
        assert (vectors[0] == vectors[1]).all()
        assert not vectors[2:4].any()
        lengths = np.sqrt((vectors[[0, 4]].astype(int) ** 2).sum(axis=1))
        assert (abs(lengths - 127) < 3).all()


class TestTheKernel:
    @pytest.mark.parametrize("per", PER)
    def test_writes_pieces_of_the_store_and_nothing_else(self, per: Any) -> None:
        """No planted name, number or password, and as many pieces as the text has; null stays null."""
        given = texts(200)
        made = cv.privatize(given, passage_release(per), cv.RowNumbers("all"))
        tokenizer = mean_vectors(small_store().space).tokenizer
        plain = pa.array([text or "" for text in given], pa.large_string())
        sizes = np.diff(pieces_of(tokenizer, *string_buffers(plain), per).offsets)
        between = {"document": None, "paragraph": "\n\n", "sentence": ". "}[per]
        for text, size, out in zip(given, sizes, made, strict=True):
            assert (out is None) == (text is None)
            parts = [out] if between is None else [] if not out else str(out).replace(between, ".\0").split("\0")
            assert out is None or (len(parts) == size and set(parts) <= set(PIECES)), (text, out)

    def test_draws_the_same_in_any_batch_and_process_and_other_noise_for_an_edit(self) -> None:
        given, release = texts(120), passage_release("sentence")
        whole = cv.privatize(given, release, cv.RowNumbers("a"))
        again = pickle.loads(pickle.dumps(release.kernel()))
        for first in range(0, 120, 7):
            ids = [("a", number) for number in range(first, min(first + 7, 120))]
            made, _ = again.apply(Documents(pa.array(given[first : first + 7], pa.large_string()), ids))
            assert made.to_pylist() == whole[first : first + 7]
        edited = cv.privatize([f"{text} x" for text in given], release, cv.RowNumbers("a"))
        assert sum(one != other for one, other in zip(whole, edited, strict=True)) > 40

    def test_gives_equal_pieces_equal_noise_only_if_asked(self) -> None:
        """A footer in many texts could be averaged; the same noise discloses which pieces are equal."""
        given = [f"{' '.join(WORDS[number : number + 5])}. Sent from my phone." for number in range(60)]
        for duplicates, few in (("same-noise", True), ("independent", False)):
            made = cv.privatize(given, passage_release("sentence", duplicates=duplicates), cv.RowNumbers("f"))
            assert (len({str(text).split(". ")[1] for text in made}) == 1) == few

    def test_counts_documents_and_pieces_in_public(self) -> None:
        given = pa.array([PIECES[0], "zzyzx", None], pa.large_string())
        release = cv.PassageRelease(PassageExchange(small_store(), 1), 30.0, key=cv.Key(TEST_KEY))
        _, counts = release.kernel().apply(Documents(given, [0, 1, 2]))
        assert (counts.documents, counts.tokens_written) == (2, 2)
        assert set(counts.public()) == {"documents", "tokens"}


class TestTheBooks:
    @pytest.mark.parametrize(("per", "pieces"), [("document", 1), ("sentence", 3)])
    def test_a_text_of_n_pieces_spends_n_epsilon(self, tmp_path: Path, per: Any, pieces: int) -> None:
        """And again for other noise; a cap in nats refuses what would exceed it, of words too."""
        given = pa.table({"text": ["One two. Three four. Five six."], "person": ["ann"]})
        ledger = cv.Ledger(str(tmp_path / "ledger"), cap=6.0 * pieces + 1)
        call = {"ledger": ledger, "unit": "person", "ids": [1]}
        for _ in range(2):
            cv.privatize(given, passage_release(per), **call)
        with refused("cap-exceeded"):
            cv.privatize(given, passage_release(per, 5.0), **call)


class TestFiles:
    @pytest.fixture
    def corpus(self, tmp_path: Path) -> Path:
        rows = [{"id": number, "text": text, "stars": number % 5} for number, text in enumerate(texts(300))]
        for shard in range(3):
            write_shard(tmp_path / "in" / f"{shard}.jsonl", rows[shard::3])
        return tmp_path

    @pytest.mark.spark
    @pytest.mark.xdist_group("spark")
    def test_every_engine_writes_the_same_bytes_and_nothing_private(self, corpus: Path) -> None:
        found: list[list[bytes]] = []
        columns = Columns("text", "id", ("stars",))
        for name, engine in (
            ("one", cv.Local()),
            ("two", cv.Local(workers=2)),
            ("beam", cv.Beam()),
            ("spark", cv.Spark()),
        ):
            out = corpus / name
            privatize_corpus(passage_release("sentence"), [str(corpus / "in")], str(out), engine, columns=columns)
            found.append([path.read_bytes() for path in data_files(out)])
            shown = (out / "manifest.json").read_text() + (corpus / f"{name}.report.html").read_text()
            assert not any(word in shown or word.encode() in b"".join(found[-1]) for word in PLANTED)
        assert all(some == found[0] for some in found)
        frame = pd.DataFrame([json.loads(line) for line in (corpus / "in" / "0.jsonl").read_text().splitlines()])
        made = cv.privatize(frame["text"].tolist(), passage_release("sentence"), frame["id"].tolist())
        assert [json.loads(line)["text"] for line in found[0][0].splitlines()] == made
        manifest = json.loads((corpus / "one" / "manifest.json").read_text())
        assert manifest["store"] == {"licence": "CC0-1.0", "similarity": 0.5269}
        assert manifest["configuration"]["store"] == small_store().digest
        assert f"{manifest['documents']} documents, {manifest['tokens']} passages;" in shown
        assert any("No line of this was written by the author" in line for line in manifest["guarantee_in_words"])

    def test_the_command_is_the_call_and_resumes(self, corpus: Path) -> None:
        cv.Key(TEST_KEY).save(str(corpus / "key"))
        store = small_store().url
        call = ["privatize", corpus / "in", "--store", store, "--epsilon", "6", "--id", "id", "--key", corpus / "key"]
        call += QUIET
        out = succeeds(*call, "--output", corpus / "out").out
        assert "any two texts by at most 6" in out
        named = cv.release(store=str(store), epsilon=6, key=cv.Key(TEST_KEY))
        assert json.loads((corpus / "out" / "manifest.json").read_text())["release"] == named.digest
        again = succeeds(*call, "--output", corpus / "out").out
        assert "nothing was left to do" in again
        shown = " ".join(succeeds("preview", corpus / "in", "--store", store).out.split())
        assert "No line of this was written by the author" in shown
        for options, code, name in (
            (["--risk", "0.5"], "wrong-setting", "--risk"),
            (["--numbers", "mask"], "wrong-setting", "--numbers"),
            (["--spans", "rules"], "wrong-setting", "--spans"),
            (["--per", "token"], "wrong-setting", "--per"),
            (["--most-pieces", "3"], "wrong-setting", "--most-pieces"),
        ):
            fails([*call, *options, "--output", corpus / "no"], code, name)
            assert not (corpus / "no").exists()

    def test_a_store_has_its_space_and_works_with_it_wherever_that_is_saved(self, corpus: Path, tmp_path: Path) -> None:
        """No other address that is written in a store is followed; workers open both."""
        space = make_space(tmp_path / "here")
        store = cv.Store.from_texts(small_store().texts, space, {"licence": "CC0-1.0", **FIGURES}).save(
            tmp_path / "store"
        )
        shutil.move(tmp_path / "here", tmp_path / "there")
        call = ["privatize", corpus / "in", "--store", store.url, "--epsilon", 6, "--id", "id", "--test-key", *QUIET]
        written = Path(str(store.url)) / "_artifact.json"
        written.write_text(written.read_text().replace('"path": "space"', f'"path": "{tmp_path}/secret"'))
        assert cv.load_store(str(store.url)).space == space
        succeeds(*call, "--space", tmp_path / "there", "--workers", 2, "--output", corpus / "out")
        assert len(list(data_files(corpus / "out"))) == 3

    @pytest.mark.parametrize("engine", [cv.Local(), cv.Beam()], ids=["local", "beam"])
    def test_a_column_says_that_each_passage_is_public_if_it_is_asked_for(self, corpus: Path, engine: Any) -> None:
        release = cv.PassageRelease(cv.PassageExchange(small_store()), 6.0, key=cv.Key(TEST_KEY))
        for form, read in (("jsonl", pd.read_json), ("csv", pd.read_csv), ("parquet", pd.read_parquet)):
            out = corpus / f"marked-{form}"
            cv.privatize_corpus(corpus / "in", out, release, engine, id="id", format=form, mark_source=True)
            for path in (out / "data").iterdir():
                frame = read(path, **({"lines": True} if form == "jsonl" else {}))
                assert list(frame.columns) == ["text", "source"]
                assert set(frame["source"]) == {"public"}
            assert "differences  none" in succeeds("verify", out).out
        words = cv.Release(cv.RingGeometric(small_store().space), cv.Budget(1.0), cv.TextPolicy(), key=cv.Key(TEST_KEY))
        with pytest.raises(cv.UserError, match="mark_source"):
            cv.privatize_corpus(corpus / "in", corpus / "no", words, engine, id="id", mark_source=True)
        assert not (corpus / "no").exists()

    def test_a_store_that_was_made_of_the_input_is_refused_before_anything_is_written(self, corpus: Path) -> None:
        write_shard(corpus / "own" / "0.jsonl", [{"text": text} for text in PIECES[:20]])
        with refused("wrong-setting", "accept_overlap"):
            cv.privatize_corpus(corpus / "own", corpus / "no", passage_release())
        assert not (corpus / "no" / "data").exists()


def test_a_release_is_what_decides_its_text() -> None:
    """Another store, K, epsilon, splitting or treatment of equal texts is another release; the key is in no digest."""
    base = passage_release("sentence")
    others = [passage_release(), passage_release("sentence", 7.0), passage_release("sentence", most_pieces=4),
              passage_release("sentence", duplicates="same-noise")]  # fmt: skip
    assert len({base.digest, *(release.digest for release in others)}) == 5
    assert base.digest == passage_release("sentence", accept_overlap=True).digest
    assert base.guarantee().plain_ldp == base.mechanism.exchange(6.0).epsilon
    for given, code, name in (
        ({"per": "word"}, "wrong-setting", "per"),
        ({"most_pieces": 0, "per": "sentence"}, "wrong-setting", "most_pieces"),
        ({"most_pieces": 3}, "wrong-setting", "most_pieces"),
        ({"duplicates": "all"}, "wrong-setting", "duplicates"),
        ({"epsilon": -1.0}, "wrong-setting", "epsilon"),
    ):  # fmt: skip
        with refused(code, name):
            passage_release(**given)


def test_a_store_is_opened_only_whole(tmp_path: Path) -> None:
    """A byte that was changed, or a missing file, is noticed."""
    store = small_store()
    again = cv.load_store(str(store.url))
    assert (again, len(again), again.texts.to_pylist()) == (store, len(store), PIECES)
    assert len(pickle.dumps(again)) < 500
    copy = cv.load_store(str(store.save(tmp_path / "copy").url))
    assert copy == store
    vectors = tmp_path / "copy" / "vectors.npy"
    vectors.write_bytes(vectors.read_bytes()[:-1] + b"\1")
    for harm in (lambda: None, vectors.unlink):
        harm()
        with refused("damaged-artifact", "copy"):
            cv.load_store(str(tmp_path / "copy"))
    with refused("missing-file", "corpusveil store"):
        cv.load_store(str(tmp_path))
    with refused("wrong-setting", "not a store"):
        cv.load_store(str(store.space.url))


def test_a_description_of_a_store_that_was_edited_is_refused_by_a_sentence(tmp_path: Path) -> None:
    store = small_store()
    written = Path(str(store.save(tmp_path / "copy").url)) / "_artifact.json"
    sound = json.loads(written.read_text())
    for edit in (
        {"space": {"path": str(store.space.url)}}, {"figures": None}, {"figures": {"like": 5}}, {"licence": "\x1b[31m"},
        {"figures": {"like": {"similarity": ["x"]}}}, {"figures": {"like": {"similarity": [float("nan")]}}},
        {"figures": {"like": {"overall": [1]}}}, {"attribution": 5}, {"encoder": None},
    ):  # fmt: skip
        written.write_text(json.dumps(sound | edit))
        with refused("damaged-artifact", "copy"):
            cv.load_store(str(tmp_path / "copy"), space=store.space)
    written.write_text(json.dumps(sound))
    with (tmp_path / "copy" / "vectors.npy").open("wb") as file:
        np.savez(file, store.vectors)
    with refused("damaged-artifact", "copy"):
        cv.load_store(str(tmp_path / "copy"))

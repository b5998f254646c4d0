"""Stores of public texts: what goes into one, which of it, that no engine or split matters, and what is measured."""

from __future__ import annotations

import itertools
import json
import pickle
import types
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import corpusveil as cv
from corpusveil.errors import WorkError
from corpusveil.jobs.beam import Beam
from corpusveil.jobs.local import Local
from corpusveil.jobs.spark import Spark
from corpusveil.passages.build import PublicPieces, build_store, hash_of
from corpusveil.passages.encoder import ENCODERS, LENGTH, encoder_of
from corpusveil.passages.store import load_store
from corpusveil.storage.rows import BLOCK_ROWS
from tests.calls import Halting, command, refused, succeeds
from tests.engines.corpora import release_files
from tests.passages.stores import OTHER, SALT, SENTENCES, content, passage_release, write

pytestmark = pytest.mark.xdist_group("spark")


class TestPieces:
    def fit(self, space: cv.Space, text: str, words: tuple[int, int] | None = (4, 12), *, excluded: str = "") -> Any:
        why: Counter[str] = Counter()
        return PublicPieces(space, words, tuple(excluded.split())).fit_pieces(
            pa.array([text], pa.large_string()), why
        ), [name.partition(": ")[2] for name in why if not name.startswith("documents")]

    def test_are_runs_of_sentences_that_reach_the_least_and_do_not_exceed_the_most(self, space: cv.Space) -> None:
        one, two, long = "It was cold.", "We went home early.", f"We saw {'a bird and ' * 6}a tree."
        for text, made in (
            (f"{one} {two}", [f"{one} {two}"]),
            (f"{two} {one}", [two]),
            (f"{one} {long} {two}", [two]),
            (f"{one}\n\n{two}", [two]),
            (f"{one}\n{two}", [two]),
            ("It was cold on that evening, and the rain of the\nwinter fell.", []),
            ("It was a late evening of\na cold winter.", ["It was a late evening of a cold winter."]),
            (f"{one}  \t {two}", [f"{one} {two}"]),
            ("It was cold. My name is Sarah. We left.", []),
            ("", []),
            ("\u200b \n", []),
        ):  # fmt: skip
            assert self.fit(space, text)[0] == made, text
        assert self.fit(space, f"{long} {one}", None)[0] == [f"{long} {one}"]

    def test_with_what_could_tell_of_somebody_are_refused_by_its_kind(self, space: cv.Space) -> None:
        for text, fault in (
            ("We paid 40 for the old chair.", "number"),
            ("He bought the b2b plan last week.", "number"),
            ("The area is x² of the old house.", "number"),
            ("Write to me@example.com about the chair.", "contact"),
            ("Look at https://example.com for the chair.", "contact"),
            ("The chair was very nice 😀 indeed.", "symbol"),
            ("The chair is\u202e broken again today.", "symbol"),
            *(
                (f"The house {marked} on a green hill.", "symbol")
                for marked in (
                    "was ''built''",
                    "was **built**",
                    "was _built_",
                    "was `built`",
                    "was ~~built~~",
                    "[was](built) built",
                    "was built&nbsp;there",
                    "| hill | stood",
                    "== hill == stood",
                    "was {built}",
                    "was #built",
                )
            ),
            ("My name is Sarah and I am tired.", "name"),
            ("Dear Ann, the chair is broken again.", "name"),
            ("The chair is of qwrtz wood.", "unknown words"),
            ("About our chairs and tables", "end"),
            ("We bought the chair and,", "end"),
            ("The turnip was eaten by a goat.", "excluded word"),
            ("The Turnip’s leaves were very green.", "excluded word"),
        ):
            assert self.fit(space, text, excluded="turnip") == ([], [fault]), text
            assert self.fit(space, text, None, excluded="turnip") == ([], [fault]), text
        for text in (
            'He said, "It is cold here."',
            "Is it cold here (in winter?)",
            "It is cold here…",
            "So it's cold here!",
        ):
            assert self.fit(space, text)[0] == [text], text

    def test_keep_out_the_words_that_the_package_left_out(self, space: cv.Space, tmp_path: Path) -> None:
        bad = (Path(__file__).parents[2] / "spaces/en/corpusveil_space_en/excluded.txt").read_text().split()[3]
        made = build_store(
            write(tmp_path / "in", [f"The river was a {bad} again.", *SENTENCES[:2]]), tmp_path / "out", space, "CC0"
        )
        assert made.info["refused"] == {"documents: no piece": 1, "sentences: excluded word": 1}
        assert made.info["excluded"] > 3000  # no digest, which words could be tried on

    def test_that_are_equal_are_one_in_the_spelling_that_sorts_first(self, space: cv.Space, tmp_path: Path) -> None:
        spellings = ["the river was cold.", "The river was cold!", "The river  was cold.", "The river, was cold."]
        for number, texts in enumerate((spellings, spellings[::-1])):
            made = build_store(
                write(tmp_path / f"{number}", [*texts, SENTENCES[0]], 2),
                tmp_path / f"out{number}",
                space,
                "CC0",
                salt=SALT,
            )
            assert sorted(made.texts.to_pylist()) == sorted(
                [min(" ".join(text.split()) for text in texts), SENTENCES[0]]
            )


class TestSamples:
    def test_of_any_split_are_equal_to_the_byte(
        self, corpus: str, space: cv.Space, reference: Path, tmp_path: Path
    ) -> None:
        texts = [json.loads(line)["text"] for path in sorted(Path(corpus).iterdir()) for line in path.open()]
        for shards in (1, 5):
            folder = tmp_path / f"in{shards}"
            build_store(write(folder, texts[::-1], shards), tmp_path / f"{shards}", space, "CC0", size=500, salt=SALT)
            assert content(tmp_path / f"{shards}") == content(reference), shards
        sparse = [text for text in texts for _ in range(-(-2 * BLOCK_ROWS // len(texts)))]
        large = write(tmp_path / "large", sparse)
        build_store(large, tmp_path / "rows", space, "CC0", size=500, salt=SALT, rows_per_task=BLOCK_ROWS)
        assert content(tmp_path / "rows") == content(reference)

    @pytest.mark.parametrize(
        "engine", [Local(2), Beam(), pytest.param(Spark("local[2]"), marks=pytest.mark.spark)]
    )  # fmt: skip
    def test_of_any_engine_are_equal_to_the_byte(
        self, corpus: str, space: cv.Space, reference: Path, tmp_path: Path, engine: Any
    ) -> None:
        build_store(corpus, tmp_path / "out", space, "CC0", size=500, salt=SALT, engine=engine)
        assert release_files(tmp_path / "out") == release_files(reference)

    def test_cannot_be_ground_without_the_salt(self, space: cv.Space, tmp_path: Path) -> None:
        """Who writes texts with small hashes under one salt fills the sample under that one, and no other."""
        ground = sorted(SENTENCES[:4000], key=lambda text: hash_of(text, bytes.fromhex(SALT)))[:400]
        source = write(tmp_path / "in", [*ground, *SENTENCES[8000:11600]])
        shares = {}
        for salt in (SALT, OTHER):
            made = build_store(source, tmp_path / salt, space, "CC0", size=300, salt=salt)
            shares[salt] = len(set(ground) & set(made.texts.to_pylist())) / 300
        assert shares[SALT] > 0.5
        assert abs(shares[OTHER] - 0.1) < 5 * (0.1 * 0.9 / 300) ** 0.5

    def test_have_a_salt_that_is_drawn_and_recorded(self, corpus: str, space: cv.Space, tmp_path: Path) -> None:
        made = [build_store(corpus, tmp_path / name, space, "CC0", size=20) for name in "ab"]
        salts = {store.info["salt"] for store in made}
        assert len(salts) == 2, "two stores have one salt"
        again = build_store(corpus, tmp_path / "c", space, "CC0", size=20, salt=made[0].info["salt"])
        assert again == made[0] != made[1]
        assert build_store(corpus, tmp_path / "a", space, "CC0", size=20) == made[0]


class TestWhatIsInterrupted:
    def test_goes_on_with_the_salt_that_was_drawn(self, corpus: str, space: cv.Space, tmp_path: Path) -> None:
        output = tmp_path / "out"
        with pytest.raises(WorkError):
            build_store(corpus, output, space, "CC0", engine=Halting(2))
        done = {path: path.stat().st_mtime_ns for path in output.glob("work/pieces/made/*")}
        (salt,) = (path.read_text() for path in output.glob("work/salt-*"))
        assert len(done) == 2

        class Watching(Local):
            def run(self, function: Any, tasks: Sequence[Any]) -> Any:
                assert len(tasks) == 1, "work was done again"
                return super().run(function, tasks)

        made = build_store(corpus, output, space, "CC0", engine=Watching())
        assert made.info["salt"] == salt
        assert not (output / "work").exists()
        fresh = build_store(corpus, tmp_path / "fresh", space, "CC0", salt=salt)
        assert release_files(output) == release_files(tmp_path / "fresh")
        assert fresh == made


class TestErrors:
    def test_are_sentences_and_leave_nothing(self, corpus: str, space: cv.Space, tmp_path: Path) -> None:
        """Each names the argument or the file."""
        output = tmp_path / "out"
        for given, code, named in (
            ({"licence": " "}, "wrong-setting", "licence"),
            ({"licence": None}, "wrong-setting", "licence"),
            ({"licence": "CC0\nand more"}, "wrong-setting", "licence"),
            ({"words": (0, 4)}, "wrong-setting", "words"),
            ({"words": (9, 4)}, "wrong-setting", "words"),
            ({"words": "4-40"}, "wrong-setting", "words"),
            ({"size": 1}, "wrong-setting", "size"),
            ({"salt": "ab"}, "wrong-setting", "salt"),
            ({"inputs": str(tmp_path / "none.jsonl")}, "missing-file", "none.jsonl"),
            ({"words": (30, 31)}, "unsuitable-data", "0 passages"),
            ({"text": "body"}, "unsuitable-data", "body"),
        ):
            call: dict[str, Any] = {"inputs": corpus, "licence": "CC0"} | given
            with refused(code, named):
                build_store(output=output, space=space, **call)
            assert not (output / "_artifact.json").exists(), given


class TestTheCommand:
    def test_says_that_texts_are_released_word_for_word_and_asks_for_a_licence(
        self, corpus: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        call = ["store", corpus, "--space", "en", "--output", "out", "--size", 50]
        assert "--licence" in command(*call).err
        made = succeeds(*call, "--licence", "CC0 1.0", "--words", "4-9", "--salt", SALT, "--attribution", "nobody")
        assert "word for word" in made.err
        store = load_store(tmp_path / "out")
        assert len(store) == 50
        said = [store.info[name] for name in ("licence", "attribution", "salt", "words")]
        assert said == ["CC0 1.0", "nobody", SALT, [4, 9]]
        assert store.info["space"]["path"] == "space://en"
        assert (
            "already complete"
            in succeeds(*call, "--licence", "CC0 1.0", "--words", "4-9", "--salt", SALT, "--attribution", "nobody").err
        )


class TestEncoders:
    """Vectors of another kind: found by name, local, a text at a time, recorded, and never code that a file names."""

    class Tiny:
        version = "7"

        def encode(self, text: str) -> list[float]:
            return [text.count(letter) - 0.5 for letter in "aeiou"] if text != "Bad one." else [float("nan")] * 5

    @pytest.fixture(autouse=True)
    def installed(self, monkeypatch: pytest.MonkeyPatch) -> Any:
        monkeypatch.setitem(ENCODERS.entered, "tiny", self.Tiny())
        encoder_of.cache_clear()
        yield ENCODERS.entered
        encoder_of.cache_clear()

    def test_make_the_vectors_of_a_store_and_of_what_it_replaces(
        self, corpus: str, space: cv.Space, tmp_path: Path, installed: Any
    ) -> None:
        made = cv.build_store(corpus, tmp_path / "store", space, "CC0", size=300, salt=SALT, encoder="tiny")
        with refused("wrong-setting", "encoder tiny"):  # nobody's text is read by a package that a store names
            cv.load_store(tmp_path / "store")
        again = pickle.loads(pickle.dumps(cv.load_store(tmp_path / "store", encoder="tiny")))
        assert (again, again.encoder.name, again.vectors.shape) == (made, "tiny/7", (300, 5))
        assert (made.vectors == made.encoder.encode(made.texts)).all()
        assert made.vectors[0].tolist() == made.encoder.encode(made.texts.slice(0, 1))[0].tolist()
        assert abs(np.sqrt((made.vectors.astype(int) ** 2).sum(axis=1)) - LENGTH).max() < 2
        assert not made.encoder.encode(pa.array(["", " \n"], pa.large_string())).any()
        release = cv.PassageRelease(cv.PassageExchange(made, 1), 20.0, "sentence", key=cv.Key.for_tests())
        text = f"{SENTENCES[5]} {SENTENCES[77]}"
        near = [made.texts[made.search.several(made.encoder.encode(pa.array([some], pa.large_string())), 1)[0][0, 0]]
                for some in (SENTENCES[5], SENTENCES[77])]  # fmt: skip
        assert cv.privatize([text], release, ids=[1]) == [" ".join(map(str, near))]
        assert release.configuration()["encoder"] == "tiny/7"
        assert any("tiny/7" in line and "built-in" in line for line in release.guarantee().notes)
        assert not any("built-in" in line for line in passage_release().guarantee().notes)
        with refused("unsuitable-data", "tiny/7") as caught:
            cv.Store.from_texts(pa.array(["A good one.", "Bad one."], pa.large_string()), space, encoder="tiny")
        assert "Bad" not in str(caught.value)
        encoder_of.cache_clear()
        installed["tiny"] = self.Tiny  # the class: what a package names is often that
        assert cv.load_store(tmp_path / "store", encoder="tiny").encoder.name == "tiny/7"
        self.Tiny.version, text = "8", str(tmp_path / "store")
        encoder_of.cache_clear()
        with refused("wrong-setting", "encoder"):
            cv.load_store(text, encoder="tiny")
        self.Tiny.version = "7"
        del installed["tiny"]
        encoder_of.cache_clear()
        with refused("wrong-setting", "tiny", "install"):
            cv.load_store(text, encoder="tiny")

    def test_that_fail_or_make_no_numbers_are_named_by_a_sentence_that_quotes_no_text(
        self, space: cv.Space, installed: Any
    ) -> None:
        """Also those that make other numbers at each call, none, or more than a store can have."""
        texts, calls = pa.array(["Zzcanary one.", "Two."], pa.large_string()), itertools.count(1)

        def fails(text: str) -> Any:
            raise (SystemExit if text == "Two." else ValueError)(f"cannot read {text}")

        unsound = (fails, lambda text: [text, text], lambda _: [[1.0], [1.0, 2.0]], lambda _: [1j, 1j], lambda _: [1.0])
        every = [(lambda text, bad=bad: [1.0, 2.0] if text == "a text" else bad(text)) for bad in unsound]
        for encode, code in (
            *((encode, "unsuitable-data") for encode in every),
            *((encode, "missing-package") for encode in (
                lambda _: [], lambda _: np.ones(1041), lambda _: [1.0, next(calls)],
            )),
        ):  # fmt: skip
            installed["tiny"] = types.SimpleNamespace(version="1", encode=encode)
            encoder_of.cache_clear()
            with refused(code, "tiny") as caught:
                cv.Store.from_texts(texts, space, encoder="tiny")
            assert "anary" not in str(caught.value), str(caught.value)
        for scale in (1e-300, 1e300):  # whose squares are 0 or infinite
            installed["tiny"] = types.SimpleNamespace(version="1", encode=lambda _, scale=scale: [scale, scale])
            encoder_of.cache_clear()
            assert cv.Store.from_texts(texts, space, encoder="tiny").vectors.tolist() == [[90, 90]] * 2

    def test_a_store_names_no_code(self, space: cv.Space, tmp_path: Path) -> None:
        store = cv.Store.from_texts(pa.array(["It was cold.", "We went home."], pa.large_string()), space).save(
            tmp_path / "s"
        )
        description = tmp_path / "s" / "_artifact.json"
        for name in ("os:system", "../../x", "", "json"):
            description.write_text(description.read_text().replace(f'"{store.encoder.name}"', f'"{name}"'))
            with refused("wrong-setting"):
                cv.load_store(tmp_path / "s")
            description.write_text(
                description.read_text().replace(f'"encoder": "{name}"', f'"encoder": "{store.encoder.name}"')
            )

"""The pipeline of the documentation in Beam YAML: the texts of the command, on Beam's runners, without a key in it."""

from __future__ import annotations

import base64
import bz2
import dataclasses
import logging
import pickle
import re
import zlib
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apache_beam.yaml import main
from google.cloud import secretmanager

import corpusveil as cv
from corpusveil.pipelines.beam_yaml import PrivatizeFromFile
from corpusveil.sampling import draws
from corpusveil.storage import files
from corpusveil.transforms.beam import PrivatizeDocuments
from tests.calls import refused, succeeds
from tests.cells import note
from tests.contracts.engine import installed
from tests.engines.corpora import CANARIES, ROOT, TEST_KEY, Ground, make_release, rows
from tests.engines.table import Cell

RUNNERS = ["FnApiRunner", pytest.param("PrismRunner", marks=[pytest.mark.engines, pytest.mark.slow])]
PAGE = (ROOT / "docs" / "frames.md").read_text().partition("### Beam YAML")[2]
SECRET = "projects/p/secrets/s/versions/3"
LEDGER = '\n[ledger]\npath = "ledger"\nunit = ["stars"]\ncap = 1.0\n'


def block(kind: str) -> str:
    """Return the example of the page in a language."""
    (text,) = re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return str(text)


@pytest.fixture
def place(ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with what the example names; ``corpusveil`` in it stands for that of the installed packages."""
    (tmp_path / "spaces").mkdir()
    (tmp_path / "spaces" / "glove").symlink_to(ground.space_folder)
    (tmp_path / "corpusveil").symlink_to(ROOT / "corpusveil")
    (tmp_path / "release.toml").write_text(block("toml"))
    (tmp_path / "reviews.yaml").write_text(block("yaml"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CORPUSVEIL_KEY", TEST_KEY.hex())
    return tmp_path


def write_reviews(place: Path, *more: dict[str, Any]) -> pa.Table:
    """Write documents for the example, a text among them that is missing; return those that are sound."""
    given = [{"review_id": n, "review": row["text"], "stars": n % 5} for n, row in enumerate(rows(300, 1))]
    given[7]["review"] = None
    schema = pa.schema({"review_id": pa.int64(), "review": pa.string(), "stars": pa.int64()})
    pq.write_table(pa.Table.from_pylist([*given, *more], schema), place / "reviews.parquet")
    return pa.Table.from_pylist(given, schema)


def arguments(runner: str) -> list[str]:
    """Return what the example is called with."""
    more = [f"--prism_location={installed('prism')}"] if runner == "PrismRunner" else []
    return ["--yaml_pipeline_file=reviews.yaml", f"--runner={runner}", *more]


def keeps(runner: str, promise: str, outcome: str) -> None:
    if runner == "PrismRunner":
        note(Cell("yaml", version("apache-beam"), promise, outcome))


def written(folder: str) -> list[dict[str, Any]]:
    return [row for path in Path(folder).glob("*.parquet*") for row in pq.read_table(path).to_pylist()]


@pytest.mark.parametrize("runner", RUNNERS)
def test_the_texts_are_those_of_the_command(place: Path, ground: Ground, runner: str) -> None:
    """From files to files; a document without an id is in the second output, as it was."""
    secret = " ".join(CANARIES.values())
    sound = write_reviews(place, {"review_id": None, "review": secret, "stars": 1})
    main.run(arguments(runner))
    pq.write_table(sound, place / "sound.parquet")
    columns = ("--text", "review", "--id", "review_id", "--keep", "review_id", "--keep", "stars")
    succeeds(*ground.arguments("sound.parquet", "out", *columns))
    (made,) = Path("out/data").glob("*.parquet")
    expected = pq.read_table(made).to_pylist()
    assert sorted(written("private"), key=lambda row: row["review_id"]) == expected
    assert sum(row["review"] is None for row in expected) == 1
    assert sum(row["review"] != before for row, before in zip(expected, sound["review"].to_pylist(), strict=True)) > 200
    (error,) = written("errors")
    assert error["element"] == {"review_id": None, "review": secret, "stars": 1}
    assert "review_id: an id is missing" in error["msg"]
    assert not [word for word in CANARIES.values() if word in error["msg"] + error["stack"]]
    keeps(runner, "equal bytes", "equal")


@pytest.mark.parametrize("runner", RUNNERS)
def test_without_an_output_for_errors_the_pipeline_fails(place: Path, runner: str) -> None:
    """With the sentence, and without the document."""
    write_reviews(place, {"review_id": None, "review": CANARIES["e-mail"], "stars": 1})
    spec = (place / "reviews.yaml").read_text().replace("        error_handling: {output: errors}\n", "")
    without = spec[: spec.index("    - type: WriteToParquet\n      name: Errors")] + spec[spec.index("providers:") :]
    (place / "reviews.yaml").write_text(without)
    with pytest.raises(Exception, match="an id is missing; give every document an id") as raised:
        main.run(arguments(runner))
    assert CANARIES["e-mail"] not in str(raised.value)
    assert not written("private")
    keeps(runner, "error sentence", "one, or a second output")


@pytest.mark.parametrize("runner", RUNNERS)
def test_the_ledger_of_the_file_refuses_all(place: Path, runner: str) -> None:
    write_reviews(place)
    with (place / "release.toml").open("a") as file:
        file.write(LEDGER)
    with pytest.raises(Exception, match=r"stars exceed the cap\. Nothing was drawn or entered"):
        main.run(arguments(runner))
    assert not written("private")
    assert not cv.Ledger("ledger").spent().releases
    keeps(runner, "cap", "refused")


def graph(place: Path) -> bytes:
    """Return all that a runner is given of the example: graph, options and display data."""
    options, construct, display = main.build_pipeline_components_from_argv(arguments("FnApiRunner"))
    pipeline = beam.Pipeline(options=options, display_data=display)
    construct(pipeline)
    return proto(pipeline)


def proto(pipeline: beam.Pipeline) -> bytes:
    options = repr(pipeline.options.get_all_options()).encode()
    return bytes(pipeline.to_runner_api().SerializeToString(deterministic=True)) + options


def unpacked(data: bytes) -> Iterator[bytes]:
    """Yield data, and every function that is pickled in it: Beam compresses it and writes it as base64."""
    yield data
    for text in re.findall(rb"[A-Za-z0-9+/]{60,}={0,2}", data):
        for start in range(4):  # a length before the text may look like a part of it
            inside = base64.b64decode(text[start : len(text) - (len(text) - start) % 4])
            yield inside
            for magic, unpack in ((b"BZh", bz2.BZ2Decompressor), (b"x\xda", zlib.decompressobj)):
                if inside.startswith(magic):
                    yield unpack().decompress(inside)


def secrets_in(data: bytes, *secrets: bytes) -> list[bytes]:
    """Return those that are somewhere in the data, in any usual form."""
    parts = list(unpacked(data))
    forms = {secret: (secret, secret.hex().encode(), base64.b64encode(secret)[:-3]) for secret in secrets}
    return [secret for secret, of in forms.items() if any(form in part for form in of for part in parts)]


class Client:
    """Google's, with one secret."""

    def access_secret_version(self, name: str) -> Any:
        assert name == SECRET
        return secretmanager.AccessSecretVersionResponse(payload={"data": TEST_KEY})


class TestKey:
    @pytest.fixture
    def release(self, ground: Ground) -> cv.Release:
        return make_release(ground.space)

    @pytest.fixture
    def keys(self, release: cv.Release) -> tuple[bytes, ...]:
        """The key, and what the noise is drawn from."""
        key = release.kernel().draw_key
        return release.key.secret, key.aes, key.tag

    def test_it_is_nowhere_in_the_pipeline(
        self, place: Path, release: cv.Release, keys: tuple[bytes, ...], caplog: pytest.LogCaptureFixture
    ) -> None:
        """Nor in the log of the run. The control is a key without a place, whose derived keys go into the graph."""
        write_reviews(place)
        spec = (place / "reviews.yaml").read_text()
        capped = spec.replace("        keep:", "        cap: 10\n        unit: stars\n        keep:")
        capped = capped.replace("input: PrivatizeDocuments\n", "input: PrivatizeDocuments.good\n")
        with caplog.at_level(logging.DEBUG):
            main.run(arguments("FnApiRunner"))
            for text in (spec, capped):
                (place / "reviews.yaml").write_text(text)
                data = graph(place)
                assert b"CORPUSVEIL_KEY" in data
                assert any(b"_derived_again" in part for part in unpacked(data))
                assert secrets_in(data, *keys) == []
        assert secrets_in(caplog.text.encode(), *keys) == []
        pipeline = beam.Pipeline("FnApiRunner")
        _ = pipeline | beam.Create([{"id": 1, "text": "ba"}]) | PrivatizeDocuments(release, id="id")
        assert secrets_in(proto(pipeline), *keys) == [*keys[1:]]

    def test_a_worker_reads_it_at_its_place(
        self, ground: Ground, release: cv.Release, keys: tuple[bytes, ...], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Another key that it finds there is refused."""
        url = "memory://keys/release.key"
        files.write_bytes(url, TEST_KEY)
        monkeypatch.setenv("CORPUSVEIL_KEY", TEST_KEY.hex())
        monkeypatch.setattr(secretmanager, "SecretManagerServiceClient", Client)
        places = (("path", str(ground.key)), ("path", url), ("secret", SECRET), ("environment", "CORPUSVEIL_KEY"))
        assert secrets_in(pickle.dumps(release), *keys) == [TEST_KEY]
        for kind, name in places:
            key = cv.Key.at(kind, name)
            draw_key = draws.DrawKey.derive(key, release.digest)
            sent = pickle.dumps((key, draw_key, dataclasses.replace(release, key=key)))
            assert secrets_in(sent, *keys) == [], name
            draws._derived_again.cache_clear()
            assert pickle.loads(sent)[:2] == (release.key, release.kernel().draw_key), name
        monkeypatch.setenv("CORPUSVEIL_KEY", TEST_KEY[::-1].hex())
        draws._derived_again.cache_clear()
        with refused("input-changed", "CORPUSVEIL_KEY"):
            pickle.loads(sent)

    def test_anything_but_one_place_is_refused(self, place: Path) -> None:
        wrong: tuple[tuple[dict[str, Any] | None, str], ...] = (
            (None, "missing-setting"),
            ({}, "missing-setting"),
            ({"hex": TEST_KEY.hex()}, "wrong-value"),
            ({"path": 5}, "unusable-key"),
            ({"path": "a", "environment": "B"}, "missing-setting"),
            ({"environment": TEST_KEY.hex()}, "unusable-key"),
            ({"secret": TEST_KEY.hex()}, "unusable-key"),
            ({"path": "nothing.key"}, "missing-file"),
        )
        for key, code in wrong:
            with refused(code, "key") as raised:
                PrivatizeFromFile("release.toml", key=key, id="review_id")
            assert TEST_KEY.hex() not in str(raised.value)

"""What a recipient can require of a release, on files, in a schedule, and of tables that were made of it."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import corpusveil as cv
from corpusveil.transforms.release.claims import STATEMENT
from corpusveil.transforms.release.corpus import privatize_corpus
from tests.calls import fails, refused, succeeds
from tests.engines.corpora import Ground, manifest, rows, write_corpus
from tests.passages.stores import passage_release

ROOT = Path(__file__).parents[2]
LAKE = ROOT / ".tools/lake"
CAPS = ("--ledger", "ledger", "--unit", "customer=id", "--cap", "20000")
MET = ("nats<=100", "per=token", "unit=customer", "cap<=20000", "kept=none", "mechanism=ring-geometric")


@pytest.fixture
def release(ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A release by words under caps."""
    monkeypatch.chdir(tmp_path)
    source = write_corpus(tmp_path / "in", [rows(20, 1), rows(20, 2)])
    succeeds(*ground.arguments(source, tmp_path / "out", *CAPS))
    return tmp_path / "out"


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """A release by passages, of epsilon 6 a text."""
    source = write_corpus(tmp_path / "in-texts", [rows(20, 3)])
    privatize_corpus(passage_release(), [str(source)], str(tmp_path / "texts"), cv.Local())
    return tmp_path / "texts"


def required(*claims: str) -> list[str]:
    return [word for claim in claims for word in ("--require", claim)]


def test_what_a_manifest_does_not_claim_ends_the_gate_with_the_field(release: Path, texts: Path) -> None:
    """With status 1; words claim nats for a token, and never for a document."""
    assert "not met" not in succeeds("verify", release, *required(*MET)).out
    assert manifest(release)["cap"] == {"units": ["customer"], "nats": 20000.0, "over": "refuse"}
    succeeds("verify", texts, *required("nats <= 14", "per=document"))
    for url, claims, field in (
        (release, ("nats<=0.5", "per=token"), "nats is 1"), (release, ("nats<=100", "per=document"), "per is token"),
        (release, ("unit=id",), "unit is customer, and id"),
        (release, ("cap<=19999", "unit=customer"), "cap is"),
        (release, ("kept=id",), "kept is none"), (texts, ("nats<=5.9", "per=document"), "nats is 6"),
        (texts, ("unit=customer",), "unit is none"), (texts, ("cap<=1e9", "unit=customer"), "cap is none"),
    ):  # fmt: skip
        fails(["verify", url, *required(*claims)], "not-met", field)
    assert len(cv.verify(release, require=["per=document", "space=x"]).unmet) == 2


def test_a_column_or_unit_cannot_be_named_as_another_claim(ground: Ground, tmp_path: Path) -> None:
    """Nothing, or several, are not one of that name."""
    source = tmp_path / "in.jsonl"
    source.write_text('{"id": "1", "text": "good wine", "none": "x", "a,id": "y", "a": 1}\n')
    for keep, said in (("none", "'none'"), ("a,id", "'a,id'"), ("a", "a")):
        succeeds(*ground.arguments(source, tmp_path / keep, "--keep", keep))
        assert cv.verify(tmp_path / keep).claims["kept"] == said
        assert cv.verify(tmp_path / keep, require="kept=none").unmet, keep
    caps = ("--ledger", str(tmp_path / "ledger"), "--unit", "x,customer=id", "--cap", "20000")
    succeeds(*ground.arguments(source, tmp_path / "unit", *caps))
    assert cv.verify(tmp_path / "unit", require="unit=customer").unmet


def test_a_gate_that_could_mean_several_things_is_refused(texts: Path) -> None:
    """A bare epsilon, nats of nothing, a name that no manifest has, and what is no number."""
    for claims, code, name in (
        (["epsilon<=1"], "wrong-value", "nats"), (["epsilon=1", "per=token"], "wrong-value", "epsilon"),
        (["cap=5000", "unit=x"], "wrong-value", "<="), (["nats<=14"], "missing-setting", "per"),
        (["nats<=14", "unit=x"], "missing-setting", "per"), (["cap<=14"], "missing-setting", "unit"),
        (["nat<=14"], "unknown-name", "nats"), (["price<=1"], "unknown-name", "there are "),
        (["per=text"], "wrong-value", "token, document"),
        (["nats=14", "per=token"], "wrong-value", "<="),
        (["per<=document"], "wrong-value", "per"), (["per"], "wrong-value", "per"), (["per="], "wrong-value", "per="),
        *((["nats<=" + number, "per=token"], "wrong-value", "nats") for number in ("nan", "inf", "-1", "x")),
    ):  # fmt: skip
        fails(["verify", texts, *required(*claims)], code, name)
        with refused(code, name):
            cv.verify(texts, require=claims)


def test_no_requirement_holds_under_the_published_test_key_or_without_a_guarantee(ground: Ground, texts: Path) -> None:
    release = cv.PassageRelease(passage_release().mechanism, 6.0, key=cv.Key.for_tests())
    privatize_corpus(release, [str(ground.corpus)], str(texts.with_name("test")), cv.Local())
    fails(["verify", texts.with_name("test"), *required("per=document")], "not-met", "key is the published test key")
    path = texts / "manifest.json"
    stated = json.loads(path.read_bytes())
    stated["guarantee"]["plain_ldp"], stated["configuration"]["columns"]["keep"] = None, ["a\x1b[31m"]
    path.write_text(json.dumps(stated))
    fails(["verify", texts, *required("nats<=1e300", "per=document")], "not-met", "nats is none")
    assert "\x1b" not in fails(["verify", texts, *required("kept=none")], "not-met", "kept is 'a")
    assert "\x1b" not in succeeds("verify", texts).out


def test_a_statement_lists_every_file_and_one_about_others_is_a_difference(release: Path, texts: Path) -> None:
    """In-toto's Statement, v1; written only of files that are sound, and checked where it lies."""
    out = succeeds("verify", release, "--statement").out
    assert out.splitlines()[-1] == str(release / STATEMENT)
    stated = json.loads((release / STATEMENT).read_bytes())
    assert stated["_type"] == "https://in-toto.io/Statement/v1"
    assert {subject["name"]: subject["digest"] for subject in stated["subject"]} == {
        name: {"sha256": hashlib.sha256((release / name).read_bytes()).hexdigest()}
        for name in ("manifest.json", *(f"data/{path.name}" for path in (release / "data").iterdir()))
    }
    assert (stated["predicate"]["per"], stated["predicate"]["unit"]) == ("token", "customer")
    (release / f"{STATEMENT}.sigstore.json").write_text("signed")
    assert f"{STATEMENT}.sigstore.json" in succeeds("verify", release).out
    sound = (release / STATEMENT).read_text()
    succeeds("verify", texts, "--statement")
    for wrong in (
        "", "{}", "[" * 99999, (texts / STATEMENT).read_text(), sound.replace('"token"', '"document"'),
        sound.replace("Statement/v1", "Statement/v2"), json.dumps({**stated, "predicate": {"other": "1"}}),
    ):  # fmt: skip
        (release / STATEMENT).write_text(wrong)
        fails(["verify", release, "--statement"], "release-differs", STATEMENT)


def iceberg(folder: Path, properties: dict[str, str]) -> None:
    (folder / "metadata").mkdir(parents=True)
    for number, some in ((9, {}), (10, properties)):
        text = json.dumps({"format-version": 2, "properties": some}).encode()
        (folder / "metadata" / f"v{number}.gz.metadata.json").write_bytes(gzip.compress(text))


def delta(folder: Path, properties: dict[str, str]) -> None:
    log = folder / "_delta_log"
    log.mkdir(parents=True)
    for number, some in enumerate(({}, properties, None)):
        actions = [{"commitInfo": {}}, *([] if some is None else [{"metaData": {"id": "x", "configuration": some}}])]
        (log / f"{number:020}.json").write_text("\n".join(map(json.dumps, actions)))


def delta_of_checkpoints(folder: Path, properties: dict[str, str]) -> None:
    """Whose commits were cleaned up but for the last, which has no metadata."""
    delta(folder, {})
    log, kind = (
        folder / "_delta_log",
        pa.struct([("id", pa.string()), ("configuration", pa.map_(pa.string(), pa.string()))]),
    )
    column = pa.array([None, {"id": "x", "configuration": list(properties.items())}], kind)
    pq.write_table(pa.table({"add": [None, None], "metaData": column}), log / f"{2:020}.checkpoint.parquet")
    for number in (0, 1):
        (log / f"{number:020}.json").unlink()


@pytest.mark.parametrize("make", [iceberg, delta, delta_of_checkpoints])
def test_a_table_carries_the_claims_and_one_without_them_or_of_another_manifest_is_refused(
    make: Callable[[Path, dict[str, str]], None], release: Path, tmp_path: Path
) -> None:
    checked = cv.verify(release)
    digest, properties = checked.manifest_sha256, checked.properties()
    make(tmp_path / "table", properties)
    out = succeeds("verify", tmp_path / "table", "--digest", digest, *required(*MET)).out
    assert "not checked  the rows" in out
    fails(["verify", tmp_path / "table", *required("nats<=100", "per=document")], "not-met", "per is token")
    fails(["verify", tmp_path / "table", "--digest", "0" * 64], "release-differs", digest)
    fails(["verify", tmp_path / "table", "--statement"], "conflicting-settings", "statement")
    make(tmp_path / "less", {name: value for name, value in properties.items() if name != "corpusveil.manifest"})
    fails(["verify", tmp_path / "less", "--digest", digest], "release-differs", "corpusveil.manifest is none")
    make(tmp_path / "odd", {"corpusveil.per": "document\n", "corpusveil.nats": "nan", "owner": "x"})
    fails(["verify", tmp_path / "odd", *required("nats<=14", "per=document")], "not-met", "nats is nan")
    for nats in ("-5", "-inf", "x", ""):
        make(tmp_path / f"nats {nats}", {"corpusveil.per": "document", "corpusveil.nats": nats})
        fails(["verify", tmp_path / f"nats {nats}", *required("nats<=14", "per=document")], "not-met", "nats is")
    make(tmp_path / "other", {"owner": "x"})
    fails(["verify", tmp_path / "other"], "missing-artefact", "corpusveil.release")


def test_damaged_metadata_and_those_that_only_a_catalog_can_choose_are_refused(tmp_path: Path) -> None:
    fails(["verify", tmp_path], "missing-artefact", "manifest.json")
    iceberg(tmp_path / "table", {})
    (tmp_path / "table/metadata/00010-a.metadata.json").write_text("{}")
    fails(["verify", tmp_path / "table"], "conflicting-settings", "catalog")
    fails(["verify", tmp_path / "table/metadata/00010-a.metadata.json"], "missing-artefact", "properties")
    for number, data in enumerate((b"", b"\x1f\x8b", b"{", b"[" * 99999, b"7", b'{"properties": 7}')):
        path = tmp_path / f"{number}.metadata.json"
        path.write_bytes(data)
        fails(["verify", path], "damaged-file" if number < 4 else "missing-artefact", path.name)
    delta(tmp_path / "delta", {})
    for name, data in ((f"{3:020}.json", b"{"), (f"{4:020}.checkpoint.parquet", b"PAR1")):
        (tmp_path / "delta/_delta_log" / name).write_bytes(data)
        fails(["verify", tmp_path / "delta"], "damaged-file", name)


SPARK = """
import json, pathlib, sys, types
from pyspark.sql import SparkSession

kind, jars, said, recipe = sys.argv[1:]
settings = {
    "iceberg": {
        "catalog.lake": "org.apache.iceberg.spark.SparkCatalog", "catalog.lake.type": "hadoop",
        "catalog.lake.warehouse": str(pathlib.Path("iceberg").absolute()),
    },
    "delta": {
        "catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "extensions": "io.delta.sql.DeltaSparkSessionExtension", "warehouse.dir": str(pathlib.Path("delta").absolute()),
    },
}[kind]
builder = SparkSession.builder.master("local[1]").config("spark.jars", jars)
for name, value in settings.items():
    builder = builder.config(f"spark.sql.{name}", value)
spark = builder.getOrCreate()
cv = types.SimpleNamespace(verify=lambda _: types.SimpleNamespace(properties=lambda: json.loads(said)))
exec(recipe)
table = "lake.db.reviews" if kind == "iceberg" else "reviews"
spark.read.parquet("private/data").writeTo(table).append()
spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('stage' = 'x')")
"""


@pytest.mark.engines
@pytest.mark.parametrize(("kind", "place"), [("iceberg", "iceberg/db/reviews"), ("delta", "delta/reviews")])
def test_a_real_table_that_spark_wrote_by_the_recipe_is_verified(
    kind: str, place: str, ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an append and a change of other properties, too."""
    if not (LAKE / "complete").exists():
        pytest.skip("Iceberg and Delta are not installed: make engines installs them")
    monkeypatch.chdir(tmp_path)
    source = write_corpus(tmp_path / "in", [rows(20, 1)])
    succeeds(*ground.arguments(source, tmp_path / "private", *CAPS, "--format", "parquet"))
    checked = cv.verify("private")
    page = (ROOT / "docs/files.md").read_text()
    (recipe,) = re.findall(r"^```py\n(properties = .*?)^```$", page, re.MULTILINE | re.DOTALL)
    if kind == "delta":
        recipe = recipe.replace("lake.db.reviews", "reviews").replace("iceberg", "delta")
    jars = ",".join(map(str, (LAKE / "jars").glob("*.jar")))
    call = [LAKE / "bin/python", "-c", SPARK, kind, jars, json.dumps(checked.properties()), recipe]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    succeeds("verify", tmp_path / place, "--digest", checked.manifest_sha256, *required(*MET))
    fails(["verify", tmp_path / place, *required("nats<=14", "per=document")], "not-met", "per is token")
    fails(["verify", tmp_path / place, "--digest", "0" * 64], "release-differs", checked.manifest_sha256)

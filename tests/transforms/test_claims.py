"""What a recipient can require of a release, on files and in a schedule."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import corpusveil as cv
from tests.calls import fails, privatize_corpus, refused, succeeds
from tests.engines.corpora import Ground, manifest, rows, write_corpus
from tests.passages.stores import passage_release

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
        fails(["verify", url, *required(*claims)], "differs", field)
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
        (["epsilon<=1"], "wrong-setting", "nats"), (["epsilon=1", "per=token"], "wrong-setting", "epsilon"),
        (["cap=5000", "unit=x"], "wrong-setting", "<="), (["nats<=14"], "wrong-setting", "per"),
        (["nats<=14", "unit=x"], "wrong-setting", "per"), (["cap<=14"], "wrong-setting", "unit"),
        (["nat<=14"], "wrong-setting", "nats"),
        (["per=text"], "wrong-setting", "per=token"),
        (["nats=14", "per=token"], "wrong-setting", "<="),
        (["per<=document"], "wrong-setting", "per"),
        (["per"], "wrong-setting", "per"), (["per="], "wrong-setting", "per="),
        *((["nats<=" + number, "per=token"], "wrong-setting", "nats") for number in ("nan", "inf", "-1", "x")),
    ):  # fmt: skip
        fails(["verify", texts, *required(*claims)], code, name)
        with refused(code, name):
            cv.verify(texts, require=claims)


def test_no_requirement_holds_under_the_published_test_key_or_without_a_guarantee(ground: Ground, texts: Path) -> None:
    release = cv.PassageRelease(passage_release().mechanism, 6.0, key=cv.Key.for_tests())
    privatize_corpus(release, [str(ground.corpus)], str(texts.with_name("test")), cv.Local())
    fails(["verify", texts.with_name("test"), *required("per=document")], "differs", "key is the published test key")
    path = texts / "manifest.json"
    stated = json.loads(path.read_bytes())
    stated["guarantee"]["plain_ldp"], stated["configuration"]["columns"]["keep"] = None, ["a\x1b[31m"]
    path.write_text(json.dumps(stated))
    fails(["verify", texts, *required("nats<=1e300", "per=document")], "differs", "nats is none")
    assert "\x1b" not in fails(["verify", texts, *required("kept=none")], "differs", "kept is 'a")
    assert "\x1b" not in succeeds("verify", texts).out

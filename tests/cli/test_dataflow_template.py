"""The Flex Template: its folder, its parameters and what its launcher makes of them."""

from __future__ import annotations

import base64
import csv
import dataclasses
import hashlib
import itertools
import json
import os
import re
import shlex
import subprocess
import sys
import zipfile
from importlib import metadata as distributions
from pathlib import Path
from typing import Any

import pytest
from dockerfile_parse import DockerfileParser
from google.cloud.dataflow import TemplateMetadata
from google.protobuf import json_format
from packaging.requirements import Requirement
from pydantic import Field

import corpusveil
from corpusveil.cli import dataflow
from corpusveil.cli.derived import options_of
from corpusveil.deployment import template
from corpusveil.errors import BadValueError, SecretError
from corpusveil.pipelines import privatize
from corpusveil.pipelines.settings import Settings
from corpusveil.pipelines.settings.sections import WORD
from corpusveil.sampling.keys import read_key
from corpusveil.storage import files
from tests.calls import command, refused
from tests.engines.corpora import ROOT, TEST_KEY

IMAGE = "europe-docker.pkg.dev/project/private/corpusveil:1"
PARAMETERS = {one.name: one for one in dataflow.parameters()}
SECRET = "projects/project-one/secrets/release-key/versions/3"
GIVEN = {
    "input": "gs://bucket/c4/c4-train.*.json.gz", "space": "gs://bucket/spaces/glove",
    "output": "gs://bucket/private/2026-11", "mechanism": "ring-geometric", "epsilon": "1.5", "key": SECRET,
}  # fmt: skip
VALID = {
    **GIVEN, "parameter": "gamma=18,candidates=20", "risk": "0.5", "riskOf": "context",
    "model": "gs://bucket/models/public", "functionWords": "gs://bucket/function-words.txt", "profile": "pypantera",
    "strategy": "s3", "averageWords": "52", "delta": "0.000001", "distance": "2", "per": "document",
    "allocation": "word-share", "weights": "10:3,20:2,1", "fieldWeights": "title:1,body:3", "tokenizer": "gst",
    "collocations": "gs://bucket/collocations", "text": "review body", "id": "review_id", "root": "gs://bucket/c4/",
    "keep": "stars,review.date", "records": "gs://private.example-1/records", "ledger": "gs://private/ledger",
    "unit": "content,customer_id=review.customer", "ledgerMemory": "1.5GB", "corpus": "reviews",
    "onlyRelease": "0123456789abcdef-0123456789abcdef", "cap": "30", "capDelta": "0.000001", "capToken": "3.5",
    "capLdp": "100", "rowsPerTask": "65536", "format": "json.gz", "onBadRows": "quarantine",
    "duplicates": "same-noise", "csvFormulas": "escape", "page": "true", "separator": "semicolon",
    "unknownWords": "mask", "stopWords": "keep", "numbers": "drop", "contacts": "mask", "punctuation": "keep",
    "other": "drop", "layout": "keep", "case": "restore", "hyphens": "join", "markup": "strip",
    "spans": "rules,names", "treat": "phone=surrogate,other=mask", "pseudonyms": "document", "language": "German",
    "pad": "50", "padGrowth": "1.5", "lengthEpsilon": "0.1", "lengthExtra": "30", "acceptNoGuarantee": "true",
}  # fmt: skip
BESIDE = (
    "risk", "riskOf", "model", "functionWords", "parameter", "profile", "strategy", "averageWords", "allocation",
    "weights", "format", "pad", "padGrowth", "lengthEpsilon", "lengthExtra",
)  # fmt: skip
"""What excludes something else among the examples, or is of another mechanism."""
BROKEN = ["", " ", "..", *"$`;|&><\\\"'\n\r\t\0", "$(reboot)", "../x", "{a}"]


def words(given: dict[str, str], *more: str) -> list[str]:
    return [*(f"--{name}={value}" for name, value in given.items()), *more]


class TestParameters:
    def test_every_option_is_one_or_is_left_out_for_a_reason(self) -> None:
        places = {one.place for one in options_of("privatize").values()}
        assert set(dataflow.LEFT_OUT) <= places
        assert all(dataflow.LEFT_OUT.values())
        assert len(PARAMETERS) == len(places) - len(dataflow.LEFT_OUT) + 1, "and the mechanism's own parameters"
        assert set(VALID) == set(PARAMETERS), "each has an example here"

    def test_a_new_text_without_a_form_is_a_plain_name(self) -> None:
        """A setting that says nothing of its form lets nothing through that could mean something to a shell."""
        one = options_of("privatize")["text"]
        assert dataflow._pattern(dataclasses.replace(one, form=None, info=Field())) == WORD

    def test_none_has_the_name_of_an_option_of_beam(self) -> None:
        from apache_beam.options.pipeline_options import PipelineOptions

        assert not set(PARAMETERS) & set(PipelineOptions([]).get_all_options())

    def test_the_page_names_each(self) -> None:
        (table,) = re.findall(
            r"^\| parameters.*?\n\n", (ROOT / "docs" / "dataflow.md").read_text(), re.DOTALL | re.MULTILINE
        )
        assert set(re.findall(r"`([a-zA-Z]+)`", table)) == set(PARAMETERS)

    def test_values_are_checked(self) -> None:
        """What is right is its setting's value; with a piece of a shell, a line break or two dots, nothing passes."""
        for name, parameter in PARAMETERS.items():
            right = VALID[name]
            (regex,) = parameter.described()["regexes"]
            assert (regex[0], regex[-1]) == ("^", "$"), name
            assert re.fullmatch(regex, right), name
            own, beam, location = dataflow.parted(words({**GIVEN, name: right}))
            assert (beam, location) == ([], SECRET)
            assert name == "key" or own[parameter.option] == parameter.value(right)
            pieces = [(piece, right + piece, piece + right) if piece else ("",) for piece in BROKEN]
            for value in (*itertools.chain.from_iterable(pieces), "--accept-no-guarantee", "--keep=id", "-x"):
                assert not re.fullmatch(regex, value), (name, value)
                with refused("wrong-value", name):
                    parameter.value(value)

    def test_a_key_is_never_a_value(self) -> None:
        """Neither the key in hexadecimal nor a path on the launcher's disk is taken for the key's location."""
        for value in (TEST_KEY.hex(), "release.key", "/release.key", "gs://bucket", "projects/p/secrets/s"):
            with pytest.raises(BadValueError):
                PARAMETERS["key"].value(value)


def test_the_metadata_obeys_google_s_schema() -> None:
    """Google's own message for it takes every field, and refuses names that it does not know."""
    told = dataflow.metadata()
    read = json_format.Parse(json.dumps(told), TemplateMetadata.pb()())
    assert [parameter.name for parameter in read.parameters] == list(PARAMETERS)
    for parameter in told["parameters"]:
        assert re.fullmatch("[a-z]+([A-Z][a-z]+)*", parameter["name"])
        assert parameter["label"]
        assert parameter["helpText"]
        assert not any("(?=" in regex or "(?!" in regex for regex in parameter["regexes"]), "RE2 has no look-ahead"
    needed = {parameter["name"] for parameter in told["parameters"] if not parameter["isOptional"]}
    assert needed == set(GIVEN) - {"epsilon"}, "which a risk can choose"


class TestLauncher:
    @pytest.fixture
    def launched(self, monkeypatch: pytest.MonkeyPatch) -> list[Settings]:
        """The settings that the launcher runs, in place of running them."""
        found: list[Settings] = []
        monkeypatch.setattr(privatize, "run", lambda settings, _watch: found.append(settings))
        monkeypatch.setattr(dataflow, "read_key", lambda _location: TEST_KEY.hex())
        monkeypatch.setenv("CORPUSVEIL_IMAGE", IMAGE)
        monkeypatch.setenv("CORPUSVEIL_KEY", "before")
        return found

    def test_it_runs_a_privatize_on_dataflow(self, launched: list[Settings]) -> None:
        """Parameters are settings, what Beam knows are options of its job, the key is in the environment alone."""
        beam = ["--project=p", "--runner=DataflowRunner", "--template_location=gs://b/object", "--machine_type", "n2"]
        given = {name: value for name, value in VALID.items() if name not in BESIDE}
        assert dataflow.launch(words(given, *beam)) == 0
        (settings,) = launched
        for place, value in {
            "corpus.input": [GIVEN["input"]], "space.path": GIVEN["space"], "output.rows_per_task": 65536,
            "output.accept_no_guarantee": True, "corpus.keep": ["stars", "review.date"], "budget.epsilon": 1.5,
            "engine.name": "dataflow", "key.environment": "CORPUSVEIL_KEY",
            "key.path": None, "budget.field_weights": VALID["fieldWeights"], "ledger.cap_token": 3.5,
        }.items():  # fmt: skip
            assert settings.value(place) == value, place
        passed = settings.engine.options
        assert passed[:4] == ["--project=p", "--template_location=gs://b/object", "--machine_type", "n2"]
        assert passed[4:] == [f"--sdk_container_image={IMAGE}", "--sdk_location=container"]
        assert os.environ["CORPUSVEIL_KEY"] == TEST_KEY.hex()
        assert TEST_KEY.hex() not in str(settings)
        assert SECRET not in str(settings)

    def test_a_risk_stands_in_place_of_epsilon(self, launched: list[Settings]) -> None:
        given = {**GIVEN, "risk": "0.5", "riskOf": "context", "model": VALID["model"]}
        del given["epsilon"]
        assert dataflow.launch(words(given)) == 0
        values = [launched[0].value(f"budget.{name}") for name in ("epsilon", "risk", "risk_of", "model")]
        assert values == [None, 0.5, "context", VALID["model"]]

    def test_what_beam_does_not_know_is_left_out_and_said(
        self, launched: list[Settings], capsys: pytest.CaptureFixture[str]
    ) -> None:
        """The launcher is Google's, and may hand over what this Beam has not heard of."""
        assert dataflow.launch(words(GIVEN, "--brand_new_option=1")) == 0
        assert "--brand_new_option=1" not in launched[0].engine.options
        assert "--brand_new_option: Beam has no such option" in capsys.readouterr().err

    def test_what_is_wrong_is_named(self, launched: list[Settings], capsys: pytest.CaptureFixture[str]) -> None:
        without = {left: {name: value for name, value in GIVEN.items() if name != left} for left in GIVEN}
        for given, code, named in (
            (words(without["key"]), "missing-setting", "Parameter key"),
            (words(GIVEN, "--epsilon=2"), "conflicting-settings", "Parameter epsilon"),
            (words({**GIVEN, "output": "gs://b/$(id)"}), "wrong-value", "Parameter output"),
            (words(GIVEN, "--text"), "missing-setting", "Parameter text"),
            (words(without["epsilon"]), "missing-setting", "--epsilon"),
            (words(GIVEN, "--risk=0.5"), "conflicting-settings", "--risk"),
        ):
            assert dataflow.launch(given) == 2, given
            sentence = capsys.readouterr().err
            assert f"[{code}]" in sentence
            assert named in sentence
        assert not launched


class TestKey:
    @pytest.mark.parametrize("data", [TEST_KEY, TEST_KEY.hex().encode(), TEST_KEY.hex().upper().encode() + b"\n"])
    def test_it_is_read_from_a_store(self, data: bytes) -> None:
        files.write_bytes("memory://keys/release.key", data)
        assert bytes.fromhex(read_key("memory://keys/release.key")) == TEST_KEY

    def test_it_is_read_from_a_secret_and_one_that_may_not_be_read_is_named(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from google.api_core.exceptions import PermissionDenied
        from google.cloud import secretmanager

        class Client:
            def access_secret_version(self, name: str) -> Any:
                if name != SECRET:
                    raise PermissionDenied(name)
                return secretmanager.AccessSecretVersionResponse(payload={"data": TEST_KEY})

        monkeypatch.setattr(secretmanager, "SecretManagerServiceClient", Client)
        assert read_key(SECRET) == TEST_KEY.hex()
        with refused("unusable-key", "versions/4", "PermissionDenied", "Secret Accessor"):
            read_key(SECRET.replace("/3", "/4"))

    def test_what_is_no_key_is_not_quoted(self) -> None:
        files.write_bytes("memory://keys/other", b"zzcanary")
        with pytest.raises(SecretError) as told:
            read_key("memory://keys/other")
        assert "zzcanary" not in str(told.value)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder."""
    made = tmp_path_factory.mktemp("template")
    paths = template.package_dataflow(str(made), IMAGE, dataflow.metadata())
    assert sorted(path.name for path in paths) == sorted(path.name for path in made.iterdir())
    return made


class TestFolder:
    def test_the_dockerfile_parses_and_installs_everything(self, folder: Path) -> None:
        """Launcher and worker in one: Google's launcher image, Beam's start program, all packages, nothing staged."""
        parser = DockerfileParser(str(folder), env_replace=False)
        steps = [(step["instruction"], step["value"]) for step in parser.structure]
        python = ".".join(map(str, sys.version_info[:2]))
        launcher = f"gcr.io/dataflow-templates-base/python{python.replace('.', '')}-template-launcher-base:latest"
        assert parser.parent_images == [
            f"apache/beam_python{python}_sdk:{distributions.version('apache-beam')}",
            launcher,
        ]
        assert parser.envs["CORPUSVEIL_IMAGE"] == IMAGE
        assert parser.envs["FLEX_TEMPLATE_PYTHON_PY_FILE"] == "/template/main.py"
        assert not {"FLEX_TEMPLATE_PYTHON_REQUIREMENTS_FILE", "FLEX_TEMPLATE_PYTHON_SETUP_FILE"} & set(parser.envs)
        copied = [word for name, value in steps if name == "COPY" for word in shlex.split(value)[:-1]]
        assert all((folder / word).is_file() for word in copied if not word.startswith(("-", "/")))
        compile((folder / "main.py").read_text(), "main.py", "exec")
        assert json.loads((folder / "metadata.json").read_text()) == dataflow.metadata()

    def test_requirements_are_whole_and_agree(self, folder: Path) -> None:
        """Each once, with Beam and Google's packages, without Spark and tests' tools; what each needs is among them."""
        lines = (folder / "requirements.txt").read_text().splitlines()
        versions = dict(line.split("==") for line in lines)
        names = {re.sub("[-_.]+", "-", name).lower(): version for name, version in versions.items()}
        assert len(names) == len(lines)
        wanted = {"apache-beam", "gcsfs", "google-cloud-dataflow-client", "google-cloud-secret-manager", "numba"}
        assert wanted <= set(names)
        assert not {"pyspark", "corpusveil", "pytest", "pex", "ruff"} & set(names)
        needs = [Requirement(line) for name in versions for line in distributions.requires(name) or []]
        for need in needs:
            if need.marker is None or need.marker.evaluate({"extra": ""}):
                version = names[re.sub("[-_.]+", "-", need.name).lower()]
                assert need.specifier.contains(version, prereleases=True), need

    def test_commands_name_what_was_written_and_what_is_needed(self, folder: Path) -> None:
        told = template.commands(str(folder), IMAGE)
        assert f"--metadata-file {folder}/metadata.json" in told["template"]
        given = dict(word.split("=", 1) for word in shlex.split(told["run"]) if "=" in word)
        assert set(given) == set(GIVEN)

    def test_another_image_and_options_of_the_other_kind_are_refused(self, tmp_path: Path) -> None:
        for image in ("corpusveil", "gcr.io/p/i", "gcr.io/p/i:1\nRUN x", "gcr.io/p/i:$X", "-x"):
            with refused("wrong-value", "image"):
                template.package_dataflow(str(tmp_path / "out"), image, {})
            assert not (tmp_path / "out").exists(), image
        for more in (["dataflow"], ["dataflow", "--image", IMAGE, "--extra", "s3"], ["spark", "--image", IMAGE]):
            ended = command("package", *more, "--output", tmp_path / "out")
            assert ended.status == 2, more
            assert "--image" in ended.err


def test_the_folder_is_written_where_no_pip_is(tmp_path: Path) -> None:
    """The environment that set-up makes has no pip, and in one that is activated no other Python is found either."""
    call = [sys.executable, "-m", "corpusveil", "package", "dataflow", "--output", str(tmp_path), "--image", IMAGE]
    done = subprocess.run(call, env={"PATH": "/nowhere"}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(list(tmp_path.glob("*.whl"))) == 1


def test_the_wheel_is_whole(tmp_path: Path) -> None:
    """Every file of the package with its right hash, the templates too; the same bytes again; a Python runs it."""
    first = template.build_wheel(tmp_path)
    before = first.read_bytes()
    assert template.build_wheel(tmp_path).read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == [first.name]
    with zipfile.ZipFile(first) as archive:
        names = archive.namelist()
        listed = list(csv.reader(archive.read(names[-1]).decode().splitlines()))
        assert [row[0] for row in listed] == names
        for path, digest, size in listed[:-1]:
            data = archive.read(path)
            told = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            assert (digest, size) == (f"sha256={told}", str(len(data))), path
    package = Path(corpusveil.__file__).parent
    here = {f"corpusveil/{path.relative_to(package)}" for path in package.rglob("*") if path.is_file()}
    assert {name for name in names if name.startswith("corpusveil/")} == {n for n in here if "__pycache__" not in n}
    code = "import corpusveil.errors as e, importlib.metadata as m; print(e.__file__, m.version('corpusveil'))"
    python, place = [sys.executable, "-S", "-c", code], {"PYTHONPATH": str(first)}
    done = subprocess.run(python, env=place, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [f"{first}/corpusveil/errors.py", corpusveil.__version__]

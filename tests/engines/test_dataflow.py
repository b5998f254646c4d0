"""The job for Dataflow: what Beam's own code would send to Google, made offline, looked at, and run to the end."""

from __future__ import annotations

import base64
import itertools
import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.calls import refused

pytest.importorskip("google.cloud.dataflow")

from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.options.pipeline_options_validator import PipelineOptionsValidator
from apache_beam.portability import common_urns, python_urns
from apache_beam.portability.api import beam_runner_api_pb2
from apache_beam.runners.portability.fn_api_runner import FnApiRunner

from corpusveil.errors import CorpusveilError
from corpusveil.jobs import beam as engine_module
from corpusveil.jobs.beam import Beam
from corpusveil.jobs.local import Local
from tests.calls import privatize_corpus
from tests.engines.corpora import TEST_KEY, Ground, make_release, release_files

IMAGE = "europe-docker.pkg.dev/project/private/corpusveil:1"


def engine(folder: Path, *more: str) -> Beam:
    """An engine with the options that the launcher of a Flex Template gives, and places on this disk for staging."""
    (folder / "staging").mkdir(parents=True)
    options = (
        "--project=project-one", "--region=europe-west1", "--job_name=release", "--no_auth",
        f"--temp_location={folder}/temp", f"--staging_location={folder}/staging",
        f"--template_location={folder}/job_object", "--machine_type=n2-highmem-4", "--max_num_workers=40",
        f"--sdk_container_image={IMAGE}", "--sdk_location=container",
    )  # fmt: skip
    return Beam("DataflowRunner", options=(*options, *more))


class Job:
    """What was written for Dataflow: the request and the graph."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.text = (folder / "job_object").read_text()
        self.request: dict[str, Any] = json.loads(self.text)
        self.graph = (folder / "staging" / "pipeline.pb").read_bytes()
        self.pipeline = beam_runner_api_pb2.Pipeline.FromString(self.graph)
        self.transforms = self.pipeline.components.transforms

    def steps(self) -> list[tuple[str, str]]:
        """The outermost steps, each of which takes what the one before makes."""
        (root,) = (self.transforms[name] for name in self.pipeline.root_transform_ids)
        steps = [self.transforms[name] for name in root.subtransforms]
        assert all(set(step.inputs.values()) == set(one.outputs.values()) for one, step in itertools.pairwise(steps))
        return [(step.unique_name, step.spec.urn) for step in steps]


@pytest.fixture(scope="module")
def job(ground: Ground, tmp_path_factory: pytest.TempPathFactory) -> Job:
    """A job for the ground's corpus, a task a shard, as a template, which Beam writes without Google.

    Pieces of shards would be a first job, and joining them a second one.
    """
    folder = tmp_path_factory.mktemp("dataflow")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PipelineOptionsValidator, "validate", lambda _self: [])  # it asks Google about buckets
        patch.setattr(engine_module, "_NOT_WANTED", ())
        with pytest.raises(CorpusveilError):  # nothing was run
            privatize_corpus(
                make_release(ground.space), [str(ground.corpus)], str(folder / "out"), engine(folder / "job")
            )
    return Job(folder / "job")


def test_what_is_sent_is_small_and_in_order(job: Job, ground: Ground) -> None:
    """Shards are parted among workers before the work.

    The space goes by its address; there is no side input, no state and no timer.
    """
    assert [name for name, _ in job.steps()] == ["Shard tasks", "One a worker", "Privatize shards"]
    assert dict(job.steps())["One a worker"] == common_urns.composites.RESHUFFLE.urn
    for transform in job.transforms.values():
        if transform.spec.urn == common_urns.primitives.PAR_DO.urn:
            payload = beam_runner_api_pb2.ParDoPayload.FromString(transform.spec.payload)
            assert not [*payload.side_inputs, *payload.state_specs, *payload.timer_family_specs]
    assert len(job.graph) < 60_000
    assert ground.space.vectors[:4].tobytes() not in job.graph


def test_a_graph_that_is_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PipelineOptionsValidator, "validate", lambda _self: [])
    monkeypatch.setattr(engine_module, "MOST_BYTES", 1 << 20)
    monkeypatch.setattr(engine_module, "_NOT_WANTED", ())
    with refused("unsuitable-data"):
        engine(tmp_path).run(print, [os.urandom(1_200_000)])
    assert not (tmp_path / "job_object").exists()


def test_no_key_can_be_read_in_it(job: Job, ground: Ground) -> None:
    """The key is nowhere; what was derived from it is not in names, display data and the request, which people see."""
    release = make_release(ground.space)
    derived = [release.key.derive(name) for name in ("records", "copies")]
    shown = job.text.encode() + b"".join(
        transform.unique_name.encode() + b"".join(one.payload for one in transform.display_data)
        for transform in job.transforms.values()
    )
    for secret in (TEST_KEY, *derived):
        for form in (secret, secret.hex().encode(), base64.b64encode(secret)[:-2], repr(secret)[2:-1].encode()):
            assert form not in shown
    assert TEST_KEY not in job.graph
    assert b"Privatize shards" in shown


def test_the_graph_makes_the_shards(job: Job, ground: Ground, tmp_path: Path) -> None:
    """Run as it would be sent, but on this machine: the same command then finishes it, to the local bytes."""
    made = job.folder.parent / "out"
    assert not made.exists()
    for environment in job.pipeline.components.environments.values():
        environment.urn, environment.payload = python_urns.EMBEDDED_PYTHON, b""
    FnApiRunner().run_via_runner_api(job.pipeline, PipelineOptions()).wait_until_finish()
    call = make_release(ground.space), [str(ground.corpus)]
    written = {path: path.stat().st_mtime_ns for path in made.glob("data/*")}
    privatize_corpus(*call, str(made), Local())
    assert {path: path.stat().st_mtime_ns for path in made.glob("data/*")} == written, "no shard was done again"
    privatize_corpus(*call, str(tmp_path / "local"), Local())
    assert release_files(made) == release_files(tmp_path / "local")

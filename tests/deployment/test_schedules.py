"""What starts a schedule is read by the tools that will read it: cron, systemd, Kubernetes' schemas, Airflow."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
from datetime import UTC, datetime
from pathlib import Path

import kubernetes_validate
import pytest
import yaml
from croniter import croniter

import corpusveil as cv
from corpusveil.deployment.schedules import on_calendar, parse_times
from tests.calls import command, fails, refused, succeeds
from tests.cli.test_run import basic, save
from tests.engines.corpora import WORDS, make_space

TIMES = (
    "0 3 * * *", "*/15 * * * *", "30 2 * * 1-5", "0 0 1 * *", "5 4 1,15 * *", "0 12 13 * 5", "59 23 31 12 *",
    "0 6-18/4 * 3-6 0,6", "10 1 * * 7", "0 0 29 2 *", "1,2,3 */6 2-4 */5 *",
)  # fmt: skip
BASE = datetime(2026, 11, 21, 7, 30, tzinfo=UTC)
needs_systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
AIRFLOW = os.environ.get("CORPUSVEIL_AIRFLOW_PYTHON", "")


@pytest.fixture
def ground(tmp_path: Path) -> Path:
    """A release in a folder whose name means something to shells, units, crontabs and templates."""
    folder = tmp_path / "a 100% 'odd' $HOME {{ name }}"
    (folder / "in").mkdir(parents=True)
    (folder / "in/a.jsonl").write_text(json.dumps({"text": " ".join(WORDS[:9])}) + "\n")
    make_space(folder / "space")
    cv.Key.generate().save(folder / "release.key")
    save(folder / "s.toml", basic())
    return folder


def written(folder: Path, kind: str, *more: str) -> list[Path]:
    succeeds("schedule", folder / "s.toml", "--write", kind, "--to", folder / "made", *more)
    return sorted((folder / "made").iterdir())


def test_times_are_those_of_cron() -> None:
    """The fields hold what another reader of cron's form takes from them; others are refused."""
    for at in TIMES:
        for position, (mine, theirs) in enumerate(zip(parse_times(at), croniter(at, BASE).expanded, strict=True)):
            if mine is None:
                assert theirs == ["*"], at
            elif theirs != ["*"]:  # as it writes 0-6 of the weekdays, or */1
                assert mine == ({field % 7 for field in theirs} if position == 4 else set(theirs)), at
    for wrong in ("", "* * * *", "60 * * * *", "0 24 * * *", "0 0 0 * *", "a * * * *", "@daily", "5-1 * * * *",
                  "*/0 * * * *", "0 0 * * 8", "0 0 * 13 *"):  # fmt: skip
        with refused("wrong-value", "at"):
            parse_times(wrong)


@needs_systemd
def test_systemd_starts_when_cron_does() -> None:
    """By systemd's own calendar, eight starts ahead."""
    for at in TIMES:
        starts: set[datetime] = set()
        for event in on_calendar(at):
            words = ["calendar", "--iterations=8", f"--base-time={BASE:%Y-%m-%d %H:%M:%S} UTC", event]
            done = subprocess.run(["systemd-analyze", *words], capture_output=True, text=True, check=True,
                                  env={"TZ": "UTC", **os.environ})  # fmt: skip
            for start in re.findall(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) UTC", done.stdout):
                starts.add(datetime.strptime(start, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC))
        iterator = croniter(at, BASE)
        assert sorted(starts)[:8] == [iterator.get_next(datetime) for _ in range(8)], at


class TestWhatIsWritten:
    def test_crontab(self, ground: Path) -> None:
        """The line, unescaped as cron does it, run by a shell: it makes the release; a failure is one line."""
        (file,) = written(ground, "cron", "--at", "5 4 * * *")
        (line,) = [one for one in file.read_text().splitlines() if not one.startswith("#")]
        command = line[10:]
        assert " timeout -k 60 86400 " in command
        assert line[:10] == "5 4 * * * "
        assert not re.search(r"(?<!\\)%", command)

        def started() -> str:
            shell = ["sh", "-c", command.replace("\\%", "%")]
            return subprocess.run(shell, check=True, cwd="/", capture_output=True, text=True).stdout

        assert started() == ""
        assert (ground / "out/run-00001/manifest.json").exists()
        (ground / "release.key").unlink()
        log = ground / "s.log"
        assert started() == f"corpusveil-s failed: see {log}\n"
        assert "release.key" in log.read_text()
        assert log.stat().st_mode & 0o077 == 0

    @needs_systemd
    @pytest.mark.parametrize("key", [{"path": "release.key"}, {"environment": "CORPUSVEIL_KEY"}])
    def test_systemd(self, ground: Path, key: dict[str, str]) -> None:
        """systemd's own check has nothing to say of the units, and says something of a broken one."""
        values = tomllib.loads((ground / "s.toml").read_text()) | {"key": key, "schedule": {"longest": "2h"}}
        save(ground / "s.toml", values)
        failure, service, timer = written(ground, "systemd")

        def said(*units: Path) -> str:
            command = ["systemd-analyze", "verify", "--man=no", *map(str, units)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            return "".join(line for line in done.stderr.splitlines(keepends=True) if "corpusveil-s" in line)

        assert said(service, failure, timer) == ""
        text = service.read_text()
        assert f"\nUser={ground.owner()}\n" in text
        assert "\nTimeoutStartSec=7200\n" in text
        assert f"\nOnFailure={failure.name}\n" in text
        optional = "" if "environment" in key else "-"
        assert f"\nEnvironmentFile={optional}/etc/corpusveil/corpusveil-s.env\n" in text
        service.write_text(text.replace("ExecStart=", "ExecStrt="))
        assert said(service) != ""

    @pytest.mark.parametrize("key", [{"path": "/run/keys/release.key"}, {"environment": "CORPUSVEIL_KEY"}])
    def test_kubernetes(self, ground: Path, key: dict[str, str]) -> None:
        """Kubernetes' schemas, strictly; the configuration in the map is the file."""
        values = tomllib.loads((ground / "s.toml").read_text())
        values |= {"corpus": {"input": ["s3://bucket/in"]}, "key": key, "engine": {"workers": 3}}
        values |= {name: {"path": f"s3://bucket/{name}"} for name in ("space", "output")}
        save(ground / "s.toml", values)
        (file,) = written(ground, "kubernetes", "--image", "registry.example/corpusveil:0.1.0")
        account, configuration, job = yaml.safe_load_all(file.read_text())
        for part in (account, configuration, job):
            kubernetes_validate.validate(part, "1.31", strict=True)
        assert "{" not in "".join(line for line in file.read_text().splitlines() if "emptyDir" not in line)
        assert configuration["data"]["schedule.toml"] == (ground / "s.toml").read_text()
        pod = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]
        assert pod["serviceAccountName"] == account["metadata"]["name"]
        assert pod["containers"][0]["resources"]["requests"] == {"cpu": "3", "memory": "4Gi"}
        secrets = [volume["secret"] for volume in pod["volumes"] if "secret" in volume]
        assert [secret["defaultMode"] for secret in secrets] == ([0o400] if "path" in key else [])
        assert (pod["securityContext"]["runAsUser"], pod["securityContext"]["fsGroup"]) == (10001, 10001)
        assert job["spec"]["jobTemplate"]["spec"]["activeDeadlineSeconds"] == 86400

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
    def test_the_user_of_the_image_can_read_the_key_that_kubernetes_mounts(self, ground: Path) -> None:
        """Root's, for the group of the pod, mode 0440, as a secret is with fsGroup; others that may read are refused.

        The process loads all modules by a first run as root, since the user may not read this installation.
        """
        program = (
            "import os, sys; from corpusveil.cli.main import run; call = ['schedule', '--progress', 'none']\n"
            "assert run([*call, sys.argv[1]]) == 0; os.setgroups([]); os.setgid(10001); os.setuid(10001)\n"
            "sys.exit(sum(run([*call, file]) << 4 * at for at, file in enumerate(sys.argv[2:])))"
        )
        with tempfile.TemporaryDirectory() as place:  # that of the test is closed to other users
            modes = ((0o600, 0), (0o440, 10001), (0o440, 10002))
            pods = [Path(place) / f"pod-{at}" for at in range(len(modes))]
            for pod, (mode, group) in zip(pods, modes, strict=True):
                shutil.copytree(ground, pod)
                for path in (pod, *pod.rglob("*")):
                    os.chown(path, 10001, 10001)
                    path.chmod(0o755 if path.is_dir() else 0o644)
                os.chown(pod / "release.key", 0, group)
                (pod / "release.key").chmod(mode)
            Path(place).chmod(0o755)
            done = subprocess.run(
                [sys.executable, "-c", program, *(pod / "s.toml" for pod in pods)],
                capture_output=True, text=True, cwd="/", check=False,
            )  # fmt: skip
            assert (pods[1] / "out/run-00001/manifest.json").stat().st_uid == 10001, done.stderr
            assert done.returncode == 2 << 4, done.stderr
            assert done.stderr.count("[unusable-key]") == 1

    @pytest.mark.airflow
    @pytest.mark.skipif(not AIRFLOW, reason="needs an Airflow beside: make definitions")
    def test_airflow(self, ground: Path, tmp_path: Path) -> None:
        """Airflow imports the DAG without an error, renders its command, and running that makes the release."""
        (file,) = written(ground, "airflow")
        home = tmp_path / "airflow"
        environment = {**os.environ, "AIRFLOW_HOME": str(home), "AIRFLOW__CORE__DAGS_FOLDER": str(file.parent),
                       "AIRFLOW__CORE__LOAD_EXAMPLES": "False"}  # fmt: skip
        code = (
            "import sys, jinja2\n"
            "from airflow.dag_processing.dagbag import DagBag\n"
            "bag = DagBag(sys.argv[1])\n"
            "assert not bag.import_errors, bag.import_errors\n"
            "(dag,) = bag.dags.values()\n"
            "assert dag.max_active_runs == 1 and not dag.catchup, dag\n"
            "(task,) = dag.tasks\n"
            "print('COMMAND', jinja2.Template(task.bash_command).render())\n"
        )
        done = subprocess.run(
            [AIRFLOW, "-c", code, str(file.parent)], capture_output=True, text=True, env=environment, check=False
        )
        assert done.returncode == 0, done.stderr
        command = done.stdout.split("COMMAND ", 1)[1].strip()
        assert shlex.split(command)[-3] == str(ground / "s.toml")
        subprocess.run(["bash", "-c", command], check=True, capture_output=True, cwd="/")
        assert (ground / "out/run-00001/manifest.json").exists()

    def test_a_foreign_file_stays(self, ground: Path) -> None:
        """Its own are written again, others never."""
        written(ground, "cron")
        written(ground, "cron", "--at", "1 1 * * *")
        (ground / "made/corpusveil-s.cron").write_text("mine\n")
        fails(["schedule", ground / "s.toml", "--write", "cron", "--to", ground / "made"], "output-in-use")
        assert (ground / "made/corpusveil-s.cron").read_text() == "mine\n"

    def test_options_that_do_not_go_together(self, ground: Path) -> None:
        for wrong in (["--at", "0 0 * * *"], ["--write", "windows"], ["--image", "a", "--write", "cron"]):
            done = command("schedule", ground / "s.toml", *wrong)
            assert done.status == 2
            assert wrong[0] in done.err
        assert not (ground / "out").exists()

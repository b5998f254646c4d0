"""A lease: of several processes one works, and what a dead one held passes on."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from corpusveil.storage import files, lease
from corpusveil.storage.lease import Lease, hold, take
from tests.engines.corpora import HANG_SECONDS


def _take(url: str, results: multiprocessing.Queue[bool]) -> None:
    results.put(isinstance(take(url), Lease))
    time.sleep(1)


def far(folder: Path) -> Path:
    """Write the lease of a process on another machine; return where it beats."""
    content = json.dumps({"host": "far", "machine": "far", "process": 1}).encode()
    (folder / "lease-00000001.json").write_bytes(content)
    return Path(lease._beat_address(str(folder), 1, content))


class TestOneOfSeveral:
    def test_has_it(self, tmp_path: Path) -> None:
        """Of three processes that start at once exactly one gets the lease."""
        context = multiprocessing.get_context("spawn")
        results: multiprocessing.Queue[bool] = context.Queue()
        started = [context.Process(target=_take, args=(str(tmp_path), results)) for _ in range(3)]
        for process in started:
            process.start()
        assert sorted(results.get(timeout=HANG_SECONDS) for _ in started) == [False] * 2 + [True]
        for process in started:
            process.join()

    @pytest.mark.parametrize("base", ["", "memory://lease"])
    def test_it_passes_on_when_it_ends(self, tmp_path: Path, base: str) -> None:
        """Held, it is refused with who holds it; ended, by an error too, the next one has it; old files go."""
        url = f"{base}{tmp_path}/state"
        for _ in range(3):
            held = take(url)
            assert isinstance(held, Lease)
            with contextlib.suppress(ZeroDivisionError), held:
                refused = take(url)
                assert isinstance(refused, str)
                assert str(os.getpid()) in refused
                raise ZeroDivisionError
        assert files.listing(url) == []


class TestOneThatIsGone:
    def test_a_killed_process_of_this_machine_holds_nothing(self, tmp_path: Path) -> None:
        """At once, without waiting for its beat to look old."""
        code = "import sys, time; from corpusveil.storage.lease import take; take(sys.argv[1]).__enter__()"
        code += "; print('held', flush=True); time.sleep(60)"
        process = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        assert isinstance(take(str(tmp_path)), str)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        began = time.monotonic()
        assert isinstance(take(str(tmp_path)), Lease)
        assert time.monotonic() - began < lease.PATIENCE_SECONDS / 2

    def test_one_of_another_machine_is_watched(self, tmp_path: Path) -> None:
        """A lease without a new heartbeat expires; a lease with heartbeats, however wrong its clock, does not."""
        url = str(tmp_path)
        beat = far(tmp_path)
        code = "import pathlib, sys, time\nfor k in range(100):\n    time.sleep(0.05)\n"
        code += '    pathlib.Path(sys.argv[1]).write_text(\'{"time": 0, "mark": "%d"}\' % k)'
        beat.write_text(json.dumps({"time": time.time(), "mark": "a"}))
        began = time.monotonic()
        assert isinstance(take(url), str)
        assert time.monotonic() - began < lease.PATIENCE_SECONDS / 2, "a recent beat is believed"
        beat.write_text(json.dumps({"time": time.time() - 1e6, "mark": "a"}))
        beating = subprocess.Popen([sys.executable, "-c", code, str(beat)])
        refused = take(url, patience=4)
        assert isinstance(refused, str)
        assert "far" in refused
        beating.wait()
        assert isinstance(take(url, patience=0.4), Lease)

    def test_one_that_was_joined_knows_it(self, tmp_path: Path) -> None:
        """It then removes nothing of what its successor works on, and not its successor's lease either."""
        with hold(str(tmp_path)) as slow:
            assert slow.is_last()
            content = json.dumps({"host": "far", "machine": "far", "process": 1}).encode()
            (tmp_path / "lease-00000002.json").write_bytes(content)
            assert not slow.is_last()
        assert [path.name for path in tmp_path.iterdir()] == ["lease-00000002.json"]

    def test_a_process_of_this_machine_that_stands_still_holds_it(self, tmp_path: Path) -> None:
        """Compiled loops may keep a beat from being written for minutes."""
        held = take(str(tmp_path))
        assert isinstance(held, Lease)
        (beat,) = tmp_path.glob("*.beat")
        beat.unlink()
        assert isinstance(take(str(tmp_path), patience=0.1), str)

    def test_a_clock_that_was_set_ends_no_lease(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Start times of processes follow the clock; where only they differ, the heartbeat decides."""
        monkeypatch.setattr(lease, "BEAT_SECONDS", 0.05)
        real = psutil.Process.create_time
        with hold(str(tmp_path)) as held:
            monkeypatch.setattr(psutil.Process, "create_time", lambda process: real(process) + 3600)
            monkeypatch.setattr(lease.time, "time", lambda clock=time.time: clock() + 3600)
            assert isinstance(take(str(tmp_path), patience=30), str)
            assert held.is_last()
            held._ended.set()  # a later process that has the number of one that ended
            assert held._thread is not None
            held._thread.join()
            monkeypatch.setattr(lease.time, "time", lambda clock=time.time: clock() + 7200)
            assert isinstance(take(str(tmp_path), patience=0.1), Lease)

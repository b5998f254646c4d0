"""A lease: of several processes one works, and what a dead one held passes on."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from corpusveil.storage import files, lease
from corpusveil.storage.lease import Lease, take


def _take(url: str, results: multiprocessing.Queue[bool]) -> None:
    results.put(isinstance(take(url), Lease))
    time.sleep(1)


class TestOneOfSeveral:
    def test_has_it(self, tmp_path: Path) -> None:
        """Of six processes that start at once exactly one gets the lease."""
        context = multiprocessing.get_context("spawn")
        results: multiprocessing.Queue[bool] = context.Queue()
        started = [context.Process(target=_take, args=(str(tmp_path), results)) for _ in range(6)]
        for process in started:
            process.start()
        assert sorted(results.get(timeout=60) for _ in started) == [False] * 5 + [True]
        for process in started:
            process.join()

    @pytest.mark.parametrize("base", ["file", "memory://lease"])
    def test_it_passes_on_when_it_ends(self, tmp_path: Path, base: str) -> None:
        """Held, it is refused with who holds it; ended, the next one has it; old files go."""
        url = str(tmp_path / "state") if base == "file" else f"{base}/{tmp_path.name}"
        for _ in range(4):
            held = take(url)
            assert isinstance(held, Lease)
            with held:
                refused = take(url)
                assert isinstance(refused, str)
                assert str(os.getpid()) in refused
        assert len(files.listing(url)) <= 6

    def test_it_passes_on_after_an_error(self, tmp_path: Path) -> None:
        held = take(str(tmp_path))
        assert isinstance(held, Lease)
        with pytest.raises(ZeroDivisionError), held:
            raise ZeroDivisionError
        assert isinstance(take(str(tmp_path)), Lease)


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
        """A beat that stands still passes the lease on; one that goes on, however wrong its clock, does not."""
        url = str(tmp_path)
        (tmp_path / "lease-00000001.json").write_text(json.dumps({"host": "far", "machine": "far", "process": 1}))
        old = json.dumps({"time": time.time() - 1e6, "mark": "a"})
        (tmp_path / "lease-00000001.beat").write_text(old)
        code = "import pathlib, sys, time\nfor k in range(100):\n    time.sleep(0.05)\n"
        code += '    pathlib.Path(sys.argv[1]).write_text(\'{"time": 0, "mark": "%d"}\' % k)'
        beating = subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "lease-00000001.beat")])
        refused = take(url, patience=4)
        assert isinstance(refused, str)
        assert "far" in refused
        beating.wait()
        assert isinstance(take(url, patience=0.4), Lease)

    def test_a_recent_beat_is_believed(self, tmp_path: Path) -> None:
        """Nobody waits for a lease that was confirmed a moment ago."""
        (tmp_path / "lease-00000001.json").write_text(json.dumps({"host": "far", "machine": "far", "process": 1}))
        (tmp_path / "lease-00000001.beat").write_text(json.dumps({"time": time.time(), "mark": "a"}))
        began = time.monotonic()
        assert isinstance(take(str(tmp_path)), str)
        assert time.monotonic() - began < lease.PATIENCE_SECONDS / 2


def test_the_beat_goes_on_while_it_is_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "BEAT_SECONDS", 0.05)
    held = take(str(tmp_path))
    assert isinstance(held, Lease)
    with held:
        beat = tmp_path / "lease-00000001.beat"
        first = beat.read_text()
        end = time.monotonic() + 20
        while beat.read_text() == first and time.monotonic() < end:
            time.sleep(0.02)
        assert beat.read_text() != first

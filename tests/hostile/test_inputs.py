"""Hostile input: one sentence, the right status, nothing lost, no private text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.calls import command
from tests.engines.corpora import UNKNOWN, Ground
from tests.hostile import inputs
from tests.hostile.inputs import SECRET, Hostile


@pytest.mark.parametrize("kind", inputs.KINDS)
@pytest.mark.parametrize("aside", [False, True], ids=["fail", "quarantine"])
def test_is_one_sentence(ground: Ground, tmp_path: Path, kind: Callable[[], Iterator[Hostile]], aside: bool) -> None:
    """The file is named, nothing private is said, no half shard appears, the input stays as it was."""
    more = ("--on-bad-rows", "quarantine") if aside else ()
    for number, hostile in enumerate(kind()):
        folder = tmp_path / str(number)
        source, output = folder / hostile.file, folder / "out"
        folder.mkdir()
        source.write_bytes(hostile.data)
        ended = command(*ground.arguments(source, output, *hostile.more, *more))
        assert UNKNOWN not in ended.err + ended.out, hostile
        assert "Traceback" not in ended.err, hostile
        assert source.read_bytes() == hostile.data, hostile
        if aside and ended.status == 0:  # the bad row is set aside
            assert ", row " not in ended.err, hostile
            assert " set aside in the private records" in ended.err, hostile
            assert not [path for path in output.rglob("*") if path.is_file() and SECRET in path.read_bytes()], hostile
            continue
        assert ended.status == 2, hostile
        (sentence,) = ended.err.splitlines()
        assert sentence.startswith("corpusveil: "), hostile
        assert hostile.said in sentence, (hostile, sentence)
        assert hostile.more or str(source) in sentence, hostile
        assert not [*output.rglob("*part*"), *output.rglob("manifest.json")], hostile

"""Bytes are a promise: what earlier commits made of the same input comes out the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.golden.works import GOLDEN, WORKS, computed


@pytest.mark.parametrize("name", WORKS)
def test_is_what_it_was(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Digests of releases and their manifests, artefacts, spaces and ledger entries; see ``works.py`` for a change."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    found = computed(name, tmp_path / "work")
    expected = json.loads(GOLDEN.read_text(encoding="utf-8"))[name]
    assert {one: found[one] for one in expected if found.get(one) != expected[one]} == {}
    assert found.keys() == expected.keys()

"""``corpusveil ledger``, and what a run under a cap says: questions by unit, and no promise that was not checked."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

import corpusveil as cv
from corpusveil.cli.main import run
from corpusveil.ledger.summary import require_ledger
from tests.calls import command, fails, succeeds
from tests.engines.corpora import WORDS, make_space

CUSTOMERS = ("ann", "bob", "ann", "a=b")
UNITS = ["--unit", "customer", "--unit", "document=id"]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a release of four documents of three words, with a ledger; in a working folder of its own."""
    monkeypatch.chdir(tmp_path)
    make_space(tmp_path / "space")
    cv.Key.generate().save("release.key")
    rows = [{"id": n, "customer": name, "text": " ".join(WORDS[n : n + 3])} for n, name in enumerate(CUSTOMERS)]
    Path("in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = "privatize in.jsonl --space space --mechanism ring-geometric --epsilon 1 --key release.key --output out"
    return [*words.split(), "--id", "id", "--ledger", "ledger", "--progress", "none"]


def show(*words: str) -> dict[str, Any]:
    shown: dict[str, Any] = json.loads(succeeds("ledger", "show", "ledger", "--json", *words).out)
    return shown


def test_units_are_asked_for_by_their_values(call: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert run([*call, *UNITS]) == 0
    assert show()["units"] == ["customer", "document"]
    for words, documents in (
        (("--unit", "customer=ann"), 2), (("--document", "document=3"), 1), (("--unit", "customer=a=b"), 1),
    ):  # fmt: skip
        (line,) = show(*words)["releases"]
        assert (line["documents"], line["tokens"]) == (documents, 3 * documents)
    monkeypatch.setattr("sys.stdin", io.StringIO("customer=ann\n"))
    assert show("--unit", "-")["releases"]
    for value in ("customer=eve", "ann", "nobody=ann"):
        assert "ann" not in fails(["ledger", "show", "ledger", "--unit", value], "wrong-setting")


def test_verify_of_a_ledger_of_another_version_says_so(call: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """With status 2, and nothing about spending: by its header, and by an entry."""
    assert run([*call, *UNITS]) == 0
    header = Path("ledger/ledger.json")
    data = header.read_text()
    header.write_text(data.replace('"version": 2', '"version": 4'))
    fails(["ledger", "verify", "ledger"], "other-version", "version 4")
    header.write_text(data[:-5])
    assert "ledger.json" in command("ledger", "verify", "ledger").out, "damaged"
    header.write_text(data.replace('"version": 2', '"version": 6'))
    monkeypatch.setattr("corpusveil.ledger.entries.VERSION", 6)
    fails(["ledger", "verify", "ledger"], "other-version", "version 2", ".parquet")


def test_a_release_without_a_cap_is_counted_with_a_warning(call: list[str]) -> None:
    """Caps belong to the call; one that was forgotten refuses nothing."""
    with pytest.warns(UserWarning, match="no cap: this release is counted"):
        require_ledger(cv.Ledger("anywhere"), "customer", None)
    assert "no cap: this release is counted" in succeeds(*call, *UNITS).err
    assert "no cap" not in succeeds(*call, *UNITS).err, "a finished release is not counted again"
    call[call.index("out")] = "more"
    assert "no cap" not in succeeds(*call, *UNITS, "--cap", "1e6").err


def test_a_cap_is_promised_by_a_run_that_checked_it(call: list[str]) -> None:
    """A finished release that is called again asks no ledger, whatever the cap of this call."""
    assert (
        "no value of customer in this release has spent more than 1000000 nats "
        in succeeds(*call, "--unit", "customer", "--cap", "1e6").out
    )
    assert "has spent" not in succeeds(*call, "--unit", "customer", "--cap", "0.1").out

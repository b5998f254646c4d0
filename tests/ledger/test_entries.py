"""A ledger's files: named by what they hold, checked when they are read, and complete or refused."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import corpusveil as cv
from corpusveil.cli.main import run
from corpusveil.errors import ArtifactError, CapError, MissingError, SettingError, WorkError
from corpusveil.ledger.account import Account
from corpusveil.ledger.caps import Spending, reserve
from corpusveil.ledger.entries import ABOUT, ENTRIES, Entry, EntryStore, digest_of
from corpusveil.ledger.summary import Ledger
from corpusveil.ledger.units import part
from tests.calls import fails, refused
from tests.engines.corpora import WORDS, make_space
from tests.ledger.books import CUSTOMER, Row, about, entry_of, release_of, write_note

ROWS = [Row(k % 3, k) for k in range(9)]


@pytest.fixture
def store(tmp_path: Path) -> EntryStore:
    store = EntryStore.open(str(tmp_path / "ledger"), CUSTOMER)
    store.check(CUSTOMER, begin=True)
    return store


def enter(store: EntryStore, entry: Entry, refuse: Any = None) -> str:
    digest = digest_of(entry.path, store.secret)
    folder = Path(entry.path).parent / "fetched"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    store.enter({digest: entry.path}, refuse, str(folder))
    return digest


def test_equal_spending_makes_an_equal_file_in_any_order_and_any_pieces(tmp_path: Path) -> None:
    """One note or three, in another order, with rows twice; anything else makes another."""
    from corpusveil.ledger.questions import connected, write_entry

    whole = entry_of(tmp_path / "a", ROWS)
    notes = [write_note(tmp_path / f"{k}.note", [*ROWS[k::3], ROWS[k]]) for k in (2, 0, 1)]
    with connected() as (_, connection):
        copies = write_entry(connection, notes, 0, about(), str(tmp_path / "e"))
    assert (whole.about.documents, copies.about.documents) == (9, 12), "copies are counted, and are no rows"
    assert pq.read_table(copies.path).equals(pq.read_table(whole.path))
    turned = entry_of(tmp_path / "b", ROWS[::-1])
    assert digest_of(turned.path, bytes(32)) == digest_of(whole.path, bytes(32))
    for other in (entry_of(tmp_path / "c", ROWS[1:]), entry_of(tmp_path / "d", ROWS, release="s")):
        assert digest_of(other.path, bytes(32)) != digest_of(whole.path, bytes(32))
    assert digest_of(whole.path, bytes([1]) * 32) != digest_of(whole.path, bytes(32))


def test_an_entry_is_written_once_private_and_kept(store: EntryStore, tmp_path: Path) -> None:
    entry, looks = entry_of(tmp_path / "in", ROWS), list[Any]()
    digest = enter(store, entry, looks.append)
    assert looks == [[]], "a cap is asked again only if somebody entered something meanwhile"
    assert enter(store, entry) == digest
    (name,) = store.names()
    assert name.startswith(digest)
    assert store.kept() == [name]
    for path in (tmp_path / "ledger").rglob("*"):
        assert path.is_dir() or path.stat().st_mode & 0o777 == 0o600
    assert Ledger(store.url).verify().differences == ()


def test_a_line_is_of_one_name_space_release_and_column_with_its_first_day(store: EntryStore, tmp_path: Path) -> None:
    given = ({}, {"namespace": "n"}, {"release": "s"}, {"column": "title"}, {})
    for number, more in enumerate(given):
        digest = enter(store, entry_of(tmp_path / "in", ROWS[number:], **more))
        (path,) = (tmp_path / "ledger" / ENTRIES).glob(f"{digest}.*.parquet")
        os.utime(path, (number * 86_400, number * 86_400))
    days = sorted(line["date"] for line in Ledger(store.url).spent().releases)
    assert days == ["1970-01-01", "1970-01-02", "1970-01-03", "1970-01-04"]


@pytest.mark.parametrize("damage", ["cut", "exchanged", "emptied", "negative", "about", "of another ledger"])
def test_what_is_damaged_is_refused_by_all_that_reads_it(store: EntryStore, tmp_path: Path, damage: str) -> None:
    """Nothing can be counted on a ledger that is not whole; a run that finds it takes its own entry back."""
    for release in ("r", "s"):
        enter(store, entry_of(tmp_path / "in", ROWS, release=release))
    first, second = sorted((tmp_path / "ledger" / ENTRIES).glob("*.parquet"))
    if damage in ("negative", "about"):  # by somebody who has the secret
        table = pq.read_table(first)
        column = table.schema.get_field_index("nats")
        changed = table.set_column(column, table.schema.field(column), [[-1] * table.num_rows])
        if damage == "about":
            said = json.loads(table.schema.metadata[ABOUT]) | {"tokens": -1}
            changed = table.replace_schema_metadata({ABOUT: json.dumps(said)})
        path = tmp_path / "changed"
        pq.write_table(changed, path)
        first.unlink()
        first = first.with_name(f"{digest_of(str(path), store.secret)}.{first.name.split('.')[1]}.parquet")
        first.write_bytes(path.read_bytes())
    elif damage == "of another ledger":
        (tmp_path / "ledger" / "secret.key").write_bytes(bytes(32))
    else:
        first.write_bytes({"cut": first.read_bytes()[:50], "exchanged": second.read_bytes(), "emptied": b""}[damage])
    names = store.names()
    assert Ledger(store.url).verify().differences
    assert run(["ledger", "verify", store.url]) == 1
    assert run(["ledger", "show", store.url]) == 2
    with refused("damaged-artifact"):
        enter(store, entry_of(tmp_path / "in", ROWS, release="t"), lambda _: None)
    assert store.names() == names


def test_a_run_that_is_refused_withdraws_its_own_entry_alone(store: EntryStore, tmp_path: Path) -> None:
    """Another run of the same release has an entry of its own, and keeps it; later ones rely on it."""
    entry = entry_of(tmp_path / "in", ROWS)

    def refuse(_: Any) -> None:
        if store.names():
            raise CapError("full")
        enter(store, entry)

    with pytest.raises(WorkError):
        enter(store, entry_of(tmp_path / "other", ROWS), refuse)
    (name,) = store.names()
    assert enter(store, entry, lambda _: None) == name[:32]
    assert store.names() == [name]


def test_an_account_is_entered_in_its_own_ledger_alone(store: EntryStore, tmp_path: Path) -> None:
    """A worker for which the address leads elsewhere makes no ledger there, and admits nothing by another one."""
    account = Account(None, about(), "r", "text", CUSTOMER, secret=store.secret)  # type: ignore[arg-type]
    note = pq.read_table(write_note(tmp_path / "note", ROWS))
    with pytest.raises(MissingError):
        reserve(Spending(str(tmp_path / "elsewhere"), units=CUSTOMER), account, [note])
    assert not (tmp_path / "elsewhere").exists()
    EntryStore.open(str(tmp_path / "other"), CUSTOMER)
    with pytest.raises(SettingError):
        reserve(Spending(str(tmp_path / "other"), units=CUSTOMER), account, [note])
    assert len(reserve(Spending(store.url, units=CUSTOMER), account, [note])) == 1


def test_an_entry_that_is_gone_is_missed(store: EntryStore, tmp_path: Path) -> None:
    """Its run left a mark that it was kept; without it, the ledger would let the unit spend the same again."""
    enter(store, entry_of(tmp_path / "in", ROWS))
    for entry in (tmp_path / "ledger" / ENTRIES).glob("*.parquet"):
        entry.unlink()
    for command in ("show", "verify"):
        fails(["ledger", command, store.url], "damaged-artifact", ".kept", "are gone")
    with refused("damaged-artifact", ".kept"):
        enter(store, entry_of(tmp_path / "in", ROWS))


def test_an_entry_that_is_withdrawn_meanwhile_is_none(store: EntryStore, tmp_path: Path) -> None:
    enter(store, entry_of(tmp_path / "in", ROWS))
    assert store.fetched(f"{'0' * 32}.{'0' * 16}.parquet", str(tmp_path), store.secret) is None
    fetched = store.fetched(store.names()[0], str(tmp_path), store.secret)
    assert fetched is not None
    (tmp_path / "ledger" / ENTRIES / fetched.name).unlink()
    assert pq.read_metadata(fetched.path).num_rows == len(ROWS)  # what was fetched stays


class TestPlaces:
    def test_a_ledger_follows_no_link(self, tmp_path: Path) -> None:
        """Other places where it can't be are among the hostile calls."""
        (tmp_path / "linked").mkdir()
        (tmp_path / "linked" / ENTRIES).symlink_to(tmp_path)
        for enter_at in (
            lambda: EntryStore.open(str(tmp_path / "linked"), CUSTOMER),
            Ledger(str(tmp_path / "linked")).spent,
        ):
            with refused("unusable-address", ENTRIES, "symbolic link"):
                enter_at()

    @pytest.mark.parametrize(
        ("name", "error"), [("secret.key", MissingError), ("ledger.json", ArtifactError), ("cut", SettingError)]
    )
    def test_a_ledger_without_its_secret_or_units_is_refused(
        self, store: EntryStore, tmp_path: Path, name: str, error: type[Exception]
    ) -> None:
        """Neither is made anew beside entries: a new secret would recognize nobody, and new units would miss them."""
        enter(store, entry_of(tmp_path / "in", ROWS))
        if name == "cut":
            (tmp_path / "ledger" / "secret.key").write_bytes(b"short")
        else:
            (tmp_path / "ledger" / name).unlink()
        with pytest.raises(error):
            assert EntryStore.open(store.url, CUSTOMER).secret


def test_fingerprints_say_nothing_without_the_secret(store: EntryStore, tmp_path: Path) -> None:
    """Each purpose has a key of its own, and no key is the secret."""
    keys = {part(store.secret, purpose) for purpose in (b"unit", b"content", b"noise r", b"entry")}
    assert len(keys) == 4
    assert store.secret not in keys
    assert enter(store, entry_of(tmp_path / "in", ROWS))
    data = b"".join(path.read_bytes() for path in (tmp_path / "ledger" / ENTRIES).iterdir())
    assert store.secret not in data


def test_other_units_stop_runs(tmp_path: Path) -> None:
    space, url = make_space(tmp_path / "space"), tmp_path / "ledger"
    table, ledger = pa.table({"text": [f"{WORDS[1]} {WORDS[2]}"], "a": [1], "b": [1]}), cv.Ledger(str(url), cap=80)
    cv.privatize(table, release_of(space), ids=[1], ledger=ledger, unit="a")
    (url / "ledger.json").write_text((url / "ledger.json").read_text().replace('"a"', '"b"'))
    with refused("damaged-artifact"):
        cv.privatize(table, release_of(space, 1.0, 1), ids=[1], ledger=ledger, unit="b")

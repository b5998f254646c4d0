"""Flows as calls from Python: ``cv.release`` and ``cv.preview`` from names, ``cv.privatize_corpus``, ``cv.plan``."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import pyarrow as pa

from corpusveil.choices import OnBadRows, Separator
from corpusveil.errors import (
    DataError,
    SettingError,
    UserError,
    nearest,
    of_other_type,
)
from corpusveil.jobs.local import Local
from corpusveil.ledger.summary import Ledger, require_ledger
from corpusveil.pipelines.fields import Setting
from corpusveil.pipelines.flows import options_of
from corpusveil.pipelines.preview import ROWS, TEXTS, Preview, drawn
from corpusveil.pipelines.resolve import release_of
from corpusveil.pipelines.settings import Settings, started
from corpusveil.pipelines.settings.faults import ended, validated
from corpusveil.sampling.keys import Key
from corpusveil.spaces import Space, load_space
from corpusveil.spaces.installed import ENGLISH, SCHEME
from corpusveil.storage import files
from corpusveil.storage.corpus import CorpusIn, CorpusOut
from corpusveil.storage.engine import Engine
from corpusveil.storage.inputs import Address, addresses
from corpusveil.storage.rows import Columns
from corpusveil.transforms.frames import frame_of
from corpusveil.transforms.release.corpus import Outcome, Run
from corpusveil.transforms.release.keyed_release import AnyRelease, require_release
from corpusveil.transforms.release.planning import Forecast, forecast
from corpusveil.transforms.table import chunks_of, plain_texts

Units: TypeAlias = str | Sequence[str] | Mapping[str, str] | None
"""The units of a ledger: a column or ``content``, several, or columns by name."""


T = TypeVar("T")
_RELEASES = ("space", "store", "mechanism", "budget", "text", "spans")
"""The sections of settings that a release is made of."""
PASSAGE = 10.0
"""The epsilon of a text, at which ``preview`` shows passages."""
_ALSO = ("duplicates", "accept_no_guarantee")


@dataclass(frozen=True, slots=True)
class NamedCall:
    """A call from Python whose arguments are settings, under the names of the options of *privatize*."""

    call: str

    def name(self, place: str) -> str:
        named = (name for name, setting in _arguments().items() if setting.place == place)
        return next(named, place.partition(".")[2] or place)

    def fault(self, place: str, sentence: str, value: object = None, kind: type[UserError] = SettingError) -> UserError:
        given = "" if value is None else f" = {value!r}"
        return kind(f"{self.call}: {self.name(place)}{given}: {ended(sentence.replace('this key', 'this argument'))}")


def release(
    *, key: Key, space: str | None = None, mechanism: str | None = None, store: str | None = None, **policies: Any
) -> Any:  # fmt: skip
    """Return a release from names; ``print`` shows everything that they choose.

    ``cv.release(risk=0.5, key=cv.Key.generate())`` draws with the installed space *en* and the mechanism
    ring-geometric, at the epsilon at which a reader from context recovers at most half of the content words.
    ``policies`` are the settings of *privatize* under the names of its options: ``risk`` or ``epsilon``, ``per``,
    ``stop_words``, ``numbers``, ``spans`` and so on (docs/settings.md), with the same defaults.
    ``cv.release(store="en", epsilon=10, key=key)`` returns a ``PassageRelease``, which replaces whole texts by public
    ones. Raises UserError for unknown names and values, and for settings that exclude each other.
    """
    if not isinstance(key, Key):
        raise of_other_type("key", key, "cv.Key.load(PATH) or cv.Key.generate()")
    named = {"risk": None, "epsilon": None, "store": store} | policies
    settings = _named("cv.release", space, mechanism, named)
    return release_of(settings, key)


def preview(
    texts: Any, text: str = "text", *, risk: float | None = None, epsilon: float | None = None, key: Key | None = None,
    space: str | None = None, mechanism: str | None = None, store: str | None = None, **policies: Any,
) -> Preview:  # fmt: skip
    """Return some texts before and drawn, for a look; private, like the texts.

    ``texts`` are what ``cv.privatize`` takes: a list, a column or a frame with a column ``text``. The other arguments
    are those of ``cv.release``, and ``risk`` is 0.5 if neither it nor ``epsilon`` is given. Unless space, mechanism,
    store or epsilon is named, it also shows the public passages that could stand for the texts (the store *en*, at
    epsilon 10). A notebook shows a table. Without a ``key``, one is made and thrown away. Nothing is written or spent.
    """
    shows_both = (space, mechanism, store, epsilon) == (None,) * 4
    if store is None and risk is None and epsilon is None:
        risk = started("budget")["budget"]["risk"]
    given = policies | {"risk": risk, "epsilon": epsilon, "store": store}
    settings = _named("cv.preview", space, mechanism, given)
    first = (settings, [] if epsilon is None else [float(epsilon)])
    passages = (_named("cv.preview", None, None, {"store": ENGLISH, "epsilon": PASSAGE}), [PASSAGE])
    return _previewed(texts, text, [first, *([passages] if shows_both else [])], key)


def _previewed(
    texts: Any, text: str, ways: Sequence[tuple[Settings, Sequence[float]]], key: Key | None
) -> Preview:  # fmt: skip
    """Draw the first texts by each of these settings, at its risk and these epsilons, under one key."""
    frame = frame_of(texts, text)
    plain = (plain_texts(chunk, text).cast(pa.large_string()) for chunk in chunks_of(frame.texts))
    sample = pa.chunked_array(plain, pa.large_string())
    there = [row for row, content in enumerate(sample.slice(0, ROWS).to_pylist()) if content and content.strip()]
    if not there:
        raise DataError(f"{text}: the first {ROWS} rows have no text; give others.")
    sample = sample.take(pa.array(there, pa.int64())).combine_chunks()
    key_in_words = "A throwaway key: the next preview will differ." if key is None else "Under the key that was given."
    used, made = key or Key.generate(), list[Preview]()
    for settings, epsilons in ways:
        rows = [(content, str(number)) for number, content in enumerate(sample.slice(0, TEXTS).to_pylist())]
        made.append(drawn(settings, epsilons, rows, sample, text, used, ""))
    return made[0].beside(made[1:], key_in_words)


def _named(call: str, space: str | None, mechanism: str | None, policies: Mapping[str, Any]) -> Settings:
    """Return the settings of named arguments; those that are None are not given."""
    made = ({} if policies.get("store") else started("space", "mechanism")) | {"budget": {}}
    known, caller = _arguments(), NamedCall(call)
    for name, value in {"space": space, "mechanism": mechanism, **policies}.items():
        setting = known.get(name)
        if setting is None:
            raise SettingError(f"{call}: there is no argument {name}{nearest(name, known) or '.'}")
        if value is not None:
            made.setdefault(setting.name, {})[setting.key] = list(value) if isinstance(value, tuple) else value
    if (output := made.get("output")) is not None:
        output["path"] = "-"
    return validated(made, caller).with_names()


def _arguments() -> dict[str, Setting]:
    options = options_of("privatize").items()
    return {
        name: setting for name, setting in options
        if name in _ALSO or setting.name in _RELEASES
    }  # fmt: skip


def privatize_corpus(
    inputs: Address | Sequence[Address],
    output: Address,
    release: AnyRelease,
    engine: Engine | None = None,
    *,
    text: str = "text",
    id: str | None = None,
    keep: str | Sequence[str] = (),
    separator: Separator = "comma",
    corpus: str | None = None,
    root: Address | None = None,
    records: Address | None = None,
    ledger: Ledger | None = None,
    unit: Units = None,
    format: str = "same",
    on_bad_rows: OnBadRows = "refuse",
    rows_per_task: int | None = None,
    mark_source: bool = False,
) -> Outcome:
    """Privatize files, folders or globs into ``output/data``, and write ``output/manifest.json`` last.

    Every ``engine`` writes the same bytes: ``cv.Local(workers=2)`` (default: this process), ``cv.Spark()``,
    ``cv.Beam()``. A repeated call resumes after any interruption, and leaves a finished release as it is. Private
    figures go to ``records`` (default: ``<output>.records``).

    ``text`` is the column that becomes private, or a path to texts within one (``messages[].content``), and ``id`` a
    column that identifies documents. Without ``id``, three things identify a document: the name ``corpus`` (default:
    its folder), the file's path below ``root`` (default: the lowest common folder), and the row. Other columns are
    written only if ``keep`` names them, in the clear; ``"all"`` keeps every other column (a column of that name alone
    is ``'"all"'``).

    A ``ledger`` checks its caps, and records what units spend, before anything is drawn. ``unit`` names their column
    (an author, a customer, the id), or several, or ``"content"``; ``{"customer_id": "customer"}`` says in which column
    the ledger's unit customer_id is. In a named ``corpus``, units are those of this data set only. Pseudonyms that are
    equal within a unit need ``unit`` also without a ledger. ``format``,
    ``separator``, ``on_bad_rows``, ``rows_per_task`` and ``mark_source`` are those of the command line.

    Raises UserError if input or arguments are wrong, a cap refuses the release, or the output is another release's;
    WorkError if the engine fails, or another run uses the same records.
    """
    private = None if records is None else files.as_text(records)
    writes = CorpusOut(files.as_text(output), private, format, rows_per_task)
    run = _run(release, inputs, writes, text, id, keep, separator, corpus, root, ledger, unit, on_bad_rows)
    if mark_source and release.counted == "token":
        raise SettingError("mark_source: words are drawn for each text, which is not public; release passages.")
    columns = dataclasses.replace(run.reads.columns, marked=mark_source)
    run = dataclasses.replace(run, reads=dataclasses.replace(run.reads, columns=columns))
    return run.privatize(_engine(engine))


def plan(
    inputs: Address | Sequence[Address],
    release: AnyRelease,
    *,
    text: str = "text",
    id: str | None = None,
    keep: str | Sequence[str] = (),
    separator: Separator = "comma",
    corpus: str | None = None,
    root: Address | None = None,
    ledger: Ledger | None = None,
    unit: Units = None,
    format: str = "same",
    on_bad_rows: OnBadRows = "refuse",
) -> Forecast:
    """Forecast what ``privatize_corpus`` would read, write, take and spend, from a sample; release and reserve nothing.

    The arguments are those of ``privatize_corpus``. Raises UserError for faults in the sampled shards. The forecast
    says if a cap refuses the release.
    """
    writes = CorpusOut("", format=format)
    run = _run(release, inputs, writes, text, id, keep, separator, corpus, root, ledger, unit, on_bad_rows)
    return forecast(run)


def _run(
    release: AnyRelease, inputs: Address | Sequence[Address], writes: CorpusOut, text: str, id: str | None,
    keep: str | Sequence[str], separator: Separator, corpus: str | None, root: Address | None, ledger: Ledger | None,
    unit: Units, on_bad_rows: OnBadRows,
) -> Run:  # fmt: skip
    require_release(release)
    columns, at = Columns.of(text, id, keep, separator), None if root is None else files.as_text(root)
    spending = require_ledger(ledger, unit, corpus)
    return Run(release, CorpusIn(addresses(inputs), columns, at, corpus, on_bad_rows), writes, spending=spending)


def _engine(engine: Engine | None) -> Engine:
    """Return the engine, by default this process. Raises UserError for anything else, such as a name or a class."""
    if engine is None:
        return Local()
    if isinstance(engine, type) or not callable(getattr(engine, "run", None)):
        needed = "an engine, such as cv.Local(workers=2), cv.Spark() or cv.Beam()"
        if isinstance(engine, type):
            raise SettingError(f"engine: give {needed}, not the class {engine.__name__}.")
        raise of_other_type("engine", engine, needed)
    return engine


def demo_space() -> Space:
    """Return the space ``en`` of the package corpusveil-space-en: 57,701 words of general English.

    The first call unpacks it into the user's cache folder. It has 96 dimensions, public frequencies and one list by
    meaning, grammar and frequency, so every mechanism works on it.

    Raises UserError where the package is missing, or other users may write to the cache folder.
    """
    return load_space(SCHEME + ENGLISH)

"""Flows as calls from Python: ``cv.release`` and ``cv.preview`` from names, ``cv.privatize_corpus``, ``cv.plan``."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any, overload

import numpy as np
import pyarrow as pa

from corpusveil.choices import Duplicates, OnBadRows, Separator
from corpusveil.errors import DataError, SettingError, nearest, of_other_type
from corpusveil.jobs.local import Local
from corpusveil.ledger.summary import Ledger, require_ledger
from corpusveil.passages.pieces import Per
from corpusveil.passages.store import Store
from corpusveil.pipelines.flows import options_of
from corpusveil.pipelines.preview import ROWS, TEXTS, Preview, previewed
from corpusveil.pipelines.resolve import release_of
from corpusveil.pipelines.settings import Settings, started
from corpusveil.pipelines.settings.faults import Caller, validated
from corpusveil.sampling.keys import Key
from corpusveil.spaces import Space
from corpusveil.spaces.installed import ENGLISH
from corpusveil.storage import files
from corpusveil.storage.corpus import CorpusIn, CorpusOut
from corpusveil.storage.engine import Engine
from corpusveil.storage.inputs import Address, addresses
from corpusveil.storage.rows import Columns
from corpusveil.transforms.frames import frame_of
from corpusveil.transforms.release.corpus import Outcome, Run
from corpusveil.transforms.release.keyed_release import AnyRelease, require_release
from corpusveil.transforms.release.passage_release import PassageRelease
from corpusveil.transforms.release.planning import Forecast, forecast
from corpusveil.transforms.release.release import Release
from corpusveil.transforms.table import Units

_RELEASES = ("space", "store", "mechanism", "budget", "text", "spans")
"""The sections of settings that a release is made of."""
PASSAGE = 10.0
"""The epsilon of a text, at which ``preview`` shows passages."""
_ALSO = ("duplicates", "accept_no_guarantee")


@overload
def release(
    *, key: Key, store: str | Store, epsilon: float, per: Per = ..., neighbors: int | None = ...,
    most_pieces: int | None = ..., duplicates: Duplicates = ..., accept_overlap: bool = ...,
) -> PassageRelease: ...  # fmt: skip


@overload
def release(
    *, key: Key, risk: float | None = ..., epsilon: float | None = ..., space: str | Space | None = ...,
    mechanism: str | None = ..., store: None = ..., **policies: Any,
) -> Release: ...  # fmt: skip


def release(
    *, key: Key, space: str | Space | None = None, mechanism: str | None = None, store: str | Store | None = None,
    **policies: Any,
) -> Any:  # fmt: skip
    """Return a release from names; ``print`` shows everything that they choose.

    The default replaces words by ring-geometric in the installed space *en*. ``policies`` are the settings of
    *privatize* under the names of its options, with the same defaults (docs/settings.md): ``epsilon`` (nats), or
    ``risk``, the share of content words that a reader from context recovers at most, which chooses epsilon; ``per``,
    ``stop_words``, ``spans`` and so on. With ``store``, it is a ``PassageRelease``, which replaces whole texts by
    public ones. Raises UserError for unknown names and values, and for settings that exclude each other.

    >>> cv.release(risk=0.5, key=key).mechanism.name
    'ring-geometric'
    >>> cv.release(store="en", epsilon=10, key=key).guarantee().per
    'document'
    """
    if not isinstance(key, Key):
        raise of_other_type("key", key, "cv.Key.load(PATH) or cv.Key.generate()")
    named = {"risk": None, "epsilon": None, "store": store} | policies
    settings = _named("cv.release", space, mechanism, named)
    return release_of(settings, key)


def preview(
    texts: Any, text: str = "text", *, risk: float | None = None, epsilon: float | None = None, key: Key | None = None,
    space: str | Space | None = None, mechanism: str | None = None, store: str | Store | None = None, **policies: Any,
) -> Preview:  # fmt: skip
    """Return the first texts before and after, to look at; as private as the texts. Nothing is written or spent.

    ``texts`` are as in ``cv.privatize``, other arguments as in ``cv.release``; ``risk`` is 0.5 if neither it nor
    ``epsilon`` is given. Unless space, mechanism, store or epsilon is named, passages of the store *en* at epsilon 10
    are shown, too. Without a ``key``, a new one is made and thrown away. Raises UserError as ``cv.release`` does.

    >>> print(cv.preview(["The river was cold."], store="en", epsilon=10))
    PRIVATE: this shows original text. ...
    """
    shows_both = (space, mechanism, store, epsilon) == (None,) * 4
    if store is None and risk is None and epsilon is None:
        risk = started("budget")["budget"]["risk"]
    given = policies | {"risk": risk, "epsilon": epsilon, "store": store}
    settings = _named("cv.preview", space, mechanism, given)
    ways = [(settings, [] if epsilon is None else [float(epsilon)])]
    if shows_both:
        ways.append((_named("cv.preview", None, None, {"store": ENGLISH, "epsilon": PASSAGE}), [PASSAGE]))
    return _shown(ways, texts, text, key)


def compare(
    texts: Any, text: str = "text", *, risks: Sequence[float] = (), epsilons: Sequence[float] = (),
    key: Key | None = None, space: str | Space | None = None, mechanism: str | None = None,
    store: str | Store | None = None, **policies: Any,
) -> Preview:  # fmt: skip
    """Return what ``preview`` shows at each of some risks and epsilons, under one key. Raises UserError as it does.

    >>> [each.epsilon for each in cv.compare(["The river was cold."], store="en", epsilons=[8, 10]).drawn]
    [8.0, 10.0]
    """
    named = functools.partial(_named, "cv.compare", space, mechanism)
    ways = [(named(policies | {"store": store, "risk": risk}), list[float]()) for risk in risks]
    ways += [(named(policies | {"store": store, "epsilon": epsilon}), [float(epsilon)]) for epsilon in epsilons]
    if not ways:
        raise SettingError("cv.compare: give risks=[0.3, 0.5], epsilons=[1.0], or both.")
    return _shown(ways, texts, text, key)


def _shown(ways: Sequence[tuple[Settings, Sequence[float]]], texts: Any, text: str, key: Key | None) -> Preview:
    frame = frame_of(texts, text)
    sample = frame.texts.cast(pa.large_string())
    there = [row for row, content in enumerate(sample.slice(0, ROWS).to_pylist()) if content and content.strip()]
    if not there:
        raise DataError(f"{text}: the first {ROWS} rows have no text; give others.")
    sample = sample.take(pa.array(there, pa.int64())).combine_chunks()
    rows = [(content, str(number)) for number, content in enumerate(sample.slice(0, TEXTS).to_pylist())]
    named = "A throwaway key: the next preview will differ." if key is None else "Under the key that was given."
    return previewed(ways, rows, sample, text, key or Key.generate(), named)


def _named(call: str, space: str | Space | None, mechanism: str | None, policies: Mapping[str, Any]) -> Settings:
    """Return the settings of named arguments; those that are None are not given."""
    made = ({} if policies.get("store") else started("space", "mechanism")) | {"budget": {}}
    options = options_of("privatize", in_files=True).items()
    known = {name: setting for name, setting in options if name in _ALSO or setting.name in _RELEASES}
    names = {setting.setting: name for name, setting in known.items()}
    caller = Caller(
        lambda place: names.get(place, place.partition(".")[2] or place), lambda value: f" = {value!r}", f"{call}: ",
        "argument",
    )  # fmt: skip
    for name, value in {"space": space, "mechanism": mechanism, **policies}.items():
        setting = known.get(name)
        if setting is None:
            raise SettingError(f"{call}: there is no argument {name}{nearest(name, known) or '.'}")
        if isinstance(value, (Space, Store)):
            if value.url is None:
                raise SettingError(f"{call}: {name}: this is not saved; save(URL) it, and give what that returns.")
            made.setdefault(setting.name, {})[setting.key] = value.url
        elif value is not None:
            made.setdefault(setting.name, {})[setting.key] = list(value) if isinstance(value, tuple) else _whole(value)
    if (output := made.get("output")) is not None:
        output["path"] = "-"
    return validated(made, caller).with_names()


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

    Every ``engine`` writes the same bytes: ``cv.Local()`` (default), ``cv.Spark()``, ``cv.Beam()``. A repeated call
    resumes after an interruption, and leaves a finished release unchanged. Private figures go to ``records`` (default:
    ``<output>.records``).

    The column ``text`` becomes private. Documents are identified by the column ``id``; without it by the name
    ``corpus`` (default: its folder), the path below ``root`` (default: the lowest common folder) and the row number.
    Other columns are written only if ``keep`` names them, unchanged and in the clear. ``ledger`` and ``unit`` are those
    of ``cv.privatize``; all other arguments are options of *corpusveil privatize* (docs/settings.md).

    Raises UserError if input or arguments are wrong, a cap refuses the release, or the output has another release;
    WorkError if the engine fails, or another run uses the same records.

    >>> cv.privatize_corpus("reviews.csv", "private", release, id="id", keep=["stars"]).shards
    1
    """
    private = None if records is None else files.as_text(records)
    writes = CorpusOut(files.as_text(output), private, format, _whole(rows_per_task))
    if not isinstance(mark_source, bool):
        raise of_other_type("mark_source", mark_source, "True or False")
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
    """Forecast from a sample what ``privatize_corpus`` would read, write and spend; release and reserve nothing.

    Arguments are those of ``privatize_corpus``. The forecast says if a cap refuses the release. Raises UserError for
    faults in the sampled shards.

    >>> cv.plan("reviews.csv", release, id="id").documents
    3
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
    columns, at = Columns.from_names(text, id, keep, separator), None if root is None else files.as_text(root)
    reading = {"text": text, "id": id, "keep": [*columns.keep], "separator": separator, "name": corpus}
    writing = {"on_bad_rows": on_bad_rows, "format": writes.format, "rows_per_task": writes.rows_per_task}
    caller = Caller(lambda at: at.removesuffix(".name").rpartition(".")[2], " = {!r}".format, "", "argument")
    validated({"corpus": {"input": ["-"]} | reading, "output": {"path": "-"} | writing}, caller)
    spending = require_ledger(ledger, unit, corpus)
    return Run(release, CorpusIn(addresses(inputs), columns, at, corpus, on_bad_rows), writes, spending=spending)


def _whole(value: Any) -> Any:
    """Return a whole number of NumPy as one of Python, and anything else as it is."""
    return value.item() if isinstance(value, np.integer) else value


def _engine(engine: Engine | None) -> Engine:
    """Return the engine, by default this process. Raises UserError for anything else, such as a name or a class."""
    if engine is None:
        return Local()
    if isinstance(engine, type) or not callable(getattr(engine, "run", None)):
        raise of_other_type("engine", engine, "an engine, such as cv.Local(workers=2), cv.Spark() or cv.Beam()")
    return engine

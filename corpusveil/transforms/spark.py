"""A release on a Spark DataFrame, classic or of Spark Connect: the batch kernel under ``mapInArrow``."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from corpusveil.errors import DataError, SettingError, UserError, VersionError, listed, sentences_in
from corpusveil.kernel.transform import Transform
from corpusveil.ledger.account import Account, packed
from corpusveil.ledger.caps import reserve_table
from corpusveil.ledger.summary import Ledger, require_ledger
from corpusveil.storage.documents import Documents
from corpusveil.storage.rows import Columns
from corpusveil.storage.values import not_kept
from corpusveil.transforms.frames import Kept, not_copied, place_of, plain_texts, stays_of
from corpusveil.transforms.identities import identities_of
from corpusveil.transforms.release.keyed_release import AnyRelease, require_release
from corpusveil.transforms.table import Units, of_columns, privatized_parts

OF_IDS = ("string", "tinyint", "smallint", "int", "bigint")
"""The types of ids."""
OF_KEPT = (*OF_IDS, "float", "double", "boolean", "date", "timestamp", "timestamp_ntz")
"""The types of kept columns."""

CONNECT_BYTES = 100 << 20
"""The largest message of a Connect client is 128 MiB, unless the server is configured otherwise."""


def privatize_frame(
    df: Any,
    release: AnyRelease,
    text: str = "text",
    id: str | None = None,
    *,
    keep: Kept = (),
    ledger: Ledger | None = None,
    unit: Units = None,
    corpus: str | None = None,
) -> Any:
    """Privatize the string column ``text`` of a DataFrame; its type and nullability stay.

    Other columns come back only if ``keep`` names them, in the clear (strings, integers, floats, booleans, dates,
    timestamps); a warning names what was dropped.

    ``id`` names a column whose value identifies each document: a DataFrame has no row numbers, so it is needed. Two
    rows with the same id and the same text get the same output. Works on classic DataFrames, on those of Spark Connect,
    and on streams. A saved space is sent to the workers as its URL, which each worker must be able to reach; a space
    that was never saved is sent whole.

    With a ``ledger``, Spark runs the frame's plan at once and keeps its rows (``localCheckpoint``), so that exactly the
    documents that are accounted for are drawn, even if the plan is random or its source changes. The frame is returned
    only after the ledger has admitted and recorded what their units spend. ``unit`` and ``corpus`` are those of
    ``cv.privatize``. If an executor with such rows is lost, the frame fails; call again: equal noise is spent once.
    A stream takes no ledger; each of its micro-batches does (``foreachBatch``).

    Raises UserError if a column is missing, is not text, or has a type that cannot be an id; if an unsaved space is too
    large for Spark Connect; if workers on this machine run another Python; and, with a ledger, if a row has no id or
    unit, or a unit would spend more than a cap. Without a ledger, a row without an id is found when Spark runs the
    plan. Spark then raises its PythonException, whose text has a traceback of our code followed by the UserError's
    sentence, and no text of a document.
    """
    if id is None:
        raise SettingError(
            "Documents of a DataFrame have no row order to identify them by; name a column that identifies them: "
            "id='...'."
        )
    if not type(df).__module__.startswith("pyspark."):
        raise SettingError(
            f"privatize_frame takes a DataFrame of Spark, not of {type(df).__module__}; use cv.privatize for "
            "other frames."
        )
    require_release(release)
    schema = df.schema
    spending = require_ledger(ledger, unit, corpus)
    units = () if spending is None else spending.columns
    wanted = Columns.from_names(text, None, keep)
    stays, dropped = stays_of(schema.names, wanted)
    for name in (id, *units):
        place_of(schema.names, name)
    kind = schema[text].dataType.simpleString()
    if kind != "string" and not kind.startswith("string collate "):
        raise DataError(f"{text}: this column is of type {kind}; cast it to string first.")
    kind = schema[id].dataType.simpleString()
    if kind.partition(" ")[0] not in OF_IDS:
        raise DataError(f"{id}: an id is a string or an integer, and this column is {kind}; cast it first.")
    for name in wanted.keep:
        if (kind := schema[name].dataType.simpleString()).partition(" ")[0] not in OF_KEPT:
            raise not_kept(name, kind)
    _check_workers(df.sparkSession, release)
    numbered = df.toDF(*(f"c{number}" for number in range(len(schema))))  # mapInArrow interprets dots in names as paths
    if spending is not None:
        if df.isStreaming:
            raise SettingError(
                "ledger: a stream has no end to account for before it is drawn; call privatize_frame with the ledger "
                "on each micro-batch, in writeStream.foreachBatch."
            )
        numbered = numbered.localCheckpoint()  # what is drawn is what was counted, whatever the plan gives next time
        account = spending.accounting(release.account(text))
        names = list(dict.fromkeys((text, id, *units)))
        needed = numbered.select(*(f"c{schema.names.index(name)}" for name in names))
        accounting = _accounts(account, names, id, units)
        chunks = needed.mapInArrow(accounting, "chunk binary").toLocalIterator()
        try:
            reserve_table(spending, account, (pa.ipc.open_stream(row.chunk).read_all() for row in chunks))
        except UserError:
            raise
        except Exception as error:
            if sentences := sentences_in(str(error)):  # of a worker, in the text of Spark's exception
                raise DataError(sentences[-1]) from None
            raise
    if dropped:
        warnings.warn(not_copied(listed(dropped)), stacklevel=2)
    run = _batches(release.kernel(), schema.names, text, id, stays)
    # without metadata: that of a column of categories may have values of other rows
    fields = [type(field)(field.name, field.dataType, field.nullable) for field in (schema.fields[at] for at in stays)]
    return numbered.mapInArrow(run, type(schema)(fields))


def _documents(batch: pa.RecordBatch, text: str, id: str, units: Sequence[str] = ()) -> Documents:
    """Return the documents of a batch. Raises UserError for ids, units and texts that cannot be used."""
    texts, identities = plain_texts(batch.column(text), text), identities_of(batch.column(id), id)
    values = {name: batch.column(name) for name in units}
    return Documents(texts, identities, text, values, range(len(texts)), "a batch of the frame")


def privatize_column(release: AnyRelease, text: str = "text", id: str = "id") -> Any:
    """Return an expression for the privatized column ``text``, as ``df.withColumn("text", ...)`` takes it.

    It is what ``privatize_frame`` writes, but asks for no schema, which Spark does not resolve in a query function of a
    declarative pipeline; nothing can be registered there either. An id must not be null, and no ledger can be asked, as
    with ``cv.register_sql``. Raises UserError if Spark is older than 4.1, or an unsaved space too large for Connect.
    """
    from pyspark.sql import SparkSession
    from pyspark.sql.functions import col, lit

    function = spark_function(SparkSession.active(), release, "privatize_column")
    named = (col(f"`{name.replace('`', '``')}`") for name in (id, text))  # a dot is no path into a column
    return function(lit(text), *named).alias(text)


def spark_function(spark: Any, release: AnyRelease, name: str) -> Any:
    """Return the function of a column's name, ids and texts, for SQL and for expressions."""
    import pyspark.sql.functions
    from pyspark.sql.types import StringType

    if not hasattr(pyspark.sql.functions, "arrow_udf"):
        raise VersionError(f"{name} needs Spark 4.1 or later, and this is {pyspark.__version__}; upgrade it.")
    _check_workers(spark, require_release(release))
    # a type by its name is asked of a Connect server
    return pyspark.sql.functions.arrow_udf(of_columns(release, name), StringType())


def _check_workers(spark: Any, release: AnyRelease) -> None:
    """Raise UserError if workers run another Python, or if an unsaved space is too large to be sent to them."""
    if not type(spark).__module__.startswith("pyspark.sql.connect."):
        return
    public = release.public
    if public.url is None and public.vectors.nbytes > CONNECT_BYTES:
        raise DataError(
            "The space or store is too large to be sent through Spark Connect; save it in a place that the workers can "
            "reach."
        )


def _accounts(
    account: Account, names: list[str], id: str, units: Sequence[str]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function that accounts on workers; the rows of an account travel as streams of Arrow's format.

    All of them go to the driver, which writes them to the ledger; so there is nothing that Spark should group before.
    """

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = account.spending(_documents(batch.rename_columns(names), account.column, id, units))
            yield pa.record_batch({"chunk": [packed([rows])]})

    return run


def _batches(
    kernel: Transform, names: list[str], text: str, id: str, stays: Sequence[int]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function that runs on workers; ``stays`` are the numbers of the columns that are kept."""
    place = names.index(text)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            named = batch.rename_columns(names)
            first = 0
            for part in privatized_parts(kernel, _documents(named, text, id), named.column(place).type):
                private = named.slice(first, len(part)).set_column(place, named.schema.field(place), part)
                yield private.select(stays)
                first += len(part)

    return run

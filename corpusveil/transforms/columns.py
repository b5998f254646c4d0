"""A release as a function of columns, by name: in the SQL of DuckDB and Spark, and as an expression of Polars."""

from __future__ import annotations

import contextlib
from typing import Any

import pyarrow as pa

from corpusveil.errors import DataError, SettingError, of_other_type
from corpusveil.ledger.summary import Ledger
from corpusveil.transforms.identities import column_values
from corpusveil.transforms.release.keyed_release import AnyRelease
from corpusveil.transforms.table import of_columns

_REGISTERED: list[Any] = []
"""DuckDB frees a function with the cursor that registered it, though others still call it (duckdb-python 530)."""


def register_sql(
    connection: Any, release: AnyRelease, name: str = "privatize", *, ledger: Ledger | None = None
) -> None:
    """Register the SQL function ``privatize('review', id, text)`` in a DuckDB connection or a Spark session.

    Its first argument is a constant: the name of the column, which noise depends on; then the document's id and its
    text. It returns what ``cv.privatize`` writes for this column, id and text, by words or by passages. Noise is keyed,
    so the function is deterministic, and the engine may evaluate it again. A null text stays null; an id must not be
    null. A session of Spark is classic or of Connect.

    A function of rows cannot ask a ledger before it draws: raises UserError if one is given, if Spark is older than
    4.1, and for other connections. A fault of a row arrives in the engine's own exception, which has the sentence of
    the UserError and no text of a document.
    """
    if ledger is not None:
        raise SettingError(
            "ledger: a SQL function draws row by row and cannot account for them before; account first, with "
            "cv.privatize, or in Spark privatize_frame (text=..., id=..., ledger=ledger, unit=...)."
        )
    if not isinstance(name, str) or not name:
        raise SettingError("name: give the name of the SQL function, such as privatize.")
    if type(connection).__module__.startswith("pyspark."):
        from corpusveil.transforms.spark import spark_function

        connection.udf.register(name, spark_function(connection, release, name))
    elif hasattr(connection, "create_function"):  # the types of ids are those of the query
        run = of_columns(release, name)

        def rows(*columns: Any) -> pa.Array:
            if len(columns) != 3:
                raise DataError(f"{name}: give three arguments, as in {name}('review', id, review).")
            return run(*columns)

        with contextlib.suppress(Exception):  # as Spark does, a name that is registered again has the new release
            connection.remove_function(name)
        _REGISTERED.append(rows)
        connection.create_function(name, rows, None, "VARCHAR", type="arrow", null_handling="special")
    else:
        raise SettingError(
            f"register_sql takes a connection of DuckDB or a session of Spark, not a {type(connection).__name__}."
        )


def expr(release: AnyRelease, text: str = "text", id: str = "id") -> Any:
    """Return the Polars expression of the privatized column ``text``, for eager, lazy and streaming frames.

    ``frame.with_columns(cv.expr(release, "review", "review_id"))`` gives what ``cv.privatize`` writes, batch by batch,
    so a query that is larger than memory streams. The column has to be of strings; an id must not be null. It asks no
    ledger. Raises UserError for a release that needs further columns; a fault of a row arrives as a ComputeError of
    Polars with the sentence of the UserError.
    """
    import polars as pl

    run = of_columns(release, "cv.expr")
    for what, column in (("text", text), ("id", id)):
        if not isinstance(column, str):
            raise of_other_type(what, column, "the name of a column, which is a string")

    def draw(columns: Any) -> Any:
        ids, texts = map(column_values, columns)
        return pl.Series(text, run(pa.repeat(text, len(texts)), ids, texts))

    named = [pl.selectors.by_name(column).as_expr() for column in (id, text)]  # col takes "*" and "^…$" for patterns
    return pl.map_batches(named, draw, pl.String, is_elementwise=True).alias(text)

"""A release as a function of columns, by name: in the SQL of DuckDB and Spark, and as an expression of Polars."""

from __future__ import annotations

import contextlib
from typing import Any

import pyarrow as pa

from corpusveil.errors import DataError, SettingError, of_other_type
from corpusveil.transforms.frames import column_values
from corpusveil.transforms.release.keyed_release import AnyRelease
from corpusveil.transforms.table import of_columns

_REGISTERED: list[Any] = []
"""DuckDB frees a function with the cursor that registered it, though others still call it (duckdb-python 530)."""


def register_sql(connection: Any, release: AnyRelease, name: str = "privatize") -> None:
    """Register the SQL function ``privatize('review', id, text)`` in a DuckDB connection or a Spark session.

    The first argument is a constant, the name of the column, and noise depends on it. The function returns the texts of
    ``cv.privatize``, deterministically, so an engine may evaluate it again; a null text stays null, and an id must not
    be null. It draws row by row, and asks no ledger. Raises UserError for other connections, and those of Spark before
    4.1. A fault of a row is an error of the engine that quotes no text.

    >>> import duckdb
    >>> connection = duckdb.connect()
    >>> cv.register_sql(connection, release)
    >>> len(connection.sql("select privatize('text', 'r-1', 'The river was cold.')").fetchall())
    1
    """
    if not isinstance(name, str) or not name:
        raise SettingError("name: give the name of the SQL function, such as privatize.")
    if type(connection).__module__.startswith("pyspark."):
        from corpusveil.transforms.spark import spark_function

        connection.udf.register(name, spark_function(connection, release, name))
    elif hasattr(connection, "create_function"):  # the types of ids are those of the query
        run = of_columns(release, name)

        def release_rows(*columns: Any) -> pa.Array:
            if len(columns) != 3:
                raise DataError(f"{name}: give three arguments, as in {name}('review', id, review).")
            return run(*columns)

        with contextlib.suppress(Exception):  # as Spark does, a name that is registered again has the new release
            connection.remove_function(name)
        _REGISTERED.append(release_rows)
        connection.create_function(name, release_rows, None, "VARCHAR", type="arrow", null_handling="special")
    else:
        raise SettingError(
            f"register_sql takes a connection of DuckDB or a session of Spark, not a {type(connection).__name__}."
        )


def expr(release: AnyRelease, text: str = "text", id: str = "id") -> Any:
    """Return a Polars expression for the privatized column ``text``, in eager, lazy and streaming frames.

    It gives the texts of ``cv.privatize``, batch by batch; the columns ``text`` and ``id`` must have strings and no
    missing ids. It asks no ledger. Raises UserError for a release that needs further columns; for a faulty row,
    Polars raises a ComputeError with the text of a UserError.

    >>> import polars
    >>> frame = polars.DataFrame({"id": ["r-1"], "text": ["The river was cold."]})
    >>> frame.with_columns(cv.expr(release)).columns
    ['id', 'text']
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

"""Spark's own Python daemon, which forks the workers of an executor, with what all of them need loaded once.

The setting ``spark.python.daemon.module`` names it. Pandas stays with Arrow here: a worker may also run functions of
the user's.
"""

from __future__ import annotations

from pyspark import daemon, worker

from corpusveil.jobs import preload

LOADED = (worker, preload)

if __name__ == "__main__":
    daemon.manager()

"""The modules that the process from which workers are forked loads once.

Importing NumPy, Arrow, numba and this package takes a second of a core, and more where numba has to compile. Nothing
here starts a thread: OpenBLAS and Arrow start theirs when imported, and see to them after a fork.
"""

# A module of its own: Python's fork server imports it by its name, and Spark runs it (spark.python.daemon.module) to
# fork the workers of an executor.

from __future__ import annotations

import gc

if __name__ != "__main__":  # Spark's workers may also run functions of the user's
    gc.disable()  # nothing here becomes garbage, and workers share memory that no collector touches

from corpusveil.text.tokens import Tokenizer
from corpusveil.transforms.release import job  # noqa: F401 - the modules that most workers need

Tokenizer.of_words(["a"]).tokenize(["a"])  # numba fills its tables when it first loads machine code
gc.freeze()
gc.enable()

if __name__ == "__main__":
    from pyspark import daemon, worker  # noqa: F401 - workers run it

    daemon.manager()

"""The file that ``spark-submit`` runs: the command line, on the cluster."""

import os
import runpy
import signal
import threading
import time

LOOKS = 0.2
"""Seconds between two looks at the parent."""


def end_with(parent: int) -> None:
    """End this process in order when its parent is gone, and a second later at once."""
    while os.getppid() == parent:
        time.sleep(LOOKS)
    for _ in range(2):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(1)


if __name__ == "__main__":
    if "PYSPARK_GATEWAY_PORT" in os.environ:  # the parent is the Java of spark-submit, without which nothing goes on
        threading.Thread(target=end_with, args=(os.getppid(),), daemon=True, name="parent").start()
    runpy.run_module("corpusveil", run_name="__main__", alter_sys=True)

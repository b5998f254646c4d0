"""What a worker process tells of itself; in a module of its own, which a worker imports."""

from __future__ import annotations

import os
import sys
import time

from corpusveil.storage.engine import Measured

SETTING = "CORPUSVEIL_TEST_SETTING"


def tell(_: object) -> Measured:
    """Tell whether modules were there before the first task, and of a setting."""
    time.sleep(0.2)  # so that each worker gets a task
    ready = "corpusveil.transforms.release.job" in sys.modules
    return {
        "ready": int(ready),
        "setting": int(os.environ.get(SETTING, "0")),
        "forked": int("forkserver" in " ".join(sys.orig_argv)),
    }

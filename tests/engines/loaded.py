"""What a worker process tells of itself; in a module of its own, which a worker imports."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

SETTING = "CORPUSVEIL_TEST_SETTING"


def tell(path: str) -> None:
    """Write whether modules were there before the first task, whether this process was forked, and a setting."""
    time.sleep(0.2)  # so that each worker gets a task
    ready = "corpusveil.transforms.release.job" in sys.modules
    forked = "forkserver" in " ".join(sys.orig_argv)
    Path(path).write_text(json.dumps([ready, forked, os.environ.get(SETTING)]))

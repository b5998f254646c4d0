"""Holds a process of a run at a chosen write, so that harm can be done there: imported by every Python that starts.

The file that ``CORPUSVEIL_HOLD`` names says where, while it is there: a pattern of the path that is about to appear.
The first process that comes there, of one network namespace if ``network`` says so, writes its number to ``marker`` and
waits until ``hold`` is gone. Nothing of the product is changed but the moment at which it goes on.
"""

import json
import os
import re
import time
from collections.abc import Callable
from typing import Any

PLAN = os.environ.get("CORPUSVEIL_HOLD", "")


def _meet(path: str) -> None:
    try:
        with open(PLAN, encoding="utf-8") as file:
            plan = json.load(file)
    except (OSError, ValueError):
        return
    if not re.search(plan["where"], os.fspath(path)):
        return
    if plan["network"] not in (None, os.readlink("/proc/self/ns/net")):
        return
    try:
        os.mkdir(plan["marker"] + ".taken")
    except OSError:
        return
    with open(plan["marker"] + ".part", "w", encoding="utf-8") as file:
        file.write(str(os.getpid()))
    _replace(plan["marker"] + ".part", plan["marker"])
    while os.path.exists(plan["hold"]):
        time.sleep(0.01)


def _held(function: Callable[..., None]) -> Callable[..., None]:
    def call(source: Any, target: Any, *more: Any, **options: Any) -> None:
        _meet(target)
        function(source, target, *more, **options)

    return call


_replace = os.replace
if PLAN:
    os.replace, os.link = _held(os.replace), _held(os.link)

"""Importing this lets a worker whose command ended while the worker started end without a traceback.

A fork server may fork a worker that was requested before the command was interrupted. The worker then finds the
command's semaphores and pipes gone. Errors in a worker's tasks do not come this way: they reach the command.
"""

from __future__ import annotations

import sys
from types import TracebackType

_show = sys.excepthook


def _tell(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if not issubclass(kind, (FileNotFoundError, EOFError, ConnectionError)):
        _show(kind, error, trace)


sys.excepthook = _tell

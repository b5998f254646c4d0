"""The local engine: shard tasks on the processes of this machine."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass

from corpusveil.errors import UserError, WorkError
from corpusveil.storage.tasks import ShardTask


@dataclass(frozen=True, slots=True)
class LocalEngine:
    """Runs tasks in ``workers`` processes; in this process when there is one."""

    workers: int = 1

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise UserError(f"workers = {self.workers}: at least one is needed.")

    def run(self, function: Callable[[ShardTask], None], tasks: Sequence[ShardTask]) -> None:
        """Run ``function`` on every task. Raises WorkError when a worker process dies."""
        if self.workers == 1:
            for task in tasks:
                function(task)
            return
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(min(self.workers, max(1, len(tasks))), mp_context=context) as pool:
            futures = [pool.submit(function, task) for task in tasks]
            try:
                for future in as_completed(futures):
                    future.result()
            except BrokenProcessPool:
                raise WorkError(
                    "A worker process was killed (perhaps for want of memory). What was finished is kept; "
                    "run the same command again to go on, perhaps with fewer --workers."
                ) from None
            finally:
                pool.shutdown(cancel_futures=True)

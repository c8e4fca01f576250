"""Background tasks that run as long as a pipeline."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from ldpstream.agents.reading.contained import tell


class Tasks:
    """Tasks whose failures are always reported, so that nothing silently depends on a dead one."""

    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[None]] = []

    def spawn(self, run: Coroutine[Any, Any, None], failed: Callable[[str], None]) -> None:
        """Run a task; if it ends with an error, call `failed` with the text."""
        task = asyncio.create_task(run)
        task.add_done_callback(partial(_ended, failed))
        self._tasks.append(task)

    async def stop(self) -> None:
        """Cancel all tasks and wait until they have ended."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()


def _ended(failed: Callable[[str], None], task: "asyncio.Task[None]") -> None:
    error = None if task.cancelled() else task.exception()
    if error is not None:
        tell(failed, error)

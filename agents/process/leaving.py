"""End the process even if libraries do not release their threads and tasks."""

import asyncio
import os
import sys
import threading
from collections.abc import Coroutine
from typing import Any, Final

_LEAVE_SECONDS: Final = 1.0


def run_and_leave(task: Coroutine[Any, Any, int]) -> int:
    """Run a task on a new event loop and return its result, an exit code.

    While the broker is away Faust does not release its threads and tasks. The process then exits
    here at once, with that code: the task has cleaned up everything of ours.
    """
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    code = loop.run_until_complete(task)
    left = asyncio.all_tasks(loop)
    for one in left:
        one.cancel()
    if left:
        _, left = loop.run_until_complete(asyncio.wait(left, timeout=_LEAVE_SECONDS))
    loop.run_until_complete(loop.shutdown_default_executor())
    others = [t for t in threading.enumerate() if t is not threading.current_thread()]
    if left or any(thread.is_alive() and not thread.daemon for thread in others):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    loop.close()
    return code

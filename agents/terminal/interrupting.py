"""Ctrl-C where a command waits for input on an event loop."""

import signal
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

Item = TypeVar("Item")


def interruptibly(items: Iterable[Item]) -> Iterator[Item]:
    """Yield items whose reading blocks; Ctrl-C interrupts each read at once.

    Raises:
        KeyboardInterrupt: at SIGINT during a read, unless the process ignores it.
    """
    iterator = iter(items)
    while True:
        with _at_once():
            try:
                item = next(iterator)
            except StopIteration:
                return
        yield item


@contextmanager
def _at_once() -> Iterator[None]:
    """Raise at SIGINT: asyncio's handler only cancels the task, which a blocked read ignores."""
    handler = signal.getsignal(signal.SIGINT)
    main = threading.current_thread() is threading.main_thread()
    if not main or handler in (signal.SIG_IGN, None):
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)

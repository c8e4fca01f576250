"""Ctrl-C and similar signals as callbacks, not exceptions."""

import asyncio
import signal
from collections.abc import Callable
from types import FrameType
from typing import Final

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """Takes over SIGINT, SIGTERM and SIGHUP, for as long as the process lives.

    A signal before `connect` is remembered; later ones call back on the running event loop. After
    the loop has ended they do nothing, so that cleaning up is not interrupted. `ignore` keeps it
    that way while the interpreter exits, which would restore the fatal defaults.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._callback: Callable[[], None] | None = None
        self._early = False
        for number in _SIGNALS:
            signal.signal(number, self._handle)

    def ignore(self) -> None:
        """Ignore the signals from now on, while the process exits."""
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)

    def connect(self, callback: Callable[[], None]) -> None:
        """Call back on the running loop at each signal, and at once if there was one before."""
        self._loop, self._callback = asyncio.get_running_loop(), callback
        if self._early:
            callback()

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        if self._loop is None or self._callback is None:
            self._early = True
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._callback)

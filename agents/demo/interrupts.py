"""Ctrl-C and its like, without exceptions in the middle of something else."""

import asyncio
import signal
from collections.abc import Callable
from types import FrameType
from typing import Final

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """Takes over SIGINT, SIGTERM and SIGHUP, for as long as the process lives.

    Until `connect` they are remembered; then each calls back on the event loop that runs. After the
    loop has ended they do nothing, so that what is being tidied up then is not interrupted, and
    `ignore` keeps it so while the interpreter ends, which would restore the deadly defaults.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._callback: Callable[[], None] | None = None
        self._early = False
        for number in _SIGNALS:
            signal.signal(number, self._handle)

    def ignore(self) -> None:
        """Ignore the signals from now on: the process is as good as ended."""
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)

    def connect(self, callback: Callable[[], None]) -> None:
        """Call back on the running loop, at each signal, and at once if there has been one."""
        self._loop, self._callback = asyncio.get_running_loop(), callback
        if self._early:
            callback()

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        if self._loop is None or self._callback is None:
            self._early = True
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._callback)

"""A gateway: reports of many devices, framed together and acknowledged one by one."""

import asyncio
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ldpstream.agents.device.framer import Framer
from ldpstream.agents.device.sender import Sender
from ldpstream.mechanisms.interface.mechanism import Reports
from ldpstream.mechanisms.wire.one_report import Tokens


class Gateway:
    """Collects reports and produces a frame when it is full or has waited `linger_seconds`.

    An asynchronous context manager around a started `Sender`; leaving it sends what waits. At most
    `max_waiting` reports are in memory: further ones wait in `add`.

    Raises:
        ValueError: where a frame holds no report, or more than may wait.
    """

    def __init__(
        self,
        sender: Sender,
        *,
        max_reports: int = 1_000,
        max_bytes: int = 500_000,
        linger_seconds: float = 1.0,
        max_waiting: int = 100_000,
    ) -> None:
        if max_waiting < max_reports:
            raise ValueError("expected max_waiting of at least max_reports")
        self._sender = sender
        self._framer = Framer(sender.spec, max_reports=max_reports, max_bytes=max_bytes)
        self._linger_seconds = linger_seconds
        self._max_waiting = max_waiting
        self._waiting = 0
        self._room = asyncio.Condition()
        self._open: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._sending: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.flush()
        while self._sending:
            await asyncio.wait(self._sending)

    @property
    def waiting(self) -> int:
        """Number of reports that the broker has not acknowledged."""
        return self._waiting

    def has_room(self, reports: int) -> bool:
        """Return whether `add` would take this many reports at once."""
        return self._waiting + reports <= self._max_waiting

    async def add(
        self, reports: Reports, *, times_ms: NDArray[np.int64], tokens: Tokens | None = None
    ) -> None:
        """Take n reports, `(n, ...)`, with their times, and return when the broker has them.

        Where the collection has `one_report` they have tokens, uint8 `(n, 8)`, all of one
        partition, which is that of all calls: there is a gateway for each partition then.

        Raises:
            ValueError: where there is not one time for each report.
            KafkaError: where some may not have arrived; the same ones may be added again, and are
                then counted again if they had. So it is with any other error of the sender.
        """
        if np.shape(times_ms) != np.shape(reports)[:1]:
            raise ValueError("expected one time for each report")
        frames: set[asyncio.Future[None]] = set()
        while len(reports):
            taken = await self._take(reports, times_ms, tokens, frames)
            reports, times_ms = reports[taken:], times_ms[taken:]
            tokens = None if tokens is None else tokens[taken:]
        if frames:
            # All are waited for, so that an error does not leave others on their way; a frame is
            # shared, so whoever is cancelled here must not cancel it.
            await asyncio.wait(frames)
            for frame in frames:
                frame.result()

    async def _take(
        self,
        reports: Reports,
        times_ms: NDArray[np.int64],
        tokens: Tokens | None,
        frames: set[asyncio.Future[None]],
    ) -> int:
        """Add as many reports as there is room for, at least one, to the open frame."""
        async with self._room:
            await self._room.wait_for(lambda: self._waiting < self._max_waiting)
            most = self._max_waiting - self._waiting
            kept = None if tokens is None else tokens[:most]
            taken = self._framer.add(reports[:most], times_ms[:most], kept)
            self._waiting += taken
        if taken:
            frames.add(self._opened())
        if not taken or self._framer.full:
            self.flush()
        return taken

    def put(
        self, reports: Reports, *, times_ms: NDArray[np.int64], tokens: Tokens | None = None
    ) -> "asyncio.Future[None]":
        """Put n >= 1 reports into one frame, so that they arrive together or not at all.

        `tokens` are as in `add`. The future is the frame's, with its error if it fails; others
        share it, so nobody may cancel it. Whatever `max_waiting`: who calls bounds what waits. The
        arrays are kept until the frame goes, and no longer.

        Raises:
            ValueError: where there is not one time for each report, or they are too large for a
                frame.
        """
        if not self._framer.fits(times_ms):
            self.flush()
            if not self._framer.fits(times_ms):
                raise ValueError("expected no more reports than a frame holds")
        self._waiting += self._framer.add(reports, times_ms, tokens)
        frame = self._opened()
        if self._framer.full:
            self.flush()
        return frame

    def _opened(self) -> asyncio.Future[None]:
        """Return the future of the open frame, whose time begins with its first report."""
        if self._open is None:
            loop = asyncio.get_running_loop()
            self._open = loop.create_future()
            self._timer = loop.call_later(self._linger_seconds, self.flush)
        return self._open

    def flush(self) -> None:
        """Let no report linger: send the open frame, if there is one."""
        count, frame, done = self._framer.count, self._framer.take(), self._open
        if self._timer is not None:
            self._timer.cancel()
        self._open = self._timer = None
        if frame is not None and done is not None:
            task = asyncio.get_running_loop().create_task(self._produce(frame, count, done))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)

    async def _produce(self, frame: bytes, count: int, done: asyncio.Future[None]) -> None:
        # Gathered: whatever went wrong is for those who added, and they wait.
        (error,) = await asyncio.gather(self._sender.produce(frame), return_exceptions=True)
        async with self._room:
            self._waiting -= count
            self._room.notify_all()
        if done.cancelled():
            return
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)
            # Those who added may have been cancelled: nobody then asks for it.
            done.exception()

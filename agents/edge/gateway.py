"""Frame reports of many devices together, and acknowledge each; `Framer` needs no clock or I/O."""

import asyncio
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ldpstream.agents.edge.sender import Sender
from ldpstream.mechanisms.interface.mechanism import Reports
from ldpstream.mechanisms.wire.frame import HEAD_BYTES, MAX_RUNS, RUN_BYTES, Times
from ldpstream.mechanisms.wire.one_report import Tokens
from ldpstream.mechanisms.wire.spec import CollectionSpec


class Framer:
    """Collects reports of one collection into a frame of bounded size.

    A frame holds at most `max_reports` reports and `max_bytes` bytes. Its reports are sorted by cut
    time, then by content (`CollectionSpec.frame_reports`), so it hides in which order they came.

    Raises:
        ValueError: where not even one report fits.
    """

    def __init__(
        self, spec: CollectionSpec, *, max_reports: int = 1_000, max_bytes: int = 500_000
    ) -> None:
        if max_reports < 1 or max_bytes < self._bytes_of(spec, reports=1, times=1):
            raise ValueError("expected frames that hold at least one report")
        self._spec = spec
        self._max_reports = max_reports
        self._max_bytes = max_bytes
        self._clear()

    @staticmethod
    def _bytes_of(spec: CollectionSpec, *, reports: int, times: int) -> int:
        return HEAD_BYTES + RUN_BYTES * times + reports * spec.report_bytes

    def _clear(self) -> None:
        self._reports: list[Reports] = []
        self._times: list[Times] = []
        self._tokens: list[Tokens] = []
        self._cut: set[int] = set()
        self.count = 0
        """Number of waiting reports."""

    @property
    def full(self) -> bool:
        """Whether another report might not fit."""
        return not self._has_room(1, len(self._cut) + 1)

    def add(self, reports: Reports, times_ms: Times, tokens: Tokens | None = None) -> int:
        """Add the first reports that fit, with their times, both `(n, ...)`; return how many.

        `tokens`, uint8 `(n, 8)`, belong to the same partition in all calls.

        Raises:
            ValueError: where there is not one time for each report, or, where the collection has
                `one_report`, not one token.
        """
        if self._spec.one_report is not None:
            tokens = self._spec.one_report.check(tokens, len(reports))
            # Checked here: an error when the frame is made would lose all its reports.
            self._spec.one_report.check(np.concatenate((*self._tokens[:1], tokens)), None)
        if np.shape(times_ms) != np.shape(reports)[:1]:
            raise ValueError("expected one time for each report")
        cut = self._cut_times(times_ms[: self._max_reports - self.count])
        number, together = len(cut), self._cut.union(cut)
        if self._has_room(number, len(together)):
            self._cut = together
        else:
            number = self._add_one_by_one(cut)
        if number:
            self._reports.append(reports[:number])
            self._times.append(times_ms[:number])
            if tokens is not None:
                self._tokens.append(tokens[:number])
            self.count += number
        return number

    def _cut_times(self, times_ms: Times) -> list[int]:
        cut: list[int] = (times_ms - times_ms % self._spec.precision_ms).tolist()
        return cut

    def _add_one_by_one(self, cut: list[int]) -> int:
        """Add times while there is room; return how many."""
        for number, cut_ms in enumerate(cut):
            new = cut_ms not in self._cut
            if not self._has_room(number + 1, len(self._cut) + new):
                return number
            self._cut.add(cut_ms)
        return len(cut)

    def _has_room(self, more: int, times: int) -> bool:
        reports = self.count + more
        size = self._bytes_of(self._spec, reports=reports, times=times)
        return reports <= self._max_reports and times <= MAX_RUNS and size <= self._max_bytes

    def take(self) -> bytes | None:
        """Return the frame of all waiting reports, and start over; None if there are none."""
        if not self.count:
            return None
        reports, times = np.concatenate(self._reports), np.concatenate(self._times)
        tokens = np.concatenate(self._tokens) if self._tokens else None
        self._clear()
        return self._spec.frame_reports(reports, times_ms=times, tokens=tokens)


class Gateway:
    """Collects reports and produces a frame when it is full or has waited `linger_seconds`.

    An asynchronous context manager around a started `Sender`; leaving it sends waiting reports. At
    most `max_waiting` reports are in memory: `add` waits for room.

    Raises:
        ValueError: where a frame holds not even one report, or more than `max_waiting`.
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

    async def add(
        self, reports: Reports, *, times_ms: NDArray[np.int64], tokens: Tokens | None = None
    ) -> None:
        """Add n reports, `(n, ...)`, with their times, and return when the broker has them.

        Where the collection has `one_report`, they need tokens, uint8 `(n, 8)`, of the same
        partition in all calls: use one gateway per partition.

        Raises:
            ValueError: where there is not one time for each report.
            KafkaError: where some may not have arrived. They may be added again, and count twice
                if they had arrived; the same goes for any other error of the sender.
        """
        if np.shape(times_ms) != np.shape(reports)[:1]:
            raise ValueError("expected one time for each report")
        frames: set[asyncio.Future[None]] = set()
        while len(reports):
            number = await self._take(reports, times_ms, tokens, frames)
            reports, times_ms = reports[number:], times_ms[number:]
            tokens = None if tokens is None else tokens[number:]
        if frames:
            # Wait for all, so that an error leaves no other in flight; `wait`, since a frame is
            # shared, and cancelling this call must not cancel it.
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
            first_tokens = None if tokens is None else tokens[:most]
            number = self._framer.add(reports[:most], times_ms[:most], first_tokens)
            self._waiting += number
        if number:
            frames.add(self._opened())
        if not number or self._framer.full:
            self.flush()
        return number

    def _opened(self) -> asyncio.Future[None]:
        """Return the future of the open frame; its first report starts its timer."""
        if self._open is None:
            loop = asyncio.get_running_loop()
            self._open = loop.create_future()
            self._timer = loop.call_later(self._linger_seconds, self.flush)
        return self._open

    def flush(self) -> None:
        """Send the open frame, if there is one."""
        count, frame, done = self._framer.count, self._framer.take(), self._open
        if self._timer is not None:
            self._timer.cancel()
        self._open = self._timer = None
        if frame is not None and done is not None:
            task = asyncio.get_running_loop().create_task(self._produce(frame, count, done))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)

    async def _produce(self, frame: bytes, count: int, done: asyncio.Future[None]) -> None:
        # Gathered: any error belongs to the callers that wait for this frame.
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
            # Mark it as retrieved: all callers may have been cancelled.
            done.exception()

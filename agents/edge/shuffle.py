"""Sends uploads in shuffled batches or not at all, so that the topic hides single devices.

A batch has uploads of one report each, from one pane. It is sent as one frame: reports in ascending
order, all with the time of sending. Neither says who sent what, and nothing else of an upload is
sent.

`least` reports are sent as soon as as many more have arrived, so that the last ones are not alone
either. What a pane still has after half its grace is sent then, or refused if it is fewer.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ldpstream.agents.broker.record_time import now_ms
from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.edge.sender import Sender
from ldpstream.agents.edge.upload_check import UploadRefusedError
from ldpstream.mechanisms.interface.mechanism import Reports


@dataclass
class _Batch:
    """The waiting uploads of a pane, in the order of arrival."""

    reports: list[Reports] = field(default_factory=list)
    uploads: list[asyncio.Future[None]] = field(default_factory=list)

    def take(self, number: int) -> tuple[Reports, list[asyncio.Future[None]]]:
        batch = np.concatenate(self.reports[:number]), self.uploads[:number]
        del self.reports[:number], self.uploads[:number]
        return batch


class Shuffler:
    """Collects the uploads of a collection by pane."""

    def __init__(
        self,
        config: CollectionConfig,
        sender: Sender,
        *,
        least: int,
        clock_ms: Callable[[], int] = now_ms,
    ) -> None:
        self._config = config
        self._sender = sender
        self._least = least
        self._clock_ms = clock_ms
        self._batches: dict[int, _Batch] = {}
        self._sending: set[asyncio.Task[None]] = set()

    def put(self, reports: Reports, *, times_ms: NDArray[np.int64]) -> "asyncio.Future[None]":
        """Add an upload of one report; the future is done once the broker has its batch.

        Raises:
            UploadRefusedError: 400 for several reports, or a pane whose batches have been sent.
        """
        if len(reports) != 1:
            detail = "expected one report per upload: this gateway shuffles"
            raise UploadRefusedError(400, "several", detail)
        window, now = self._config.window, self._clock_ms()
        pane = window.pane(int(times_ms[0]))
        start, end = window.start(pane), window.start(pane + 1)
        left_ms = end + window.grace_ms // 2 - now
        if left_ms <= 0 or start > now + window.future_ms:
            raise UploadRefusedError(400, "time", "expected a time of an open window")
        loop = asyncio.get_running_loop()
        if pane not in self._batches:
            self._batches[pane] = _Batch()
            loop.call_later(left_ms / 1000, self._close, pane)
        batch, upload = self._batches[pane], loop.create_future()
        batch.reports.append(reports)
        batch.uploads.append(upload)
        if len(batch.uploads) >= 2 * self._least:
            self._release(pane, *batch.take(self._least))
        return upload

    def flush(self) -> None:
        """Send full batches, and refuse the rest, which devices retry."""
        for pane in list(self._batches):
            self._end(pane, UploadRefusedError(503, "unavailable", "this gateway is shutting down"))

    def _close(self, pane: int) -> None:
        detail = f"fewer than {self._least:,} reports arrived in time"
        self._end(pane, UploadRefusedError(410, "alone", detail))

    def _end(self, pane: int, refusal: UploadRefusedError) -> None:
        batch = self._batches.pop(pane, _Batch())
        if len(batch.uploads) >= self._least:
            self._release(pane, *batch.take(len(batch.uploads)))
        for upload in batch.uploads:
            upload.set_exception(refusal)

    def _release(self, pane: int, reports: Reports, uploads: list[asyncio.Future[None]]) -> None:
        window, precision_ms = self._config.window, self._config.spec.precision_ms
        # Inside the pane, and not later than now, because the watermark follows it.
        latest_ms = window.start(pane + 1) - precision_ms
        time_ms = min(max(self._clock_ms(), window.start(pane)), latest_ms)
        times = np.full(len(reports), time_ms, dtype=np.int64)
        frame = self._config.spec.frame_reports(reports, times_ms=times)
        task = asyncio.get_running_loop().create_task(self._produce(frame, uploads))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def _produce(self, frame: bytes, uploads: list[asyncio.Future[None]]) -> None:
        # Gathered: any error belongs to the waiting uploads.
        (error,) = await asyncio.gather(self._sender.produce(frame), return_exceptions=True)
        for upload in uploads:
            if error is None:
                upload.set_result(None)
            else:
                upload.set_exception(error)

"""Checks and frames the uploads of a collection together: for each alone it would take far longer.

Uploads that arrive within some milliseconds are checked together, and those of a `linger` are
framed together.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.edge.upload_check import UploadHead, UploadRefusedError
from ldpstream.agents.edge.upload_keys import Upload
from ldpstream.mechanisms.interface.mechanism import Reports
from ldpstream.mechanisms.wire.one_report import Tokens

FRAME_BYTES: Final = 500_000
_CHECK_SECONDS: Final = 0.02
_RANGE: Final = "expected reports that the mechanism can produce"
_PARTITION: Final = "expected tokens of one partition"


@dataclass(eq=False, slots=True)
class PendingUpload:
    """An upload that is not acknowledged yet.

    `payload` are its encoded reports, until they are framed. Each request waits for a future of its
    own in `waiters`, so that it can end without the others.
    """

    upload: Upload
    head: UploadHead
    payload: bytes
    size: int
    """The bytes of its body."""
    waiters: list[asyncio.Future[None]] = field(default_factory=list)
    done: bool = False
    error: BaseException | None = None
    """Why it is not accepted, once it is done."""

    def conclude(self, error: BaseException | None = None) -> None:
        """Wake its requests: it is accepted, or else `error` says why not."""
        self.done, self.error, self.payload = True, error, b""
        for waiter in self.waiters:
            if not waiter.done():
                waiter.set_result(None)


def decode_uploads(
    config: CollectionConfig, uploads: Sequence[PendingUpload]
) -> tuple[Reports, Tokens | None, Sequence[int | UploadRefusedError | None]]:
    """Return the reports and tokens of uploads, and for each its partition or what is wrong.

    The partition is None without `one_report`.
    """
    spec, counts = config.spec, [upload.upload.reports for upload in uploads]
    joined = np.frombuffer(b"".join([upload.payload for upload in uploads]), dtype=np.uint8)
    encoded, tokens = spec.split(joined.reshape(-1, spec.report_bytes))
    reports, good = spec.mechanism.decode(encoded)
    starts = np.cumsum([0, *counts[:-1]])
    outcomes: list[int | UploadRefusedError | None] = [None] * len(uploads)
    if spec.one_report is not None:
        numbers = spec.one_report.partition(tokens)
        alike = np.logical_and.reduceat(numbers == np.repeat(numbers[starts], counts), starts)
        outcomes = [
            number if same else UploadRefusedError(400, "partition", _PARTITION)
            for number, same in zip(numbers[starts].tolist(), alike.tolist(), strict=True)
        ]
    if not good.all():
        for place in np.flatnonzero(~np.logical_and.reduceat(good, starts)):
            outcomes[place] = UploadRefusedError(400, "range", _RANGE)
    return reports, None if spec.one_report is None else tokens, outcomes


class UploadBatch:
    """Collects uploads of one collection, and frames them after `linger_seconds`, or when full.

    `refuse` is called with an upload and what is wrong with it, `send` with the uploads of a frame
    and the frame. With `one_report` each partition has frames of its own.
    """

    def __init__(
        self,
        config: CollectionConfig,
        *,
        linger_seconds: float,
        refuse: Callable[[PendingUpload, UploadRefusedError], None],
        send: Callable[[Sequence[PendingUpload], bytes], None],
    ) -> None:
        self._config = config
        self._linger_seconds = linger_seconds
        self._refuse = refuse
        self._send = send
        self._timer: asyncio.TimerHandle | None = None
        self._clear()

    def _clear(self) -> None:
        self._unchecked: list[PendingUpload] = []
        self._valid: defaultdict[int | None, list[PendingUpload]] = defaultdict(list)
        self._size = 0
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None

    def put(self, upload: PendingUpload) -> None:
        """Add an upload."""
        if self._size + upload.size > FRAME_BYTES:
            self.flush()
        loop = asyncio.get_running_loop()
        if self._timer is None:
            self._timer = loop.call_later(self._linger_seconds, self.flush)
        if not self._unchecked:
            loop.call_later(_CHECK_SECONDS, self._check)
        self._unchecked.append(upload)
        self._size += upload.size

    def _check(self) -> None:
        uploads, self._unchecked = self._unchecked, []
        if not uploads:
            return
        _, _, outcomes = decode_uploads(self._config, uploads)
        for upload, outcome in zip(uploads, outcomes, strict=True):
            if isinstance(outcome, UploadRefusedError):
                self._refuse(upload, outcome)
            else:
                self._valid[outcome].append(upload)

    def flush(self) -> None:
        """Send what waits."""
        self._check()
        valid = self._valid
        self._clear()
        for uploads in valid.values():
            reports, tokens, _ = decode_uploads(self._config, uploads)
            times = [time_ms for upload in uploads for time_ms in upload.head.times_ms]
            counts = [count for upload in uploads for count in upload.head.counts]
            times_ms = np.repeat(np.array(times, dtype=np.int64), counts)
            frame = self._config.spec.frame_reports(reports, times_ms=times_ms, tokens=tokens)
            for upload in uploads:
                upload.payload = b""
            self._send(uploads, frame)

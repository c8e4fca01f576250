"""A batch of messages as arrays: all runs of all frames in the order in which they are decided.

Many small frames of one length are read as one matrix; anything else, and everything irregular,
goes through `decode_frame`, which is the definition. Both give the same (tested).
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.errors import FrameError
from ldpstream.mechanisms.frame import VERSION, decode_frame, frame_fingerprint
from ldpstream.mechanisms.spec import CollectionSpec

Int64s = NDArray[np.int64]
_HEAD_BYTES: Final = 12
_SINGLE_BYTES: Final = 24
_MATRIX_AT: Final = 4
_SINGLE_HEAD: Final = struct.pack("<BBH", VERSION, 0, 1)


@dataclass(frozen=True, eq=False)
class Batch:
    """R runs and N reports of B bytes, runs by message and then by time.

    `message` int64 `(R,)` is the place of the run's message in the batch, `time_ms` and `count`
    int64 `(R,)` are as in the frame, `payload` uint8 `(N, B)` holds the runs' reports in the runs'
    order. `refused` messages are `(place, reason)`, "undecodable" or "fingerprint". `passed`
    messages are frames of accepted specs, left to those specs' states.
    """

    message: Int64s
    time_ms: Int64s
    count: Int64s
    payload: NDArray[np.uint8]
    refused: tuple[tuple[int, str], ...]
    passed: int


def read_batch(
    spec: CollectionSpec, accept: frozenset[bytes], values: Sequence[bytes | None]
) -> Batch:
    """Read messages as frames of a spec; `accept` holds the fingerprints left to others."""
    reader = _Reader(spec, accept)
    lengths: dict[int, list[int]] = {}
    for place, value in enumerate(values):
        if value is None:
            reader.refused.append((place, "undecodable"))
        else:
            lengths.setdefault(len(value), []).append(place)
    others: list[int] = []
    for length, places in lengths.items():
        reports, rest = divmod(length - _SINGLE_BYTES, spec.mechanism.report_bytes)
        if len(places) < _MATRIX_AT or reports < 1 or rest:
            others += places
        else:
            others += reader.matrix(values, places, reports)
    reader.frames(values, sorted(others))
    return reader.batch()


class _Reader:
    """Collects runs in any order, and puts them in order at the end."""

    def __init__(self, spec: CollectionSpec, accept: frozenset[bytes]) -> None:
        self._fingerprint = spec.fingerprint
        self._accept = accept
        self._bytes = spec.mechanism.report_bytes
        self._messages: list[Int64s] = []
        self._times: list[Int64s] = []
        self._counts: list[Int64s] = []
        self._payloads: list[NDArray[np.uint8]] = []
        self.refused: list[tuple[int, str]] = []
        self.passed = 0

    def frames(self, values: Sequence[bytes | None], places: Sequence[int]) -> None:
        """Read messages one by one."""
        for place in places:
            data = values[place] or b""
            try:
                frame = decode_frame(data, fingerprint=self._fingerprint, report_bytes=self._bytes)
            except FrameError as error:
                if error.reason == "fingerprint" and frame_fingerprint(data) in self._accept:
                    self.passed += 1
                else:
                    self.refused.append((place, error.reason))
                continue
            self._messages.append(np.full(len(frame.counts), place, dtype=np.int64))
            self._times.append(frame.times_ms)
            self._counts.append(frame.counts)
            self._payloads.append(frame.payload)

    def matrix(self, values: Sequence[bytes | None], places: list[int], reports: int) -> list[int]:
        """Read messages of one length at once: those of one run; return the others."""
        rows = np.frombuffer(b"".join(values[place] or b"" for place in places), dtype=np.uint8)
        rows = rows.reshape(len(places), -1)
        head = np.frombuffer(_SINGLE_HEAD + self._fingerprint, dtype=np.uint8)
        count = rows[:, 20:24].copy().view("<u4")[:, 0]
        fits = (rows[:, :_HEAD_BYTES] == head).all(axis=1) & (count == reports)
        message = np.array(places, dtype=np.int64)
        others: list[int] = message[~fits].tolist()
        if others:
            rows, message = rows[fits], message[fits]
        self._messages.append(message)
        self._times.append(rows[:, 12:20].copy().view("<i8")[:, 0].astype(np.int64))
        self._counts.append(np.full(len(rows), reports, dtype=np.int64))
        self._payloads.append(rows[:, _SINGLE_BYTES:].reshape(-1, self._bytes))
        return others

    def batch(self) -> Batch:
        """Return all runs in the order in which they are decided."""
        message, time_ms, count = (
            np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)
            for parts in (self._messages, self._times, self._counts)
        )
        empty = np.empty((0, self._bytes), dtype=np.uint8)
        payload = np.concatenate(self._payloads) if self._payloads else empty
        # Compared and not subtracted: a device may send any 64 bits as a time.
        again, earlier = message[1:] == message[:-1], time_ms[1:] < time_ms[:-1]
        if np.any((message[1:] < message[:-1]) | (again & earlier)):
            order = np.lexsort((time_ms, message))
            start = (np.cumsum(count) - count)[order]
            message, time_ms, count = message[order], time_ms[order], count[order]
            ahead = np.cumsum(count) - count
            payload = payload[np.repeat(start - ahead, count) + np.arange(len(payload))]
        return Batch(message, time_ms, count, payload, tuple(sorted(self.refused)), self.passed)

"""The wire format: one Kafka message is a frame of reports (docs/wire.md).

Little-endian: `u8 version = 1`, `u8 flags = 0`, `u16 runs >= 1`, 8 bytes of fingerprint, then for
each run `i64 cut time in epoch ms` and `u32 count >= 1`, then `sum(count)` reports of equal length.
"""

import struct
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.errors import FrameError

VERSION = 1
FINGERPRINT_BYTES = 8
MAX_RUNS = 0xFFFF
_HEAD = struct.Struct("<BBH8s")
_SINGLE = struct.Struct("<BBH8sqI")
_RUN = np.dtype([("time_ms", "<i8"), ("count", "<u4")])
HEAD_BYTES = _HEAD.size
RUN_BYTES = _RUN.itemsize

Times = NDArray[np.int64]
Payload = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Frame:
    """A decoded frame of R runs and n reports of B bytes.

    `times_ms` is int64 `(R,)`, `counts` is int64 `(R,)`, and `payload` is uint8 `(n, B)`, run after
    run. The payload is a view of the message, not a copy.
    """

    times_ms: Times
    counts: Times
    payload: Payload


def encode_frame(fingerprint: bytes, times_ms: Times, payload: Payload) -> bytes:
    """Encode n reports, uint8 `(n, B)`, with their cut times, int64 `(n,)`, n >= 1.

    Reports are sorted by time (stably), so that equal times share a run.

    Raises:
        ValueError: if there are no reports, the shapes disagree, or there are more than 65,535
            different times.
    """
    n = len(payload)
    if n == 0 or payload.ndim != 2 or np.shape(times_ms) != (n,):
        raise ValueError("expected one time and one row of bytes for each of at least one report")
    if len(fingerprint) != FINGERPRINT_BYTES:
        raise ValueError("expected a fingerprint of 8 bytes")
    if n == 1:
        head = _SINGLE.pack(VERSION, 0, 1, fingerprint, int(times_ms[0]), 1)
        return b"".join((head, payload.tobytes()))
    if np.any(times_ms[1:] < times_ms[:-1]):
        order = np.argsort(times_ms, kind="stable")
        times_ms, payload = times_ms[order], payload[order]
    first = np.flatnonzero(np.concatenate(([True], times_ms[1:] != times_ms[:-1])))
    if len(first) > MAX_RUNS:
        raise ValueError(f"a frame holds at most {MAX_RUNS} different times, got {len(first)}")
    runs = np.empty(len(first), dtype=_RUN)
    runs["time_ms"] = times_ms[first]
    runs["count"] = np.diff(first, append=n)
    return b"".join(
        (_HEAD.pack(VERSION, 0, len(first), fingerprint), runs.tobytes(), payload.tobytes())
    )


def frame_fingerprint(data: bytes) -> bytes:
    """Return the fingerprint of a frame, after checking its head alone.

    Raises:
        FrameError: "undecodable", if the head is short, or has another version, flags or no runs.
    """
    if len(data) < _HEAD.size:
        raise FrameError("undecodable", f"{len(data)} bytes, shorter than a frame's head")
    version, flags, runs, fingerprint = _HEAD.unpack_from(data)
    if version != VERSION:
        raise FrameError("undecodable", f"version {version}, not {VERSION}")
    if flags != 0:
        raise FrameError("undecodable", f"unknown flags {flags:#04x}")
    if runs == 0:
        raise FrameError("undecodable", "no runs")
    return bytes(fingerprint)


def decode_frame(data: bytes, *, fingerprint: bytes, report_bytes: int) -> Frame:
    """Decode a frame of the spec with this fingerprint, whose reports have this length.

    The length must be exact.

    Raises:
        FrameError: "undecodable" or "fingerprint". No bytes raise anything else.
    """
    found = frame_fingerprint(data)
    if found != fingerprint:
        raise FrameError("fingerprint", f"{found.hex()}, not {fingerprint.hex()}")
    runs = int.from_bytes(data[2:4], "little")
    start = _HEAD.size + runs * _RUN.itemsize
    if len(data) < start:
        raise FrameError("undecodable", f"{len(data)} bytes, shorter than its {runs} runs")
    table = np.frombuffer(data, dtype=_RUN, count=runs, offset=_HEAD.size)
    counts = table["count"].astype(np.int64)
    if not counts.all():
        raise FrameError("undecodable", "a run of no reports")
    n = int(counts.sum())
    if len(data) != start + n * report_bytes:
        raise FrameError(
            "undecodable", f"{len(data)} bytes, not the {start + n * report_bytes} that it declares"
        )
    payload = np.frombuffer(data, dtype=np.uint8, offset=start).reshape(n, report_bytes)
    return Frame(times_ms=table["time_ms"].astype(np.int64), counts=counts, payload=payload)

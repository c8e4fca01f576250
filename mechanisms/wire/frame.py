"""The wire format: how labels become a frame of reports, one Kafka message, and how it is read.

Little-endian: `u8 version = 1`, `u8 flags = 0`, `u16 runs >= 1`, 8 bytes of fingerprint, then for
each run `i64 cut time in epoch ms` and `u32 count >= 1`, then `sum(count)` reports of equal length
(docs/wire.md).
"""

import struct
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.errors import FrameError
from ldpstream.mechanisms.base.times import read_times
from ldpstream.mechanisms.domains.base import Domain
from ldpstream.mechanisms.exact.entropy import Entropy, SystemEntropy
from ldpstream.mechanisms.interface.mechanism import Mechanism, Reports
from ldpstream.mechanisms.wire.one_report import TOKEN_BYTES, OneReport, Tokens, token_numbers

VERSION = 1
FINGERPRINT_BYTES = 8
MAX_RUNS = 0xFFFF
_HEAD = struct.Struct("<BBH8s")
_SINGLE = struct.Struct("<BBH8sqI")
_RUN = np.dtype([("time_ms", "<i8"), ("count", "<u4")])
_RUN_FIELDS = struct.Struct("<qI")
HEAD_BYTES = _HEAD.size
RUN_BYTES = _RUN.itemsize

Times = NDArray[np.int64]
Payload = NDArray[np.uint8]


@dataclass(frozen=True)
class Framing(ABC):
    """How a collection's reports become messages, and the rows of a message reports again.

    A row is a report as the mechanism encodes it and, with `one_report`, the device's token.
    """

    name: str
    topic: str
    domain: Domain
    mechanism: Mechanism
    precision_ms: int
    one_report: OneReport | None = None

    @property
    @abstractmethod
    def fingerprint(self) -> bytes:
        """The identity of the collection's spec on the wire, 8 bytes."""

    @cached_property
    def report_bytes(self) -> int:
        """The length of a report on the wire, in bytes: the mechanism's, and a token if any."""
        return self.mechanism.report_bytes + (0 if self.one_report is None else TOKEN_BYTES)

    def privatize(
        self, labels: Sequence[Any] | NDArray[Any], *, entropy: Entropy | None = None
    ) -> Reports:
        """Randomise n labels into reports, one a row (`mechanism.Reports`).

        Raises:
            ValueOutsideDomainError: naming the position of the first bad label, never the label.
        """
        source = entropy or SystemEntropy()
        # A placed label is a value of the mechanism, so that nothing has to be checked.
        return self.mechanism.randomise(self.domain.place(labels, entropy=source), source)

    def frame(
        self,
        labels: Sequence[Any] | NDArray[Any],
        *,
        times_ms: Sequence[int] | NDArray[np.int64] | None = None,
        entropy: Entropy | None = None,
        secret: bytes | None = None,
    ) -> bytes:
        """Randomise n >= 1 labels into one message: a frame ready to produce.

        `times_ms` are epoch milliseconds, one for each label, by default now; they are cut to the
        precision. With `one_report` there is one label, and the device's secret.

        Raises:
            ValueOutsideDomainError: naming the position of the first bad label, never the label.
            ValueError: if there are no labels, or not one integer time within the years 1 to 9999
                for each; with `one_report`, if there is no secret or more than one label; without,
                if there is a secret.
        """
        if (secret is None) != (self.one_report is None):
            raise ValueError("expected a secret with one_report, and only with it")
        if secret is not None and len(labels) != 1:
            raise ValueError("expected one label: one_report takes one from a device")
        reports = self.privatize(labels, entropy=entropy)
        if times_ms is None:
            times = np.full(len(reports), time.time_ns() // 1_000_000, dtype=np.int64)
        else:
            times = read_times(times_ms, len(reports))
        tokens = None if secret is None else self.tokens(secret, times)
        return self.frame_reports(reports, times_ms=times, tokens=tokens)

    def frame_reports(
        self, reports: Reports, *, times_ms: NDArray[np.int64], tokens: Tokens | None = None
    ) -> bytes:
        """Frame n >= 1 reports with their times, int64 `(n,)`, which are cut to the precision.

        Reports with the same cut time are sorted, by token if there are tokens. Their original
        order would reveal the order of events more finely than the precision, and, if values came
        sorted, narrow them down. `tokens`, uint8 `(n, 8)`, have one partition.

        Raises:
            ValueError: if there are no reports, not one time for each, or not the tokens that
                `one_report` requires.
        """
        if np.shape(times_ms) != np.shape(reports)[:1]:
            raise ValueError("expected one time for each report")
        cut_ms = times_ms - times_ms % self.precision_ms
        if self.one_report is not None:
            tokens = self.one_report.check(tokens, len(reports))
            places = np.lexsort((token_numbers(tokens), cut_ms))
            rows = np.hstack((self.mechanism.encode(reports), tokens))
            return encode_frame(self.fingerprint, cut_ms[places], rows[places])
        if tokens is not None:
            raise ValueError("expected no tokens without one_report")
        if len(reports) > 1:
            places = self._sort(reports, cut_ms)
            reports, cut_ms = reports[places], cut_ms[places]
        return encode_frame(self.fingerprint, cut_ms, self.mechanism.encode(reports))

    def _sort(self, reports: Reports, cut_ms: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the order by time, then by report: symbols by number, rows by their bytes."""
        if reports.ndim == 1:
            return np.lexsort((reports, cut_ms))
        rows = np.ascontiguousarray(self.mechanism.encode(reports))
        by_bytes = np.argsort(rows.view(f"V{rows.shape[1]}")[:, 0], kind="stable")
        return by_bytes[np.argsort(cut_ms[by_bytes], kind="stable")]

    def frame_encoded(
        self, payload: NDArray[np.uint8], *, time_ms: int, secret: bytes | None = None
    ) -> bytes:
        """Frame one encoded report, uint8 `(1, B)`, such as a ledger releases.

        Raises:
            ValueError: with `one_report`, if the secret is missing or has fewer than 16 bytes.
        """
        times_ms = np.array([time_ms], dtype=np.int64)
        if self.one_report is not None:
            payload = np.hstack((payload, self.tokens(secret or b"", times_ms)))
        return encode_frame(self.fingerprint, times_ms - times_ms % self.precision_ms, payload)

    def tokens(self, secret: bytes, times_ms: NDArray[np.int64]) -> Tokens:
        """Return a device's tokens, uint8 `(n, 8)`, for n times, int64 `(n,)`.

        Raises:
            ValueError: without `one_report`, or if the secret has fewer than 16 bytes.
        """
        if self.one_report is None:
            raise ValueError("expected a collection with one_report")
        cut_ms = times_ms - times_ms % self.precision_ms
        return self.one_report.tokens(secret, self.fingerprint, cut_ms)

    def split(self, payload: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], Tokens]:
        """Return reports as the mechanism encodes them, and their tokens, `(n, 0)` if none."""
        size = self.mechanism.report_bytes
        return np.ascontiguousarray(payload[:, :size]), payload[:, size:]


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
        places = np.argsort(times_ms, kind="stable")
        times_ms, payload = times_ms[places], payload[places]
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


def frame_runs(data: bytes, *, report_bytes: int) -> tuple[Sequence[int], Sequence[int], int]:
    """Return the runs' times and counts, and where the reports begin.

    As numbers: those of a small frame take a fraction of the time of `decode_frame`'s arrays. The
    head has been checked (`frame_fingerprint`).

    Raises:
        FrameError: "undecodable", if the length is not that of the declared reports.
    """
    start = _reports_start(data)
    times_ms, counts = zip(*_RUN_FIELDS.iter_unpack(data[HEAD_BYTES:start]), strict=True)
    _check_length(data, start, all(counts), sum(counts) * report_bytes)
    return times_ms, counts, start


def _reports_start(data: bytes) -> int:
    runs = int.from_bytes(data[2:4], "little")
    start = HEAD_BYTES + runs * RUN_BYTES
    if len(data) < start:
        raise FrameError("undecodable", f"{len(data)} bytes, shorter than its {runs} runs")
    return start


def _check_length(data: bytes, start: int, all_count: bool, reports_bytes: int) -> None:
    if not all_count:
        raise FrameError("undecodable", "a run of no reports")
    if len(data) != start + reports_bytes:
        what = f"{len(data)} bytes, not the {start + reports_bytes} that it declares"
        raise FrameError("undecodable", what)


def decode_frame(data: bytes, *, fingerprint: bytes, report_bytes: int) -> Frame:
    """Decode a frame of the spec with this fingerprint, whose reports have this length.

    The length must be exact.

    Raises:
        FrameError: "undecodable" or "fingerprint". No bytes raise anything else.
    """
    sender = frame_fingerprint(data)
    if sender != fingerprint:
        raise FrameError("fingerprint", f"{sender.hex()}, not {fingerprint.hex()}")
    start = _reports_start(data)
    table = np.frombuffer(data[HEAD_BYTES:start], dtype=_RUN)
    counts = table["count"].astype(np.int64)
    n = int(counts.sum())
    _check_length(data, start, bool(counts.all()), n * report_bytes)
    payload = np.frombuffer(data, dtype=np.uint8, offset=start).reshape(n, report_bytes)
    return Frame(times_ms=table["time_ms"].astype(np.int64), counts=counts, payload=payload)

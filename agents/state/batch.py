"""Read a batch of messages into arrays: all runs of all frames, in the order of classification.

With the messages come the times of their arrival (`Arrivals`), and which of them are decided here
although they may be of another spec (`Decided`).

Many small frames of one length are read as one matrix. Everything else goes through `decode_frame`,
which defines the format; tests verify that both give the same result.

A device may put any date on its reports, so arrival limits what event times can do. A report moves
the watermark to its event time, but never past its arrival. A pane then closes no sooner than a
grace after its end *in arrival time*, whatever other devices send, and a report that is dated and
delivered honestly within the grace is never late.

If the topic has `message.timestamp.type=LogAppendTime`, the broker's own timestamp is the arrival,
and is the same at every replay. With `CreateTime` the senders set the timestamps, and the reader
has to estimate:

- At the log's end it knows enough: nothing arrives later than now, or sooner than the moment at
  which the log was last seen to end before it.
- While it catches up, a record's arrival is the median timestamp of the MEMORY records before it:
  they arrived earlier, so the median is never later than the true arrival unless half of them lie.
- With fewer records known, at the beginning of a read session, it is the earliest timestamp of the
  first MEMORY records.

Timestamps are truncated to the precision, as event times are, so they need no tolerance for it.
"""

import struct
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.arrays import Integers
from ldpstream.mechanisms.base.errors import FrameError
from ldpstream.mechanisms.wire.frame import VERSION, decode_frame, frame_fingerprint
from ldpstream.mechanisms.wire.spec import CollectionSpec

Record = tuple[int, bytes | None]
"""A message: its offset, and its value if it has one."""
_HEAD: Final = np.dtype(
    [("start", "<u4"), ("fingerprint", "<u8"), ("time_ms", "<i8"), ("count", "<u4")]
)
"""What precedes the reports of a frame with a single run."""
_MATRIX_AT: Final = 4
_SINGLE: Final = int.from_bytes(struct.pack("<BBH", VERSION, 0, 1), "little")
"""`start` of such a frame."""

MEMORY: Final = 512
"""If a third of all records lie, half of this many do about once in a billion times."""
_STEP: Final = 128
"""The estimate is shared by this many consecutive records."""


@dataclass(frozen=True, eq=False)
class ReportBatch:
    """R runs and N reports of B bytes, runs by message and then by time.

    - `message` int64 `(R,)`: the place of the run's message in the batch. `time_ms` and `count`
      int64 `(R,)` are as in the frame.
    - `payload` uint8 `(N, B)`: the runs' reports, in the runs' order.
    - `refused`: messages as `(place, reason)`, "undecodable" or "fingerprint".
    - `passed`: messages left to other states.
    """

    message: Integers
    time_ms: Integers
    count: Integers
    payload: NDArray[np.uint8]
    refused: tuple[tuple[int, str], ...]
    passed: int


@dataclass(frozen=True, eq=False)
class Arrivals:
    """When each of N messages arrived, epoch milliseconds: int64 `(N,)`, or one time for all.

    No message arrived after `latest_ms`: a report dated later than that by more than `future` is
    rejected. `clock_ms` is the best lower bound of the arrival, and the most to which a message
    moves the watermark.
    """

    latest_ms: Integers | int
    clock_ms: Integers | int

    @classmethod
    def at(cls, now_ms: int) -> "Arrivals":
        """Return the arrivals of messages that arrive now."""
        return cls(now_ms, now_ms)

    def per_run(self, message: Integers) -> tuple[Integers | int, Integers | int]:
        """Return `latest_ms` and `clock_ms` of runs, given the place of each run's message."""
        latest_ms, clock_ms = (
            times_ms if isinstance(times_ms, int) else times_ms[message]
            for times_ms in (self.latest_ms, self.clock_ms)
        )
        return latest_ms, clock_ms


NO_END: Final = 1 << 62
"""Above every offset."""


@dataclass(frozen=True)
class Decided:
    """The offsets `[first, end)` at which a state also decides messages of other specs."""

    first: int = 0
    end: int = NO_END

    def places(self, records: Sequence[Record]) -> range | None:
        """Return the places of records (offsets ascending) in the range; None if all are in it."""
        if not records:
            return None
        least, largest = records[0][0], records[-1][0]
        if self.first <= least and largest < self.end:
            return None
        if largest < self.first or self.end <= least:
            return range(0)
        offsets = [offset for offset, _ in records]
        return range(bisect_left(offsets, self.first), bisect_left(offsets, self.end))


def read_batch(
    spec: CollectionSpec,
    accept: frozenset[bytes],
    values: Sequence[bytes | None],
    *,
    decided: range | None = None,
) -> ReportBatch:
    """Read messages as frames of a spec.

    `accept` holds the fingerprints of frames left to other states. Messages that are not frames of
    this spec are refused only within the places `decided` (None: everywhere); outside they are left
    to other states.
    """
    reader = _Reader(spec, accept, decided)
    lengths: dict[int, list[int]] = {}
    for place, value in enumerate(values):
        if value is None:
            reader.null(place)
        else:
            lengths.setdefault(len(value), []).append(place)
    single: list[int] = []
    for length, places in lengths.items():
        if reports := _reports(spec, length, len(places)):
            single += reader.matrix(values, places, reports)
        else:
            single += places
    reader.frames(values, sorted(single))
    return reader.batch()


def _reports(spec: CollectionSpec, length: int, messages: int) -> int:
    """Return how many reports a message of this length has, or 0 if a matrix does not pay off."""
    reports, rest = divmod(length - _HEAD.itemsize, spec.report_bytes)
    return 0 if messages < _MATRIX_AT or rest else max(0, reports)


class _Reader:
    """Collects runs in any order, and sorts them at the end."""

    def __init__(
        self, spec: CollectionSpec, accept: frozenset[bytes], decided: range | None
    ) -> None:
        self._fingerprint = spec.fingerprint
        self._accept = accept
        self._decided = decided
        self._alone = not accept and decided is None
        self._bytes = spec.report_bytes
        self._messages: list[Integers] = []
        self._times: list[Integers] = []
        self._counts: list[Integers] = []
        self._payloads: list[NDArray[np.uint8]] = []
        self.refused: list[tuple[int, str]] = []
        self.passed = 0

    def null(self, place: int) -> None:
        """Read a message without a value."""
        if not self._alone and self._left(place, b""):
            self.passed += 1
        else:
            self.refused.append((place, "undecodable"))

    def _left(self, place: int, data: bytes) -> bool:
        """Return whether a message is left to another state, judging by its header alone."""
        elsewhere = self._decided is not None and place not in self._decided
        try:
            fingerprint = frame_fingerprint(data)
        except FrameError:
            return elsewhere
        return fingerprint in self._accept or (elsewhere and fingerprint != self._fingerprint)

    def frames(self, values: Sequence[bytes | None], places: Sequence[int]) -> None:
        """Read messages one by one."""
        for place in places:
            data = values[place] or b""
            if not self._alone and self._left(place, data):
                self.passed += 1
                continue
            try:
                frame = decode_frame(data, fingerprint=self._fingerprint, report_bytes=self._bytes)
            except FrameError as error:
                self.refused.append((place, error.reason))
                continue
            self._messages.append(np.full(len(frame.counts), place, dtype=np.int64))
            self._times.append(frame.times_ms)
            self._counts.append(frame.counts)
            self._payloads.append(frame.payload)

    def matrix(self, values: Sequence[bytes | None], places: list[int], reports: int) -> list[int]:
        """Read messages of one length at once if each has a single run; return the others."""
        data = np.frombuffer(b"".join(values[place] or b"" for place in places), dtype=np.uint8)
        rows, message = data.reshape(len(places), -1), np.array(places, dtype=np.int64)
        heads = rows[:, : _HEAD.itemsize].copy().view(_HEAD)[:, 0]
        ours = heads["fingerprint"] == int.from_bytes(self._fingerprint, "little")
        fits = ours & (heads["start"] == _SINGLE) & (heads["count"] == reports)
        unfit: list[int] = message[~fits].tolist()
        if unfit:
            rows, heads, message = rows[fits], heads[fits], message[fits]
        self._messages.append(message)
        self._times.append(heads["time_ms"].astype(np.int64))
        self._counts.append(np.full(len(rows), reports, dtype=np.int64))
        self._payloads.append(rows[:, _HEAD.itemsize :].reshape(-1, self._bytes))
        return unfit

    def batch(self) -> ReportBatch:
        """Return all runs in the order of classification."""
        message, time_ms, count = (
            np.concatenate(arrays) if arrays else np.empty(0, dtype=np.int64)
            for arrays in (self._messages, self._times, self._counts)
        )
        empty = np.empty((0, self._bytes), dtype=np.uint8)
        payload = np.concatenate(self._payloads) if self._payloads else empty
        # Compare, do not subtract: a device may send any 64 bits as a time, and the difference
        # overflows.
        again, earlier = message[1:] == message[:-1], time_ms[1:] < time_ms[:-1]
        if np.any((message[1:] < message[:-1]) | (again & earlier)):
            places_in_order = np.lexsort((time_ms, message))
            start = (np.cumsum(count) - count)[places_in_order]
            message, time_ms, count = (
                message[places_in_order],
                time_ms[places_in_order],
                count[places_in_order],
            )
            ahead = np.cumsum(count) - count
            payload = payload[np.repeat(start - ahead, count) + np.arange(len(payload))]
        return ReportBatch(
            message, time_ms, count, payload, tuple(sorted(self.refused)), self.passed
        )


@dataclass(frozen=True)
class Dates:
    """The timestamps of N records, epoch milliseconds, and whether the broker has set all of them.

    `before` are the timestamps of at most MEMORY records before them in the log, as far as known.
    `since_ms`, on the reader's own clock, is when the log was last seen to end where these records
    begin, None if never.
    """

    times_ms: Sequence[int] = ()
    appended: bool = False
    before: Sequence[int] = ()
    since_ms: int | None = None

    def part(self, start: int, stop: int) -> "Dates":
        """Return the dates of the records in `[start, stop)`."""
        times_ms, before = self.times_ms[start:stop], self.up_to(start)
        return Dates(times_ms, self.appended, before, self.since_ms)

    def up_to(self, place: int) -> Sequence[int]:
        """Return the timestamps of the MEMORY records before a place, as far as known."""
        if place >= MEMORY:
            return tuple(self.times_ms[place - MEMORY : place])
        return (*self.before, *self.times_ms[:place])[-MEMORY:]

    def arrivals(self, *, now_ms: int, ahead_ms: int = 0) -> Arrivals:
        """Return the arrivals of these records by a clock that is `ahead_ms` ahead of `since_ms`'s.

        A negative timestamp belongs to a record without one.
        """
        if self.appended:
            return appended(self.times_ms)
        times_ms = np.array([*self.before, *self.times_ms], dtype=np.int64)
        dated = times_ms >= 0
        if not dated.any():
            return Arrivals.at(now_ms)
        first = int(np.count_nonzero(dated[: len(self.before)]))
        # Records arrive in the order of the log.
        guesses = np.maximum.accumulate(_guesses(times_ms[dated], first))
        if self.since_ms is not None:
            guesses = np.maximum(guesses, self.since_ms + ahead_ms)
        step = (np.cumsum(dated) - dated)[len(self.before) :] - first
        guess = guesses[np.minimum(step // _STEP, len(guesses) - 1)]
        return Arrivals(now_ms, np.minimum(guess, now_ms))


def _guesses(times_ms: Integers, first: int) -> Integers:
    """Return the arrival estimate of each _STEP records from `first` on, at least one.

    `times_ms`, at least one, are the timestamps of all known records.
    """
    places = np.arange(first, max(first + 1, len(times_ms)), _STEP)
    guesses = np.full(len(places), times_ms[:MEMORY].min())
    has_memory = places >= MEMORY
    if has_memory.any():
        least, middle = times_ms.min(), (MEMORY - 1) // 2
        since = times_ms - least
        if since.max() <= np.iinfo(np.int32).max:
            # Numpy selects among these several times as fast.
            since = since.astype(np.int32)
        before = since[places[has_memory, np.newaxis] + np.arange(-MEMORY, 0)]
        guesses[has_memory] = least + np.partition(before, middle, axis=1)[:, middle]
    return guesses


UNDATED: Final = Dates()
"""For records whose timestamps are not known: they arrive now."""


def appended(times_ms: Sequence[int]) -> Arrivals:
    """Return the arrivals of messages whose timestamps the broker has set."""
    arrived = np.array(times_ms, dtype=np.int64)
    return Arrivals(arrived, arrived)

"""What polls of a partition return, when that was asked for, and where the log then ended.

aiokafka does not say when a fetch was sent, nor where the log ended when it was answered. But a
client sends the next fetch only after it has processed an answer, so the fetch after an answer that
is first seen now was sent later than the last check that did not see the answer.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

from ldpstream.agents.partition.arrival import UNDATED, Dates

_APPENDED: Final = 1
"""Timestamp type of records whose timestamp the broker has set (LogAppendTime)."""

_Fetched = Any
"""A record as a consumer or a batch returns it, whose classes have no types in common."""


@dataclass(frozen=True, slots=True)
class Run:
    """N >= 1 records of one partition together, without an object per record.

    `offsets` ascend (a `range` if consecutive); `appended` says that the broker has set all
    timestamps, `times_ms`.
    """

    offsets: Sequence[int]
    values: Sequence[bytes | None]
    times_ms: Sequence[int]
    appended: bool

    @classmethod
    def of(cls, records: Sequence[_Fetched]) -> "Run":
        """Return records, at least one, as a run."""
        first, last = records[0].offset, records[-1].offset
        consecutive = last - first == len(records) - 1
        offsets = range(first, last + 1) if consecutive else [r.offset for r in records]
        return cls(
            offsets,
            [record.value for record in records],
            [record.timestamp for record in records],
            all(record.timestamp_type == _APPENDED for record in records),
        )

    @property
    def offset(self) -> int:
        """The last offset: the fetch continues after it."""
        return self.offsets[-1]


def runs(found: Sequence[Run | _Fetched]) -> Sequence[Run]:
    """Return a consumer's records of a partition as runs."""
    made: list[Run] = []
    single: list[_Fetched] = []
    for one in found:
        if isinstance(one, Run):
            if single:
                made.append(Run.of(single))
                single = []
            made.append(one)
        else:
            single.append(one)
    return [*made, Run.of(single)] if single else made


@dataclass
class Answers:
    """What checks of a partition after every poll have shown; times are on one monotonic clock."""

    answered: int | None
    """The client's timestamp of the last answer, used only as an identity."""
    polled_ms: int
    """When this was last checked: by then there was no later answer than `answered`."""
    position: int
    """Everything below, from where reading began, has been read."""
    asked_ms: int | None = None
    """A time before the fetch of that answer was sent."""
    next_ms: int | None = None
    """A time before the next fetch is sent."""
    ended: tuple[int, int] | None = None
    """The last end that was reached, and a time at which the log still ended there."""
    recent: Sequence[int] = ()
    """The timestamps of the last records read, as many as `Dates` uses."""

    def look(self, answered: int | None, now_ms: int) -> bool:
        """Note the client's timestamp of its last answer; return whether it is a new answer."""
        new = answered != self.answered
        if new:
            self.answered, self.asked_ms = answered, self.next_ms
            self.next_ms = self.polled_ms
        self.polled_ms = now_ms
        return new

    def read(self, stop: int, *, end: int, found: Sequence[Run] = ()) -> Dates:
        """Note that an answer covered `[position, stop)`, and that the log then ended at `end`.

        Returns the dates of the records that it found there.
        """
        start, self.position = self.position, stop
        since_ms = None if self.ended is None or self.ended[0] > start else self.ended[1]
        if stop == end and self.asked_ms is not None:
            self.ended = stop, self.asked_ms
        if not found:
            return UNDATED
        times_ms = list(chain.from_iterable(run.times_ms for run in found))
        dates = Dates(times_ms, all(run.appended for run in found), self.recent, since_ms)
        self.recent = dates.up_to(len(times_ms))
        return dates


def steady_ms() -> int:
    """Return the monotonic time in ms, which setting the clock does not affect."""
    return time.monotonic_ns() // 1_000_000

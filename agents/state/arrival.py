"""Bound when messages reached the broker, which limits what event times can do.

A device may put any date on its reports. So a report moves the watermark to its event time, but
never past its arrival. A pane then closes no sooner than a grace after its end *in arrival time*,
whatever other devices send, and a report that is dated and delivered honestly within the grace is
never late.

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

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from ldpstream.agents.state.batch import Arrivals
from ldpstream.mechanisms.base.arrays import Integers

MEMORY: Final = 512
"""If a third of all records lie, half of this many do about once in a billion times."""
_STEP: Final = 128
"""The estimate is shared by this many consecutive records."""


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

"""When messages reached the broker, as far as a reader can know: it bounds what event times do.

A device may date its reports as it likes. So a report moves the watermark to its event time, but
never past its arrival: then a pane closes no sooner than a grace after its end *in arrival time*,
whoever lies, and whoever dates and delivers honestly within the grace is never late.

Where the topic has `message.timestamp.type=LogAppendTime` the broker's own timestamp is the
arrival, the same at every replay. Otherwise (`CreateTime`) senders date records. A reader knows for
sure only that nothing arrives later than now, nor sooner than the log was last seen to end before
it: at the log's end that is enough. While it catches up the median timestamp of the MEMORY records
before one decides: they arrived before it did, so this is never later than its arrival, unless half
of them lie. Where fewer are known, at the beginning of a read session, the earliest timestamp of
the first MEMORY records does. Timestamps are cut to the precision as event times are, and need no
allowance for it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Int64s = NDArray[np.int64]
MEMORY: Final = 512
"""Where a third of all records lies, half of so many do once in some billion times."""
_STEP: Final = 128
"""For so many records one after the other the same is known."""


@dataclass(frozen=True)
class Dates:
    """The timestamps of N records, epoch milliseconds, and whether the broker has set them all.

    `before` are those of the records before them in the log, MEMORY at most and as far as known.
    """

    times_ms: Sequence[int] = ()
    appended: bool = False
    before: Sequence[int] = ()

    def part(self, start: int, stop: int) -> "Dates":
        """Return those of the records from one place to before another."""
        return Dates(self.times_ms[start:stop], self.appended, self.up_to(start))

    def up_to(self, place: int) -> Sequence[int]:
        """Return the timestamps of the MEMORY records before a place, as far as known."""
        if place >= MEMORY:
            return tuple(self.times_ms[place - MEMORY : place])
        return (*self.before, *self.times_ms[:place])[-MEMORY:]

    def arrivals(self, *, since_ms: int | None, now_ms: int) -> "Arrivals":
        """Return the arrivals of these records.

        `since_ms` is when the log was last seen to end where they begin, None if it never was.
        Negative timestamps are those of records without any.
        """
        if self.appended:
            return appended(self.times_ms)
        times_ms = np.array([*self.before, *self.times_ms], dtype=np.int64)
        dated = times_ms >= 0
        if not dated.any():
            return Arrivals.at(now_ms)
        first = int(np.count_nonzero(dated[: len(self.before)]))
        guesses = np.array([*_guesses(times_ms[dated], first)], dtype=np.int64)
        # Arrivals are in the order of the log.
        guesses = np.maximum.accumulate(guesses)
        if since_ms is not None:
            guesses = np.maximum(guesses, since_ms)
        step = (np.cumsum(dated) - dated)[len(self.before) :] - first
        known = guesses[np.minimum(step // _STEP, len(guesses) - 1)]
        return Arrivals(now_ms, np.minimum(known, now_ms))


def _guesses(times_ms: Int64s, first: int) -> Iterator[int]:
    """Yield what is known of the arrival of each _STEP records from a place on, one step at least.

    `times_ms`, at least one, are the timestamps of all records that are known.
    """
    for place in range(first, max(first + 1, len(times_ms)), _STEP):
        if place < MEMORY:
            yield int(times_ms[:MEMORY].min())
        else:
            middle = (MEMORY - 1) // 2
            yield int(np.partition(times_ms[place - MEMORY : place], middle)[middle])


UNDATED: Final = Dates()
"""Of records whose timestamps are not known: they arrive now."""


@dataclass(frozen=True, eq=False)
class Arrivals:
    """When each of N messages arrived, epoch milliseconds: int64 `(N,)`, or one time for all.

    No message arrived after `latest_ms`: what is dated later than that by more than `future` is
    rejected. `clock_ms` is the best that is known, never later: as far a message moves the
    watermark at most.
    """

    latest_ms: Int64s | int
    clock_ms: Int64s | int

    @classmethod
    def at(cls, now_ms: int) -> "Arrivals":
        """Return what is known of messages that arrive now."""
        return cls(now_ms, now_ms)


def appended(times_ms: Sequence[int]) -> Arrivals:
    """Return the arrivals of messages that the broker has dated itself."""
    arrived = np.array(times_ms, dtype=np.int64)
    return Arrivals(arrived, arrived)

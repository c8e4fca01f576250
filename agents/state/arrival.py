"""When messages reached the broker, as far as a reader can know: it bounds what event times do.

A device may date its reports as it likes. So a report moves the watermark to its event time, but
never past its arrival: then a pane closes no sooner than a grace after its end *in arrival time*,
whoever lies, and whoever dates and delivers honestly within the grace is never late.

Where the topic has `message.timestamp.type=LogAppendTime` the broker's own timestamp is the
arrival, the same at every replay. Otherwise (`CreateTime`) senders date records. A reader knows for
sure only that nothing arrives later than now, nor sooner than the log was last seen to end before
it: at the log's end that is enough. While it catches up the median timestamp of the records read
together decides, with the precision added to which devices cut it: half of them would have to lie.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median_low
from typing import Final

import numpy as np
from numpy.typing import NDArray

Int64s = NDArray[np.int64]
COARSEST_MS: Final = 86_400_000
"""Devices cut the timestamps of records at most to the day, however coarse the precision is."""


@dataclass(frozen=True)
class Dates:
    """The timestamps of N records, epoch milliseconds, and whether the broker has set them all."""

    times_ms: Sequence[int] = ()
    appended: bool = False

    def part(self, start: int, stop: int) -> "Dates":
        """Return those of the records from one place to before another."""
        return Dates(self.times_ms[start:stop], self.appended)

    def arrivals(self, *, since_ms: int | None, now_ms: int, precision_ms: int) -> "Arrivals":
        """Return the arrivals of these records, which were read together: see `created`."""
        if self.appended:
            return appended(self.times_ms)
        return created(self.times_ms, since_ms=since_ms, now_ms=now_ms, precision_ms=precision_ms)


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


def created(
    times_ms: Sequence[int], *, since_ms: int | None, now_ms: int, precision_ms: int
) -> Arrivals:
    """Return the arrivals of messages read together that their senders have dated.

    `since_ms` is when the log was last seen to end where they begin, None if it never was. Negative
    timestamps are those of records without any.
    """
    dated = [time_ms for time_ms in times_ms if time_ms >= 0]
    if not dated:
        return Arrivals.at(now_ms)
    guess_ms = median_low(dated) + min(precision_ms, COARSEST_MS)
    if since_ms is not None:
        guess_ms = max(guess_ms, since_ms)
    return Arrivals(now_ms, min(now_ms, guess_ms))

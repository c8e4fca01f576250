"""What polls of a partition return, when that was asked for, and where the log then ended.

aiokafka does not say when a fetch was sent, nor where the log ended when it was answered. But a
client sends the next fetch only after it has processed an answer, so the fetch after an answer that
is first seen now was sent later than the last check that did not see the answer.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from ldpstream.agents.state.arrival import UNDATED, Dates

_APPENDED: Final = 1
"""Timestamp type of records whose timestamp the broker has set (LogAppendTime)."""


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

    def record_answer(self, answered: int | None, now_ms: int) -> bool:
        """Note the client's timestamp of its last answer; return whether it is a new answer."""
        new = answered != self.answered
        if new:
            self.answered, self.asked_ms = answered, self.next_ms
            self.next_ms = self.polled_ms
        self.polled_ms = now_ms
        return new

    def read(self, stop: int, *, end: int, found: Sequence[Any] = ()) -> Dates:
        """Note that an answer covered `[position, stop)`, and that the log then ended at `end`.

        Returns the dates of the records `found` there, as a consumer or a batch returns them: their
        classes have no type in common.
        """
        start, self.position = self.position, stop
        since_ms = None if self.ended is None or self.ended[0] > start else self.ended[1]
        if stop == end and self.asked_ms is not None:
            self.ended = stop, self.asked_ms
        if not found:
            return UNDATED
        times_ms = [record.timestamp for record in found]
        appended = all(record.timestamp_type == _APPENDED for record in found)
        dates = Dates(times_ms, appended, self.recent, since_ms)
        self.recent = dates.up_to(len(times_ms))
        return dates


def steady_ms() -> int:
    """Return the monotonic time in ms, which setting the clock does not affect."""
    return time.monotonic_ns() // 1_000_000

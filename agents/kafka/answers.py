"""When the answers to a consumer's fetches of one partition were asked for, and where it ended.

aiokafka tells neither. But a client asks for the next answer once it has processed one: so the
answer after one that was first seen now is asked for later than the last look that did not see it.
"""

import time
from dataclasses import dataclass


def steady_ms() -> int:
    """Return a time that goes on while clocks are set."""
    return time.monotonic_ns() // 1_000_000


@dataclass
class Answers:
    """What looks at a partition after every poll have told; times are of one steady clock."""

    answered: int | None
    """The client's time stamp of the last answer: it only tells one from another."""
    polled_ms: int
    """When this was last looked at: until then there was no later answer than `answered`."""
    asked_ms: int | None = None
    """A moment before that answer was asked for."""
    next_ms: int | None = None
    """A moment before the answer after it will have been."""
    ended: tuple[int, int] | None = None
    """The last end that was reached, and a moment at which the log still ended there."""

    def look(self, answered: int | None, now_ms: int) -> bool:
        """Note what the client says of its last answer; whether it is another one than before."""
        new = answered != self.answered
        if new:
            self.answered, self.asked_ms = answered, self.next_ms
            self.next_ms = self.polled_ms
        self.polled_ms = now_ms
        return new

    def read(self, start: int, stop: int, *, end: int) -> int | None:
        """Note that an answer told of `[start, stop)`, and that the log then ended at `end`.

        Returns a moment at which the log still ended at `start` or before it, None if that was not
        seen.
        """
        since_ms = None if self.ended is None or self.ended[0] > start else self.ended[1]
        if stop == end and self.asked_ms is not None:
            self.ended = stop, self.asked_ms
        return since_ms

"""The clock by which a worker decides, the wall clock while the broker agrees, and its intervals.

Setting a wall clock makes it jump, and decisions made before anybody notices would be final. So
after a jump, time continues on the monotonic clock until the broker's next timestamp shows which
clock is right. Then a jump to the right time is followed, and one to a wrong time is not.

A changelog has `LogAppendTime`: the broker timestamps what it appends. That happens after the
worker sent the record and before the acknowledgement arrived, so every acknowledgement bounds how
far the worker's clock is ahead of the broker's. Idle closing and, unless the broker also timestamps
the source, `future` and the bound by arrival rely on the worker's clock. Beyond a limit a worker
should leave its partitions to others.
"""

import logging
import time
from collections.abc import Callable
from typing import Final

_STEP_MS: Final = 500
"""A change of at least this much is a jump; anything less is an adjustment."""

log = logging.getLogger(__name__)

PARTITIONS: Final = 100
"""Up to this many partitions run at the base interval."""


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


class WorkerClock:
    """A worker's time, and how far the broker's clock differs.

    `limit_ms` is the tolerated difference. `skew_ms` says how far this clock is ahead of the
    broker's at least (negative: behind), by the last acknowledgement; None before the first.
    """

    def __init__(
        self,
        limit_ms: int,
        *,
        wall_ms: Callable[[], int] = _wall_ms,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self.skew_ms: int | None = None
        self.stepped = False
        self._limit_ms = limit_ms
        self._wall_ms = wall_ms
        self.seconds = seconds
        self._ahead_ms = wall_ms() - self.steady_ms()
        self._answered_at = self._requested_at = -float("inf")

    def steady_ms(self) -> int:
        """Return the monotonic time in ms, which setting the wall clock does not affect."""
        return int(self.seconds() * 1000)

    def now_ms(self) -> int:
        """Return the time, epoch ms: the wall clock's, or the monotonic clock's since it jumped."""
        ahead_ms = self._wall_ms() - self.steady_ms()
        if not self.stepped and abs(ahead_ms - self._ahead_ms) > _STEP_MS:
            self.stepped = True
            log.warning(
                "this machine's clock has jumped by %+.1f s: the worker uses its monotonic clock "
                "until the broker's timestamps show which is right",
                (ahead_ms - self._ahead_ms) / 1000,
            )
        if not self.stepped:
            self._ahead_ms = ahead_ms
        return self.steady_ms() + self._ahead_ms

    def due(self, every_seconds: float) -> bool:
        """Return whether to ask the broker: no request and no timestamp for this long."""
        now = self.seconds()
        if now - max(self._answered_at, self._requested_at) < every_seconds:
            return False
        self._requested_at = now
        return True

    def sent(self) -> int:
        """Return the wall clock's time, to pass to `acknowledged` later."""
        return self._wall_ms()

    def acknowledged(self, sent_ms: int, appended_ms: int) -> None:
        """Compare clocks: a message sent at `sent_ms` and acknowledged now has this timestamp."""
        was_wrong, now_ms = self.wrong, self._wall_ms()
        if now_ms < sent_ms:
            return  # The clock was set back in between.
        # It is between these two: the value that is nearest to 0.
        self.skew_ms = max(sent_ms - appended_ms, 0) + min(now_ms - appended_ms, 0)
        self._answered_at = self.seconds()
        if self.wrong:
            if not was_wrong:
                log.error("%s", self.problem)
            return
        if self.stepped or was_wrong:
            self.stepped = False
            self._ahead_ms = now_ms - self.steady_ms()
            log.warning("this machine's clock agrees with the broker's again")

    @property
    def wrong(self) -> bool:
        """Whether the wall clock is certainly off by more than the limit."""
        return self.skew_ms is not None and abs(self.skew_ms) > self._limit_ms

    @property
    def problem(self) -> str:
        """The problem of a wrong clock, as text; empty if it is right."""
        if self.skew_ms is None or not self.wrong:
            return ""
        seconds = self.skew_ms / 1000
        side = "ahead of" if seconds > 0 else "behind"
        return (
            f"this machine's clock is {abs(seconds):,.1f} s {side} the broker's, more than the "
            f"{self._limit_ms / 1000:g} s allowed: the worker leaves its partitions to others "
            "until the clock is corrected"
        )


def scaled_interval(seconds: float, partitions: int, *, most: float = float("inf")) -> float:
    """Return the seconds between two rounds over this many partitions, to bound their cost.

    That is `seconds` for up to `PARTITIONS`, proportionally more above, and at most `most`. A
    consumer asks the broker about all of its partitions at every fetch, a tick visits all owned
    ones, and every flush writes a commit record for each. For thousands, at the same interval, this
    would take all of a process's time.
    """
    return max(seconds, min(most, seconds * partitions / PARTITIONS))

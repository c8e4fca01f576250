"""The clock by which a worker decides: the one on the wall, as long as the broker agrees with it.

A wall clock that is set makes a step, and what is decided by it before anybody notices would be
final. So time goes on steadily, by the monotonic clock, until the broker's next timestamp says who
is right (`ldpstream.agents.state.skew`): a step to the right time is followed then, one to a wrong
time never.
"""

import logging
import time
from collections.abc import Callable
from typing import Final

from ldpstream.agents.state.skew import Skew

_STEP_MS: Final = 500
"""What a clock is off by at once is a step; less is being adjusted."""

log = logging.getLogger(__name__)


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


class WorkerClock:
    """A worker's time, and what its broker says of it.

    `limit_ms` is how far it may be off; `skew` the latest that is known, None where the broker has
    not dated anything.
    """

    def __init__(
        self,
        limit_ms: int,
        *,
        wall_ms: Callable[[], int] = _wall_ms,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self.skew: Skew | None = None
        self.stepped = False
        self._limit_ms = limit_ms
        self._wall_ms = wall_ms
        self._seconds = seconds
        self._ahead_ms = wall_ms() - self._steady_ms()
        self._checked = self._asked = -float("inf")

    def _steady_ms(self) -> int:
        return int(self._seconds() * 1000)

    def now_ms(self) -> int:
        """Return the time, epoch milliseconds: that of the wall, or steady since its last step."""
        ahead_ms = self._wall_ms() - self._steady_ms()
        if not self.stepped and abs(ahead_ms - self._ahead_ms) > _STEP_MS:
            self.stepped = True
            log.warning(
                "this machine's clock has been set by %+.1f s: the worker goes on by its own "
                "until the broker's tells which is right",
                (ahead_ms - self._ahead_ms) / 1000,
            )
        if not self.stepped:
            self._ahead_ms = ahead_ms
        return self._steady_ms() + self._ahead_ms

    def due(self, every_seconds: float) -> bool:
        """Return whether the broker should be asked: nobody has, nor has it told, for so long."""
        now = self._seconds()
        if now - max(self._checked, self._asked) < every_seconds:
            return False
        self._asked = now
        return True

    def sent(self) -> int:
        """Return the time on the wall at which something is sent, for `acknowledged`."""
        return self._wall_ms()

    def acknowledged(self, sent_ms: int, appended_ms: int) -> None:
        """Take the broker's timestamp of what was sent then and is acknowledged now."""
        was_wrong, now_ms = self.wrong, self._wall_ms()
        if now_ms < sent_ms:
            return  # The clock was set back in between.
        self.skew = Skew.bounded(sent_ms=sent_ms, acknowledged_ms=now_ms, appended_ms=appended_ms)
        self._checked = self._seconds()
        if self.wrong:
            if not was_wrong:
                log.error("%s", self.problem)
            return
        if self.stepped or was_wrong:
            self.stepped = False
            self._ahead_ms = now_ms - self._steady_ms()
            log.warning("this machine's clock agrees with the broker's again")

    @property
    def wrong(self) -> bool:
        """Whether the clock on the wall is certainly off by more than the limit."""
        return self.skew is not None and abs(self.skew.least_ms) > self._limit_ms

    @property
    def problem(self) -> str:
        """What to say of a clock that is wrong; nothing where it is not."""
        if self.skew is None or not self.wrong:
            return ""
        seconds = self.skew.least_ms / 1000
        side = "ahead of" if seconds > 0 else "behind"
        return (
            f"this machine's clock is {abs(seconds):,.1f} s {side} the broker's, and may be off by "
            f"{self._limit_ms / 1000:g} s: the worker leaves its partitions to others until it is "
            "set right"
        )

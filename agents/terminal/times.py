"""Which times of value and report lines are plausible."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldpstream.agents.config import WindowSpec
from ldpstream.agents.kafka.record_time import now_ms
from ldpstream.mechanisms.base.times import format_duration, look_like_seconds

_DAY_MS: Final = 86_400_000
_BACK_MS: Final = 365 * _DAY_MS
_AHEAD_MS: Final = _DAY_MS  # a time without its zone is off by at most 14 hours


@dataclass(frozen=True)
class NearNow:
    """The times that are plausible: from `back_ms` before now to `ahead_ms` after it."""

    back_ms: int
    ahead_ms: int

    def far(self, times_ms: NDArray[np.int64]) -> dict[int, str]:
        """Return which of n times, `(n,)`, are implausible, and what is expected instead."""
        now = now_ms()
        far = np.flatnonzero((times_ms < now - self.back_ms) | (times_ms > now + self.ahead_ms))
        return {int(position): self._expected(int(times_ms[position]), now) for position in far}

    def _expected(self, time_ms: int, now: int) -> str:
        span = f"of the {format_duration(self.back_ms)} before now"
        if time_ms > now:
            span = f"at most {format_duration(self.ahead_ms)} after now"
        looks = " (this looks like seconds)" * look_like_seconds(time_ms)
        return f"a time {span}, in milliseconds since 1970 or RFC 3339{looks}; --replay takes any"


def near_now(window: WindowSpec, *, replay: bool) -> NearNow | None:
    """Return which times a collection's lines may have; None, for any, in a replay.

    A year back, or the retention if that is longer; a day ahead, or `future` if that is longer.
    """
    if replay:
        return None
    return NearNow(max(_BACK_MS, window.retention_ms), max(_AHEAD_MS, window.future_ms))

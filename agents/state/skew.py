"""How wrong a worker's clock is, as far as a broker's acknowledgements tell.

A changelog has `LogAppendTime`: the broker dates what it appends. That happened after it was sent
and before it was acknowledged, so that every acknowledgement bounds how far the worker's clock is
ahead of the broker's. Idle closing and, unless the broker dates the source too, `future` and the
bound by arrival rest on the worker's clock: beyond a limit a worker should leave its partitions to
others.
"""

from dataclasses import dataclass
from typing import Final

LEAST_LIMIT_MS: Final = 1_000
MOST_LIMIT_MS: Final = 5_000


@dataclass(frozen=True)
class Skew:
    """A worker's clock is ahead of the broker's by `low_ms` to `high_ms`, below 0 behind it."""

    low_ms: int
    high_ms: int

    @classmethod
    def bounded(cls, *, sent_ms: int, acknowledged_ms: int, appended_ms: int) -> "Skew":
        """Return what an acknowledgement tells; the first two are on the worker's clock."""
        return cls(sent_ms - appended_ms, acknowledged_ms - appended_ms)

    @property
    def least_ms(self) -> int:
        """The skew nearest to 0 that agrees with it."""
        return max(self.low_ms, 0) + min(self.high_ms, 0)


def skew_limit_ms(grace_ms: int) -> int:
    """Return by how much a clock may be wrong where windows wait so long for late reports."""
    return max(LEAST_LIMIT_MS, min(MOST_LIMIT_MS, grace_ms // 2))

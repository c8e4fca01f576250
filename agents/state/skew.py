"""Estimate how wrong a worker's clock is, from a broker's acknowledgements.

A changelog has `LogAppendTime`: the broker timestamps what it appends. That happens after the
worker sent the record and before the acknowledgement arrived, so every acknowledgement bounds how
far the worker's clock is ahead of the broker's. Idle closing and, unless the broker also timestamps
the source, `future` and the bound by arrival rely on the worker's clock. Beyond a limit a worker
should leave its partitions to others.
"""

from dataclasses import dataclass
from typing import Final

_LEAST_LIMIT_MS: Final = 1_000
_MOST_LIMIT_MS: Final = 5_000


@dataclass(frozen=True)
class Skew:
    """A worker's clock is ahead of the broker's by `low_ms` to `high_ms` (negative: behind)."""

    low_ms: int
    high_ms: int

    @classmethod
    def bounded(cls, *, sent_ms: int, acknowledged_ms: int, appended_ms: int) -> "Skew":
        """Return one acknowledgement's bounds; the first two times are by the worker's clock."""
        return cls(sent_ms - appended_ms, acknowledged_ms - appended_ms)

    @property
    def least_ms(self) -> int:
        """The value within the bounds that is nearest to 0."""
        return max(self.low_ms, 0) + min(self.high_ms, 0)


def skew_limit_ms(grace_ms: int) -> int:
    """Return the tolerated clock error for a collection with this grace."""
    return max(_LEAST_LIMIT_MS, min(_MOST_LIMIT_MS, grace_ms // 2))

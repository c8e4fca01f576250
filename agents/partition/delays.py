"""Histograms of how late reports arrive, by which operators choose `grace`.

The *lateness* of a report is the least grace with which it would have been counted: 0 until the
watermark reaches the end of its pane, then the distance of the watermark from that end. Its *delay*
is the time from its event to its arrival, negative if its device's clock is ahead; reports rejected
because they are dated too far ahead have a delay, too. Both are rounded up to the next bucket
bound. The cost is one binary search for each run of a batch.
"""

from dataclasses import dataclass
from functools import cache
from typing import Final, Self

import numpy as np

from ldpstream.agents.partition.batch import Int64s
from ldpstream.agents.partition.classify import LATE, REJECTED, Classified

LATENESS_MS: Final = (
    *(0, 100, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 120_000, 300_000, 600_000),
    *(1_800_000, 3_600_000, 21_600_000, 86_400_000, 604_800_000),
)
DELAY_MS: Final = (
    *(-3_600_000, -600_000, -60_000, -10_000, -5_000, -1_000, 0, 100, 500, 1_000, 2_500, 5_000),
    *(10_000, 30_000, 60_000, 120_000, 300_000, 600_000, 1_800_000, 3_600_000, 86_400_000),
)
"""Upper bounds of the buckets; one more bucket holds everything above the last."""


@dataclass(frozen=True, eq=False)
class Buckets:
    """The number of reports in each bucket, int64 `(B + 1,)`, and the sum of their times in ms."""

    counts: Int64s
    sum_ms: float = 0.0


_PUNCTUAL: Final = Buckets(np.zeros(len(LATENESS_MS) + 1, dtype=np.int64))
_UNDATED: Final = Buckets(np.zeros(len(DELAY_MS) + 1, dtype=np.int64))


@dataclass(frozen=True, eq=False)
class Delays:
    """The lateness of counted and late reports, and the delays of all with a valid time."""

    lateness: Buckets = _PUNCTUAL
    delay: Buckets = _UNDATED

    def __add__(self, other: "Delays") -> "Delays":
        """Return the sum of both."""
        pairs = (self.lateness, other.lateness), (self.delay, other.delay)
        return Delays(*(Buckets(a.counts + b.counts, a.sum_ms + b.sum_ms) for a, b in pairs))

    @classmethod
    def of(cls, classified: Classified, *, pane_ms: int) -> Self:
        """Return the delays of a classified batch."""
        batch, fate, good = classified.batch, classified.fate, classified.good_count
        if not len(fate):
            return cls()
        delay_ms = classified.arrived_ms - batch.time_ms
        taken = fate <= LATE
        decided = taken | (fate == REJECTED["future"])
        late_ms = np.maximum(classified.before - (classified.pane + 1) * pane_ms + 1, 0)
        return cls(
            lateness=_bucketed(LATENESS_MS, late_ms, np.where(taken, good, 0)),
            delay=_bucketed(DELAY_MS, delay_ms, np.where(decided, good, 0)),
        )


@cache
def _bounds(bounds: tuple[int, ...]) -> Int64s:
    return np.array(bounds, dtype=np.int64)


def _bucketed(bounds: tuple[int, ...], times_ms: Int64s, reports: Int64s) -> Buckets:
    where = np.searchsorted(_bounds(bounds), times_ms)
    counts = np.bincount(where, weights=reports, minlength=len(bounds) + 1)
    return Buckets(counts.astype(np.int64), float(np.dot(times_ms.astype(np.float64), reports)))

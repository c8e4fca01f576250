"""The fate of every report: counted, late, or rejected with a reason.

The runs of a frame are decided one after the other in time order, and frames in the order of their
offsets. A partition's watermark is the largest event time that it has accepted so far; a report
whose pane the watermark has closed is late. Rejected reports never move the watermark.

All runs of a batch are decided at once: what is late depends on a running maximum only, and a late
run never raises it, since its pane ended before.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldpstream.agents.batch import Batch, Int64s
from ldpstream.agents.context import Context
from ldpstream.agents.records import REASONS
from ldpstream.agents.windows import NEVER
from ldpstream.mechanisms.mechanism import Reports

COUNTED: Final = 0
LATE: Final = 1
FATES: Final = ("counted", "late", *REASONS)
"""The names of fates, by code."""
REJECTED: Final = {reason: FATES.index(reason) for reason in REASONS}


@dataclass(frozen=True, eq=False)
class Judgement:
    """What became of a batch of R runs and N reports.

    `fate` int64 `(R,)` is COUNTED, LATE or `REJECTED[reason]`, for the run's reports that are in
    `good`, bool `(N,)`; the others of a counted or late run are rejected for "range". `pane` int64
    `(R,)`, `reports` int64 `(N,)`. `clock` is the watermark after the batch.
    """

    batch: Batch
    fate: Int64s
    pane: Int64s
    reports: Reports
    good: NDArray[np.bool_]
    clock: int

    @cached_property
    def good_count(self) -> Int64s:
        """The number of good reports in every run, int64 `(R,)`."""
        count = self.batch.count
        if not len(count) or self.good.all():
            return count
        return np.add.reduceat(self.good, np.cumsum(count) - count, dtype=np.int64)

    def counted(self) -> Iterator[tuple[int, Reports]]:
        """Yield the counted reports of each pane, all at once."""
        runs = (self.fate == COUNTED) & (self.good_count > 0)
        if not runs.any():
            return
        rows = self.good
        if not runs.all():
            rows = rows & np.repeat(runs, self.batch.count)
        reports = self.reports if rows.all() else self.reports[rows]
        pane, count = self.pane[runs], self.good_count[runs]
        if (pane == pane[0]).all():
            yield int(pane[0]), reports
            return
        panes, place = np.unique(pane, return_inverse=True)
        # Sixteen bits are sorted by radix, in linear time.
        group = np.repeat(place.astype(np.uint16 if len(panes) <= 0xFFFF else np.int64), count)
        reports = reports[np.argsort(group, kind="stable")]
        ends = np.cumsum(np.bincount(group, minlength=len(panes)))
        yield from zip(panes.tolist(), np.split(reports, ends[:-1]), strict=True)

    def late(self) -> dict[int, int]:
        """Return the number of late reports by pane."""
        runs = (self.fate == LATE) & (self.good_count > 0)
        panes, place = np.unique(self.pane[runs], return_inverse=True)
        late = np.zeros(len(panes), dtype=np.int64)
        np.add.at(late, place, self.good_count[runs])
        return dict(zip(panes.tolist(), late.tolist(), strict=True))

    def rejected(self) -> dict[str, int]:
        """Return the number of rejected reports by reason; an unreadable message counts as one."""
        rejected = {
            reason: int(self.batch.count[self.fate == code].sum())
            for reason, code in REJECTED.items()
        }
        taken = self.fate <= LATE
        rejected["range"] += int((self.batch.count - self.good_count)[taken].sum())
        for _, reason in self.batch.refused:
            rejected[reason] += 1
        return {reason: count for reason, count in rejected.items() if count}


def judge(context: Context, batch: Batch, *, clock: int, closed: int, now_ms: int) -> Judgement:
    """Decide a batch, given the watermark, the first open pane and the time on the wall."""
    window, time_ms = context.window, batch.time_ms
    reports, good = context.spec.mechanism.decode(batch.payload)
    fate = np.full(len(time_ms), COUNTED, dtype=np.int64)
    fate[time_ms > now_ms + window.future_ms] = REJECTED["future"]
    fate[time_ms % context.spec.precision_ms != 0] = REJECTED["precision"]
    fate[(time_ms < window.earliest_ms) | (time_ms > window.latest_ms)] = REJECTED["time"]
    judgement = Judgement(batch, fate, time_ms // window.pane_ms, reports, good, clock)
    if not len(time_ms):
        return judgement
    taken = np.where((fate == COUNTED) & (judgement.good_count > 0), time_ms, NEVER)
    clocks = np.maximum.accumulate(np.concatenate(([clock], taken)))
    first_open = np.maximum(closed, (clocks[:-1] - window.grace_ms) // window.pane_ms)
    fate[(fate == COUNTED) & (judgement.pane < first_open)] = LATE
    return Judgement(batch, fate, judgement.pane, reports, good, int(clocks[-1]))

"""Classify every report as counted, late, or rejected with a reason; count them, and how late.

The runs of a frame are classified in time order, and frames in the order of their offsets. A
partition's watermark is the largest event time accepted so far, though no report moves it past its
own arrival (`ldpstream.agents.state.batch`). A report whose pane the watermark has closed is
late. Rejected reports never move the watermark.

All runs of a batch are classified at once: lateness depends only on a running maximum, and a late
run never raises it, since its pane has already ended.

In a replay reports arrive long after their events, and one stray later date would close everything
before it. With `witnesses = m` the watermark is the m-th largest event time of distinct messages,
so m - 1 strays have no effect. Which messages have been witnesses is kept in memory only: a new
owner's watermark continues from the head's and may lag behind by up to m messages, which closes
panes later but never sooner.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from heapq import heappush, heappushpop
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from ldpstream.agents.state.batch import Arrivals, ReportBatch
from ldpstream.agents.state.context import Context
from ldpstream.agents.state.owner_cells import OwnedCells
from ldpstream.agents.state.records import REASONS, Head
from ldpstream.agents.state.tokens import Numbers, Tokens, again, as_numbers
from ldpstream.agents.state.windows import NEVER, WindowSpec
from ldpstream.mechanisms.base.arrays import Integers
from ldpstream.mechanisms.interface.mechanism import Reports
from ldpstream.mechanisms.wire.one_report import OneReport

COUNTED: Final = 0
LATE: Final = 1
OUTCOMES: Final = ("counted", "late", *REASONS)
"""The names of the outcomes, by code."""
REJECTED: Final = {reason: OUTCOMES.index(reason) for reason in REASONS}
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
class Classified:
    """The classification of a batch of R runs and N reports.

    - `outcome` int64 `(R,)` is COUNTED, LATE or `REJECTED[reason]`. It applies to the run's reports
      that are in `good`, bool `(N,)`; the others of a counted or late run are rejected for "range".
    - `pane` int64 `(R,)`, `reports` int64 `(N,)`.
    - `clock` is the watermark after the batch, `before` int64 `(R,)` the watermark before each run.
    - `arrived_ms` int64 `(R,)`, or one number for all, is when each run's message arrived.
    - `witnessed`: the largest event times of distinct messages after the batch, ascending, at most
      one for each witness (empty with a single witness).
    - With `one_report`, `why` int64 `(N,)` is the `REJECTED[reason]` that replaces "range" for a
      report that is not good, and `tokens` `(N,)` are the reports' tokens as numbers.
    """

    batch: ReportBatch
    outcome: Integers
    pane: Integers
    reports: Reports
    good: NDArray[np.bool_]
    clock: int
    before: Integers
    arrived_ms: Integers | int
    witnessed: Sequence[int] = ()
    why: NDArray[np.int64] | None = None
    tokens: Numbers | None = None

    @property
    def all_counted(self) -> bool:
        """Whether every report of every message is counted."""
        counted = (self.outcome == COUNTED).all() and self.good.all()
        return bool(counted) and not self.batch.refused

    @cached_property
    def good_count(self) -> Integers:
        """The number of good reports in every run, int64 `(R,)`."""
        count = self.batch.count
        if not len(count) or self.good.all():
            return count
        return np.add.reduceat(self.good, np.cumsum(count) - count, dtype=np.int64)

    def counted(self, of_reports: NDArray[Any]) -> Iterator[tuple[int, NDArray[Any]]]:
        """Yield `(pane, part)`: of an array with an entry per report, those of counted ones."""
        runs = (self.outcome == COUNTED) & (self.good_count > 0)
        if not runs.any():
            return
        rows = self.good
        if not runs.all():
            rows = rows & np.repeat(runs, self.batch.count)
        reports = of_reports if rows.all() else of_reports[rows]
        pane, count = self.pane[runs], self.good_count[runs]
        if (pane == pane[0]).all():
            yield int(pane[0]), reports
            return
        panes, place = np.unique(pane, return_inverse=True)
        # NumPy sorts 16-bit integers by radix sort, in linear time.
        group = np.repeat(place.astype(np.uint16 if len(panes) <= 0xFFFF else np.int64), count)
        reports = reports[np.argsort(group, kind="stable")]
        ends = np.cumsum(np.bincount(group, minlength=len(panes)))
        yield from zip(panes.tolist(), np.split(reports, ends[:-1]), strict=True)

    def late(self) -> dict[int, int]:
        """Return the number of late reports by pane."""
        runs = (self.outcome == LATE) & (self.good_count > 0)
        panes, place = np.unique(self.pane[runs], return_inverse=True)
        late = np.zeros(len(panes), dtype=np.int64)
        np.add.at(late, place, self.good_count[runs])
        return dict(zip(panes.tolist(), late.tolist(), strict=True))

    def rejected(self) -> dict[str, int]:
        """Return the number of rejected reports by reason; an unreadable message counts as one."""
        rejected = dict.fromkeys(REASONS, 0)
        for code in np.unique(self.outcome[self.outcome > LATE]).tolist():
            rejected[OUTCOMES[code]] = int(self.batch.count[self.outcome == code].sum())
        decided = self.outcome <= LATE
        if self.why is None:
            rejected["range"] += int((self.batch.count - self.good_count)[decided].sum())
        else:
            bad = np.flatnonzero(~self.good & np.repeat(decided, self.batch.count))
            for reason, rows in self.reasons(bad):
                rejected[reason] += len(rows)
        for _, reason in self.batch.refused:
            rejected[reason] += 1
        return {reason: count for reason, count in rejected.items() if count}

    def reasons(self, rows: Integers) -> Iterator[tuple[str, Integers]]:
        """Yield `(reason, rows)` for the reports in these rows, all of which are rejected."""
        if self.why is None:
            yield "range", rows
            return
        codes = self.why[rows]
        for code in np.unique(codes).tolist():
            yield OUTCOMES[code], rows[codes == code]


def classify(
    context: Context,
    batch: ReportBatch,
    head: Head,
    *,
    arrived: Arrivals,
    partition: int,
    known_tokens: Tokens,
    witnessed: Sequence[int] = (),
) -> Classified:
    """Classify a batch, given the head that it continues and when its messages arrived.

    With `one_report`, `known_tokens` are the tokens that the partition has counted in open panes.
    With several witnesses, `witnessed` is that of the previous batch.
    """
    window, time_ms = context.window, batch.time_ms
    rows, tokens = context.spec.split(batch.payload)
    reports, good = context.spec.mechanism.decode(rows)
    outcome = np.full(len(time_ms), COUNTED, dtype=np.int64)
    latest_ms, arrived_ms = arrived.per_run(batch.message)
    outcome[time_ms > latest_ms + window.future_ms] = REJECTED["future"]
    outcome[time_ms % context.spec.precision_ms != 0] = REJECTED["precision"]
    outcome[(time_ms < window.earliest_ms) | (time_ms > window.latest_ms)] = REJECTED["time"]
    pane = window.panes_of(time_ms)
    classified = Classified(
        batch, outcome, pane, reports, good, head.clock, time_ms, arrived_ms, witnessed
    )
    if context.spec.one_report is not None:
        rule, most = context.spec.one_report, context.tokens_a_pane
        classified = _one_each(classified, rule, tokens, partition, known_tokens, most)
    if not len(time_ms):
        return classified
    moved = np.minimum(time_ms, arrived_ms)
    moves = np.where((outcome == COUNTED) & (classified.good_count > 0), moved, NEVER)
    if window.witnesses == 1:
        clocks = np.maximum.accumulate(np.concatenate(([head.clock], moves)))
    else:
        clocks, witnessed = _witness(window.witnesses, batch.message, moves, witnessed)
        clocks = np.maximum(clocks, head.clock)
    first_open = np.maximum(head.closed, window.panes_of(clocks[:-1] - window.grace_ms))
    outcome[(outcome == COUNTED) & (classified.pane < first_open)] = LATE
    if classified.why is not None:
        classified = _late_again(classified, classified.why)
    return replace(classified, clock=int(clocks[-1]), before=clocks[:-1], witnessed=witnessed)


def _witness(
    witnesses: int, message: Integers, moves: Integers, witnessed: Sequence[int]
) -> tuple[Integers, Sequence[int]]:
    """Return the watermark before each run and after all, int64 `(R + 1,)`, and `witnessed`.

    `message` and `moves`, int64 `(R,)`, are the runs' messages and how far each run moves the
    watermark. A message affects only the messages after it, as a whole.
    """
    starts = np.flatnonzero(np.concatenate(([True], message[1:] != message[:-1])))
    times, clocks = [*witnessed], []
    for time_ms in np.maximum.reduceat(moves, starts).tolist():
        clocks.append(times[0] if len(times) == witnesses else NEVER)
        if len(times) < witnesses:
            heappush(times, time_ms)
        else:
            heappushpop(times, time_ms)
    last = times[0] if len(times) == witnesses else NEVER
    before = np.repeat(clocks, np.diff(np.append(starts, len(moves))))
    return np.append(before, last).astype(np.int64), times


def _one_each(
    classified: Classified,
    rule: OneReport,
    tokens: NDArray[np.uint8],
    partition: int,
    known_tokens: Tokens,
    most: int,
) -> Classified:
    """Keep one good report for each token and pane, the first, and none of another partition's.

    A repeat is not counted, whatever happens to the first report: if that one is late, its pane has
    closed, and everything after it is late as well. For the same reason a late report may use up
    one of the `most` places of its pane.
    """
    batch, numbers = classified.batch, as_numbers(tokens)
    why = np.where(classified.good, COUNTED, REJECTED["range"])
    why[classified.good & (rule.partition(tokens) != partition)] = REJECTED["partition"]
    candidates = (why == COUNTED) & np.repeat(classified.outcome == COUNTED, batch.count)
    rows = np.flatnonzero(candidates)
    panes, of_rows = np.repeat(classified.pane, batch.count)[rows], numbers[rows]
    repeated = again(panes, of_rows) | known_tokens.repeated(panes, of_rows)
    why[rows[repeated]] = REJECTED["repeated"]
    why[rows[known_tokens.crowded(panes, of_rows, ~repeated, most)]] = REJECTED["crowded"]
    return replace(classified, good=why == COUNTED, why=why, tokens=numbers)


def _late_again(classified: Classified, why: Integers) -> Classified:
    """Make reports refused for their token late if their pane is closed: its tokens are gone."""
    late = np.repeat(classified.outcome == LATE, classified.batch.count)
    of_tokens = (why == REJECTED["repeated"]) | (why == REJECTED["crowded"])
    good = classified.good | (late & of_tokens)
    return replace(classified, good=good)


def count(cells: OwnedCells, work: Head, classified: Classified) -> Head:
    """Count a batch into the cells; return the head with the new watermark and numbers."""
    n = late = 0
    for pane, reports in classified.counted(classified.reports):
        cells.count(pane, reports)
        n += len(reports)
    if classified.tokens is not None:
        for pane, tokens in classified.counted(classified.tokens):
            cells.count_tokens(pane, tokens)
    for pane, few in classified.late().items():
        late += few
        # An expired pane has no totals any more: its late reports count only in the head.
        if pane >= work.expired:
            cells.late(pane, few)
    return replace(
        work,
        clock=classified.clock,
        n=work.n + n,
        late=work.late + late,
        rejected=dict(Counter(work.rejected) + Counter(classified.rejected())),
    )


@dataclass(frozen=True, eq=False)
class Buckets:
    """The number of reports in each bucket, int64 `(B + 1,)`, and the sum of their times in ms."""

    counts: Integers
    sum_ms: float = 0.0


_NO_LATENESS: Final = Buckets(np.zeros(len(LATENESS_MS) + 1, dtype=np.int64))
_NO_DELAY: Final = Buckets(np.zeros(len(DELAY_MS) + 1, dtype=np.int64))


@dataclass(frozen=True, eq=False)
class Delays:
    """Histograms of how late reports arrive, by which operators choose `grace`.

    The *lateness* of a counted or late report is the least grace with which it would have been
    counted: 0 until the watermark reaches the end of its pane, then the watermark's distance from
    that end. The *delay* of a report with a valid time is the time from its event to its arrival,
    negative if its device's clock is ahead, even if it is rejected for being too far ahead. Both
    are rounded up to the next bucket bound.
    """

    lateness: Buckets = _NO_LATENESS
    delay: Buckets = _NO_DELAY

    def __add__(self, other: "Delays") -> "Delays":
        """Return the sum of both."""
        pairs = (self.lateness, other.lateness), (self.delay, other.delay)
        return Delays(*(Buckets(a.counts + b.counts, a.sum_ms + b.sum_ms) for a, b in pairs))

    @classmethod
    def of(cls, classified: Classified, *, window: WindowSpec) -> Self:
        """Return the delays of a classified batch."""
        batch, outcome, good = classified.batch, classified.outcome, classified.good_count
        if not len(outcome):
            return cls()
        delay_ms = classified.arrived_ms - batch.time_ms
        rows = outcome <= LATE
        decided = rows | (outcome == REJECTED["future"])
        late_ms = np.maximum(classified.before - window.starts(classified.pane + 1) + 1, 0)
        return cls(
            lateness=_bucketed(LATENESS_MS, late_ms, np.where(rows, good, 0)),
            delay=_bucketed(DELAY_MS, delay_ms, np.where(decided, good, 0)),
        )


def _bucketed(bounds: tuple[int, ...], times_ms: Integers, reports: Integers) -> Buckets:
    where = np.searchsorted(_as_array(bounds), times_ms)
    counts = np.bincount(where, weights=reports, minlength=len(bounds) + 1)
    return Buckets(counts.astype(np.int64), float(np.dot(times_ms.astype(np.float64), reports)))


@cache
def _as_array(bounds: tuple[int, ...]) -> Integers:
    return np.array(bounds, dtype=np.int64)

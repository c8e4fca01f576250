"""How time passes in a partition: panes close, windows become final, and panes expire.

Everything here is decided in memory and takes effect with the head. Of the other partitions only
their winning heads count.

Rule 7. The clock is the watermark of the reports, and advances without them while the partition is
idle, or by an order to close. Only two things keep a partition from being idle: a report that this
state counts, and something unread. Messages that it has read and that leave its counts as they were
(refused, late, repeated, of another spec, without a value) decide nothing about its time, however
many come: a partition that has been read to its end is idle with them as it is without any.

1. It is idle when `UnbrokenProbes` have shown for a while that all of the source has been read and
   that nothing of it counted. It then follows the slowest partition that is not idle.
2. When all are idle, time advances from the largest watermark by the time since a report was last
   counted in any of them, less the idle time; nothing that ends a proof of idleness in between
   makes it fall behind. It never jumps to the wall clock: a pause in a replay of data from 2010
   must not close every window up to today.

No window closes over a report that is still unread, but for one that came since the last probe.
While a partition is idle, its last probe was sent at most `gap_ms` ago, and the end of the log that
it showed has been read. So an unread report is younger than that, or was hidden by a leader that
lagged behind. And panes close by no more than a watermark that another partition has reached, or
than the time of the last report and what has passed since, less the idle time, which is longer.

Rule 8.

1. A window is final when all its panes are closed in every partition's winning head, since nothing
   counted later can fall into it. The owner of partition 0 decides this from the winning heads and
   live cells of all partitions. By the same heads it first gathers the counts of closed panes,
   which the others hand over (rule 13, see `ldpstream.agents.state.view`), and groups panes into
   parts: a final contains only parts that end no later than its window, so that it is the same
   whenever it is decided. Windows wait until their panes are gathered, because the others may drop
   panes once all their windows are published.
2. Each final is stored as a cell. A window without reports gets none, unless retention may have
   deleted its reports.
3. It is published once the head that stores it has won.
4. The following head records this. After a takeover in between it is published again, with the
   same content.
5. A pane expires after the retention, once all windows that contain it are published.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import nsmallest
from typing import Final

from ldpstream.agents.state.cell_encoding import sum_chunks
from ldpstream.agents.state.close_orders import Control
from ldpstream.agents.state.context import Context
from ldpstream.agents.state.disclosure_groups import DisclosureGroup, DisclosureGroups
from ldpstream.agents.state.evaluation import Firsts
from ldpstream.agents.state.owner_cells import OwnedCells
from ldpstream.agents.state.records import Head
from ldpstream.agents.state.replica import (
    BehindError,
    Replica,
    behind,
    counted,
    expired,
    incomplete_panes,
)
from ldpstream.agents.state.view import final_totals, reports_about
from ldpstream.agents.state.windows import NEVER, WindowSpec, windows_with

_FINALS_BYTES: Final = 4 << 20
"""Finals stay in memory until they are published: above this size no more are decided."""
_GATHERED_BYTES: Final = 4 << 20
"""Gathered counts stay in memory until they are flushed: above this size no more are gathered."""


@dataclass(frozen=True)
class Publication:
    """A final to publish; times are epoch ms."""

    window_start_ms: int
    window_end_ms: int
    content: bytes


@dataclass(frozen=True)
class SeenHeads:
    """The heads of all partitions at one moment, reduced to what idle clocks need.

    Made once for all partitions that a worker owns, since each of them needs all the others.
    """

    heads: tuple[Head, ...]
    slowest: tuple[tuple[int, int], ...]
    """Clock and partition of the two slowest that are not idle, or fewer if there are fewer."""
    largest: int
    counted: int
    """How many reports all of them have counted."""

    @classmethod
    def of(cls, replicas: Iterable[Replica]) -> "SeenHeads":
        """Summarise the heads of all partitions; a replica not read to its end yet has none."""
        heads = tuple(replica.head for replica in replicas if replica.head is not None)
        busy = ((head.clock, p) for p, head in enumerate(heads) if not head.idle)
        largest = max((head.clock for head in heads), default=NEVER)
        return cls(heads, tuple(nsmallest(2, busy)), largest, sum(head.n for head in heads))

    def slowest_but(self, partition: int) -> int | None:
        """Return the smallest clock of the others that are not idle; None if all are idle."""
        return next((clock for clock, p in self.slowest if p != partition), None)


class UnbrokenProbes:
    """The end-of-log probes since a partition was loaded; times are ms of one monotonic clock.

    A fetch that was sent at a known time or later is a probe if no report that it brought has been
    counted. It need not be without records: with one foreign message a second, no fetch would be.
    Nor need it have brought all of them: the partition is not idle before the largest end that a
    fetch has shown has been read.

    A single probe proves little: a lagging new leader may report too low an end, and the answer is
    outdated once it arrives. So a partition is idle only after a series of probes in which each was
    sent at most `gap_ms` after the one before, the first at least an idle time ago, and the last at
    most `gap_ms` ago.

    What breaks the series is a report that is counted, another read session, or an error (which
    leaves a gap). Deliveries of known messages, ends seen earlier, and silence prove nothing.
    """

    def __init__(self, gap_ms: int) -> None:
        self._gap_ms = gap_ms
        self.series: tuple[int, int] | None = None
        """When the first and the last probe of the series were sent."""
        # Whether a report was counted since the last fetch, and when the fetch that brought one was
        # sent.
        self._counted = False
        self._counted_ms: int | None = None

    def counted(self) -> None:
        """Restart the series: a report was counted, of the fetch that `add_fetch` tells of next."""
        self._counted = True
        self.broken()

    def add_fetch(self, asked_ms: int | None) -> None:
        """Note a fetch with the time it was sent; None if not known, or if it proves nothing."""
        if self._counted:
            self._counted, self._counted_ms = False, asked_ms
        elif asked_ms is not None and (self._counted_ms is None or asked_ms > self._counted_ms):
            self.probed(asked_ms)

    def broken(self) -> None:
        """Restart the series: something was counted, or may have arrived unseen."""
        self.series = None

    def probed(self, asked_ms: int) -> None:
        """Add a probe; `asked_ms` is no later than the time at which its fetch was sent."""
        first, last = self.series or (asked_ms, asked_ms)
        unbroken = asked_ms - last <= self._gap_ms
        self.series = (first if unbroken else asked_ms), max(last, asked_ms)

    def last_for(self, idle_ms: int, *, now_ms: int) -> bool:
        """Return whether the series is at least `idle_ms` long and still current."""
        if self.series is None:
            return False
        first, last = self.series
        return now_ms - first >= idle_ms and now_ms - last <= self._gap_ms


class IdleClock:
    """Advances the clock of a partition, idle or not."""

    def __init__(self, window: WindowSpec, partition: int) -> None:
        self._window = window
        self._partition = partition
        # From this clock on time advances, beginning at a time, while all partitions are idle.
        self._start, self._begin_ms = NEVER, 0
        self._counted = -1
        self._closed_at_ms: int | None = None

    def advance(
        self,
        work: Head,
        heads: SeenHeads,
        controls: Iterable[Control],
        *,
        idle: bool,
        now_ms: int,
    ) -> Head:
        """Return the next head with its clock advanced; the same head if nothing changed.

        Call it at every step: elapsed time counts from the step that first saw the last report.
        """
        window, p = self._window, self._partition
        orders = [c.until_ms + window.grace_ms for c in controls if work.next >= c.ends.get(p, 0)]
        clock = max([work.clock, *orders])
        elapsed = self._elapsed(clock, work, heads, now_ms)
        if idle:
            slowest = heads.slowest_but(p)
            clock = max(clock, elapsed if slowest is None else slowest)
        closed = work.closed
        if clock != self._closed_at_ms:
            self._closed_at_ms, closed = clock, max(closed, window.closed(clock))
        if (idle, clock, closed) == (work.idle, work.clock, work.closed):
            return work
        return replace(work, idle=idle, clock=clock, closed=closed)

    def _elapsed(self, own_clock: int, work: Head, heads: SeenHeads, now_ms: int) -> int:
        """Return the time that all partitions have reached if all are idle.

        Before the first watermark, time stands still.
        """
        largest = max(own_clock, heads.largest)
        if largest == NEVER:
            return NEVER
        counted = heads.counted - heads.heads[self._partition].n + work.n
        if counted != self._counted:
            # A report that was sent with the last one may take until a partition would be idle.
            idle_ms = self._window.idle_ms or 0
            self._counted, self._start, self._begin_ms = counted, largest, now_ms + idle_ms
        elapsed = self._start + max(0, now_ms - self._begin_ms)
        if largest <= elapsed:
            return elapsed
        # The owner of another partition, or an order to close, is ahead.
        self._start, self._begin_ms = largest, max(now_ms, self._begin_ms)
        return largest


def store_finals(
    context: Context,
    cells: OwnedCells,
    work: Head,
    replicas: Sequence[Replica],
    heads: Sequence[Head],
) -> Head:
    """Add to partition 0's cells what follows from all heads; return the head including it.

    `replicas` and `heads` are those of all partitions that this worker knows.
    """
    partitions = max(work.partitions, len(heads))
    work = replace(work, partitions=partitions)
    if len(heads) < partitions or behind(replicas):
        return work
    # 1. Partition 0 takes over the counts of panes that all partitions have closed. What follows
    # waits for it: the others drop published panes by their own clock, gathered or not.
    closed = min(head.closed for head in heads)
    if partitions > 1:
        if closed > work.gathered:
            work = gather(context, cells, work, replicas, closed)
        closed = min(closed, work.gathered)
    # 2. Panes become groups; an answer has all reports of a group or none.
    if context.minimum > 1:
        work = store_parts(context, cells, work, replicas, closed)
    # 3. Windows become final.
    end = context.window.final(closed)
    if end <= work.final or cells.finals_bytes >= _FINALS_BYTES:
        return work
    final, contents = _decide(context, replicas, work.final, end, cells.parts)
    for window, content in contents:
        cells.final(window, content)
    # Windows without finals need not be published.
    nothing = work.published == work.final and not contents
    return replace(work, final=final, published=final if nothing else work.published)


def gather(
    context: Context,
    cells: OwnedCells,
    work: Head,
    replicas: Sequence[Replica],
    end: int,
) -> Head:
    """Add to partition 0's cells the counts of the panes below `end`; return the head with them.

    `replicas` are those of all partitions, whose winning heads have closed these panes.
    """
    first, gone = max(work.gathered, work.expired), work.gone
    for place, pane in enumerate(sorted(counted(replicas[1:], first, end))):
        if place == context.finals_a_step or cells.full or cells.encoded_bytes >= _GATHERED_BYTES:
            end = pane
            break
        gone -= _gather_pane(context, cells, replicas, pane)
    return replace(work, gathered=end, gone=gone)


def _gather_pane(
    context: Context, cells: OwnedCells, replicas: Sequence[Replica], pane: int
) -> int:
    """Add up a pane; return how many reports partition 0 takes over from the others."""
    chunks: dict[int, list[bytes]] = {}
    for replica in replicas:
        for number, value in replica.chunks(pane):
            chunks.setdefault(number, []).append(value)
    totals = [replica.totals(pane) for replica in replicas]
    return cells.gather(
        pane,
        n=sum(count.n for count in totals),
        total=sum(count.sum for count in totals),
        chunks={
            number: sum_chunks(values, context.chunk_length(number))
            for number, values in chunks.items()
        },
    )


def store_parts(
    context: Context,
    cells: OwnedCells,
    work: Head,
    replicas: Sequence[Replica],
    end: int,
) -> Head:
    """Add to partition 0's cells the groups that are complete; return the head including them.

    `replicas` are those of all partitions, whose winning heads have closed the panes below `end`.
    """
    oldest = expired(replicas)
    if end <= max(oldest, cells.examined):
        return work
    # Panes that are closed everywhere never change, so they need not be examined again.
    cells.examined, grouped = end, work.grouped
    firsts = [max(groups.last_end(end), oldest) for groups in cells.parts]
    about = sorted(reports_about(context, replicas, min(firsts), end).items())
    for attribute, first in enumerate(firsts):
        reports = [(pane, n[attribute], sum(n)) for pane, n in about if pane >= first]
        for group in make_parts(context.minimum, reports):
            cells.add_part(group, attribute)
            grouped = max(grouped, group.end)
    if grouped == work.grouped:
        return work
    cells.drop(Firsts(releases=grouped))
    return replace(work, grouped=grouped)


def make_parts(minimum: int, reports: Iterable[tuple[int, int, int]]) -> Iterator[DisclosureGroup]:
    """Yield the groups of an attribute, given the closed panes with reports in order.

    Each of these is `(pane, reports about the attribute, reports about all)`.
    """
    first, n, all_n = None, 0, 0
    for pane, more, all_more in reports:
        first, n, all_n = pane if first is None else first, n + more, all_n + all_more
        if n >= minimum:
            yield DisclosureGroup(first, pane + 1, all_n)
            first, n, all_n = None, 0, 0


def _decide(
    context: Context,
    replicas: Sequence[Replica],
    final: int,
    end: int,
    groups: Sequence[DisclosureGroups],
) -> tuple[int, list[tuple[int, bytes]]]:
    """Decide windows in `[final, end)`, at most `context.finals_a_step` of them with reports.

    Returns the first window not decided, and the new finals' contents by window. `replicas` are
    those of all partitions that finals wait for, all of which have closed the panes of these
    windows. `groups` must be complete for them.
    """
    window = context.window
    first, last = window.first_pane(final), window.closing(end)
    panes = counted(replicas, first, last).keys() | incomplete_panes(replicas, first, last)
    contents: list[tuple[int, bytes]] = []
    for number in windows_with(window, sorted(panes), first=final):
        if number >= end:
            break
        if len(contents) == context.finals_a_step:
            return number, contents
        try:
            totals = final_totals(context, replicas, groups, *window.span(number))
        except BehindError:
            # A changelog reader that has started over is catching up.
            return number, contents
        contents.append((number, context.make_final(totals)))
    return end, contents


def hand_over(cells: OwnedCells, work: Head, merged: int) -> Head:
    """Drop from the cells of another partition what partition 0 has gathered; return the head."""
    gone = work.gone + cells.hand_over(merged)
    return replace(work, gathered=merged, gone=gone)


def expire(cells: OwnedCells, work: Head, first: int) -> Head:
    """Drop the panes below `first` from the cells; return the head including that."""
    gone = work.gone + cells.drop(Firsts(kept=first, releases=first, late=first))
    gaps = tuple(gap for gap in work.gaps if gap.last >= first)
    return replace(work, expired=first, gone=gone, gaps=gaps)

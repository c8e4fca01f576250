"""Rule 7: how a partition's clock goes on when nothing comes.

Everything here is decided in memory and becomes real with the head; of the other partitions only
what their winning heads say counts.

A partition is idle when end-of-log probes have shown for a while that all of the source has been
read (`agents/partition/probes.py`). An idle partition follows the slowest partition that is not
idle. When all are idle, time goes on from the largest watermark by the time elapsed, and never
jumps to the clock on the wall: a pause in a replay of 2010 must not close everything up to today.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import nsmallest
from typing import Final

from ldpstream.agents.state.records import Head
from ldpstream.agents.state.tail import Tail
from ldpstream.agents.state.windows import NEVER, WindowSpec
from ldpstream.mechanisms.base.times import EARLIEST_MS, LATEST_MS

ORDERS: Final = 64
"""How many orders wait for the source to be read up to where it ended when they were given."""


@dataclass(frozen=True)
class Control:
    """An operator's `close`: closes all panes up to `until_ms` (epoch ms).

    It applies to a partition once the source has been read up to its end offset of that moment,
    `ends`; to a partition added later at once.
    """

    until_ms: int
    ends: Mapping[int, int]


@dataclass(frozen=True)
class SeenHeads:
    """The heads of all partitions at one moment, and what idle clocks ask of them.

    Made once for all partitions that a worker owns: each of them asks about all the others.
    """

    heads: tuple[Head, ...]
    slowest: tuple[tuple[int, int], ...]
    """Clock and partition of the two slowest that are not idle, or of as many as there are."""
    largest: int

    @classmethod
    def of(cls, heads: Iterable[Head]) -> "SeenHeads":
        """Return what these heads say, by partition."""
        all_heads = tuple(heads)
        busy = ((head.clock, p) for p, head in enumerate(all_heads) if not head.idle)
        largest = max((head.clock for head in all_heads), default=NEVER)
        return cls(all_heads, tuple(nsmallest(2, busy)), largest)

    def slowest_but(self, partition: int) -> int | None:
        """Return the smallest clock of the others that are not idle, None where all are."""
        return next((clock for clock, p in self.slowest if p != partition), None)


def see_heads(tails: Sequence[Tail], known_partitions: int) -> SeenHeads:
    """Return the heads of so many partitions; fewer where a tail has not been at its end yet."""
    return SeenHeads.of(tail.head for tail in tails[:known_partitions] if tail.head is not None)


class IdleClock:
    """What the clock of a partition says, idle or not."""

    def __init__(self, window: WindowSpec, partition: int) -> None:
        self._window = window
        self._partition = partition
        self._follow: tuple[int, int] | None = None

    def advance(
        self,
        work: Head,
        seen: SeenHeads,
        controls: Iterable[Control],
        *,
        idle: bool,
        now_ms: int,
    ) -> Head:
        """Return the head in the making with time gone on; the same where nothing changed.

        Call it at every step: the time elapsed counts from the moment at which all partitions were
        first seen idle.
        """
        window = self._window
        clock = max(work.clock, control_clock(window, controls, self._partition, work.next))
        if idle:
            clock = self._follow_others(clock, seen, now_ms)
        else:
            self._follow = None
        closed = max(work.closed, window.closed(clock))
        if (idle, clock, closed) == (work.idle, work.clock, work.closed):
            return work
        return replace(work, idle=idle, clock=clock, closed=closed)

    def _follow_others(self, own: int, seen: SeenHeads, now_ms: int) -> int:
        """Return the clock of an idle partition: its `own`, or what it reads off all heads."""
        slowest = seen.slowest_but(self._partition)
        if slowest is not None:
            self._follow = None
            return max(own, slowest)
        largest = max(own, seen.largest)
        start, since_ms = self._follow or (NEVER, now_ms)
        if start == NEVER or largest > start + now_ms - since_ms:
            # A watermark that is ahead leads from now on; before the first one no time goes on.
            start, since_ms = self._follow = largest, now_ms
        return NEVER if start == NEVER else start + now_ms - since_ms


def outstanding(
    window: WindowSpec, controls: Iterable[Control], heads: Sequence[Head | None]
) -> list[Control]:
    """Return the orders that not all partitions' winning heads include, in order.

    The others change nothing any more, whoever loads a partition. A head is None where its log has
    not been read to its end.
    """

    def included(control: Control, partition: int, head: Head | None) -> bool:
        if head is None or head.next < control.ends.get(partition, 0):
            return False
        return head.clock >= control_clock(window, (control,), partition, head.next)

    return [
        control
        for control in controls
        if not all(included(control, partition, head) for partition, head in enumerate(heads))
    ]


def newest(controls: Sequence[Control]) -> list[Control]:
    """Return orders, oldest first, with the oldest of more than ORDERS taken together.

    What two of them order is closed once both apply: later than ordered, and nothing else. So
    whoever gives any number of orders that never apply keeps neither memory nor a newer order.
    """
    found = list(controls)
    while len(found) > ORDERS:
        first, second, *others = found
        ends = {
            partition: max(first.ends.get(partition, 0), second.ends.get(partition, 0))
            for partition in first.ends.keys() | second.ends.keys()
        }
        found = [Control(max(first.until_ms, second.until_ms), ends), *others]
    return found


def control_clock(
    window: WindowSpec, controls: Iterable[Control], partition: int, following: int
) -> int:
    """Return the clock that closes what the operators ordered closed; NEVER where nothing is.

    `following` is the next offset of the partition.
    """
    untils = [c.until_ms for c in controls if following >= c.ends.get(partition, 0)]
    if not untils:
        return NEVER
    return min(max(*untils, EARLIEST_MS), LATEST_MS) + window.grace_ms

"""Rule 7: how a partition's clock goes on when nothing comes.

Everything here is decided in memory and becomes real with the head; of the other partitions only
what their winning heads say counts.

A partition is idle when all of the source has been read and nothing came for a while. An idle
partition follows the slowest partition that is not idle. When all are idle, time goes on from the
largest watermark by the time elapsed, and never jumps to the clock on the wall: a pause in a replay
of 2010 must not close everything up to today.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ldpstream.agents.records import Head
from ldpstream.agents.windows import NEVER, WindowSpec
from ldpstream.mechanisms.times import EARLIEST_MS, LATEST_MS


@dataclass(frozen=True)
class Control:
    """An operator's `close`: closes all panes up to `until_ms` (epoch ms).

    It applies to a partition once the source has been read up to its end offset of that moment,
    `ends`; to a partition added later at once.
    """

    until_ms: int
    ends: Mapping[int, int]


class IdleClock:
    """Whether a partition is idle, and what its clock then says."""

    def __init__(self, window: WindowSpec, *, now_ms: int) -> None:
        self._idle_ms = window.idle_ms
        self._quiet_ms = now_ms
        self._follow: tuple[int, int] | None = None

    def restart(self, *, now_ms: int) -> None:
        """Begin the idle time anew: something came, or may have come unseen."""
        self._quiet_ms = now_ms

    def idle(self, *, following: int, end_offset: int | None, now_ms: int) -> bool:
        """Return whether the partition whose next offset is `following` is idle.

        `end_offset` is the source's; None where it is not known, since fetches fail.
        """
        if self._idle_ms is None or end_offset is None or following < end_offset:
            return False
        return now_ms - self._quiet_ms >= self._idle_ms

    def clock(self, partition: int, own: int, heads: Sequence[Head], *, now_ms: int) -> int:
        """Return the clock of an idle partition: its `own`, or what it reads off all heads.

        Call it at every step at which it is idle, and `busy` at the others: the time elapsed counts
        from the moment at which all partitions were first seen idle.
        """
        busy = [head.clock for p, head in enumerate(heads) if p != partition and not head.idle]
        if busy:
            self._follow = None
            return max(own, min(busy))
        largest = max(own, *(head.clock for head in heads))
        start, since_ms = self._follow or (NEVER, now_ms)
        if start == NEVER or largest > start + now_ms - since_ms:
            # A watermark that is ahead leads from now on; before the first one no time goes on.
            start, since_ms = self._follow = largest, now_ms
        return NEVER if start == NEVER else start + now_ms - since_ms

    def busy(self) -> None:
        """Note that the partition is not idle."""
        self._follow = None


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

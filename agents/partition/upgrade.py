"""Rule 14, the writing side: in which format an owner writes, and what its heads say they read."""

from collections.abc import Sequence
from dataclasses import replace

from ldpstream.agents.partition.clock import UnbrokenProbes
from ldpstream.agents.state.context import Context
from ldpstream.agents.state.records import Head
from ldpstream.agents.state.replica import Replica


def begin_format(context: Context, head: Head, replicas: Sequence[Replica]) -> Head:
    """Return the head that a new owner continues from, with its format and what the owner reads.

    A state without any head is new: the replicas of all partitions should have been read.
    """
    heads = [replica.head for replica in replicas if replica.head is not None]
    begun = max((one.format for one in heads if one.seq), default=context.format)
    return replace(head, format=max(head.format, begun), reads=context.format)


def reads_less(stored: Head, work: Head) -> bool:
    """Return whether to write at once that an owner reads less, since a switch may come."""
    return work.format < stored.reads > work.reads


def reads_more(stored: Head, work: Head) -> bool:
    """Return whether to write that an owner reads more, because a switch waits for it."""
    return work.format < work.reads > stored.reads


class FormatSwitch:
    """Decides in which format the owner of a partition writes next.

    Partition 0's owner raises it once all heads have said for long enough that their writers read a
    newer one. If the process was suspended in between, this time starts again, because another
    owner may have written meanwhile.
    """

    def __init__(self, context: Context, partition: int) -> None:
        self._context = context
        self._partition = partition
        self._readable = 0
        self._looks = UnbrokenProbes(context.gap_ms)

    def look(self, work: Head, heads: Sequence[Head], *, now_ms: int) -> tuple[Head, bool]:
        """Return the next head in its format, and whether this is a switch, to be written at once.

        `heads` are the winning heads of all known partitions. The owners of other partitions follow
        partition 0's head with their next write.
        """
        if self._partition and heads[0].format > work.format:
            return replace(work, format=heads[0].format), False
        if self._partition or work.format >= self._context.format:
            return work, False
        readable = min(self._context.format, *(head.reads for head in heads))
        if readable != self._readable or len(heads) < work.partitions:
            self._readable = readable
            self._looks.broken()
        self._looks.probed(now_ms)
        long_enough = self._looks.last_for(self._context.switch_ms, now_ms=now_ms)
        if readable <= work.format or not long_enough:
            return work, False
        return replace(work, format=readable), True

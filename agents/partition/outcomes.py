"""What a partition produces: flushes to send, their winners, and finals to publish."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Self

from ldpstream.agents.partition.copies import Copy
from ldpstream.agents.partition.delays import Delays
from ldpstream.agents.state.records import Head


@dataclass(frozen=True)
class Flush:
    """What to send: copies and cells at once, then the head when all of them are acknowledged.

    `cells` and `head` are `(key, value)` of the changelog; `next` is the source offset to commit
    once the head has won.
    """

    copies: tuple[Copy, ...]
    cells: tuple[tuple[bytes, bytes], ...]
    head: tuple[bytes, bytes]
    next: int


class Settled(Enum):
    """Who won the flush in flight: not known yet, this owner, or another one."""

    WAITING = "waiting"
    WON = "won"
    LOST = "lost"


@dataclass(frozen=True)
class Publication:
    """A final to publish; times are epoch ms."""

    window_start_ms: int
    window_end_ms: int
    content: bytes


@dataclass(frozen=True)
class Outcome:
    """What a winning head added to the partition's counters, and how late these reports came."""

    counted: int
    late: int
    rejected: Mapping[str, int]
    lost_offsets: int
    delays: Delays = field(default_factory=Delays)

    @classmethod
    def between(cls, before: Head, after: Head, delays: Delays) -> Self:
        """Return the difference between two heads, given the delays of the reports between them."""
        rejected = {
            reason: count - before.rejected.get(reason, 0)
            for reason, count in after.rejected.items()
        }
        return cls(
            counted=after.n - before.n,
            late=after.late - before.late,
            rejected={reason: count for reason, count in rejected.items() if count},
            lost_offsets=after.lost - before.lost,
            delays=delays,
        )

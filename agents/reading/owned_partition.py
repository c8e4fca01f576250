"""A partition that a worker holds: its state, the bookkeeping around it, and who is told."""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from ldpstream.agents.partition.flushes import Outcome
from ldpstream.agents.partition.partition import Partition
from ldpstream.agents.reading.source import Batch, Outside


@dataclass
class OwnedPartition:
    """A loaded partition. Times are on the monotonic clock, in seconds."""

    state: Partition
    session: int = 0
    """The session in which the source is read."""
    waiting: "deque[tuple[Callable[[OwnedPartition, Batch | Outside], None], Batch | Outside]]" = (
        field(default_factory=deque)
    )
    """What arrived while the partition was full, with the method that takes it."""
    missed: int = 0
    """How many times in a row delivered slices were found neither in the channel nor taken."""
    short_since: float | None = None
    """Since when the source has ended before its next offset."""
    flushed: float = 0.0
    """When its last flush began."""
    flight: "asyncio.Task[None] | None" = None
    """The flush under way."""
    timer: asyncio.TimerHandle | None = None
    """The scheduled next flush."""
    leaving: bool = False
    """Whether it is about to be dropped: no more flushes begin."""
    read: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when its replica has been evaluated."""

    @property
    def partition(self) -> int:
        """The partition's number."""
        return self.state.partition


class Owner(Protocol):
    """Who holds partitions, and is told what happens to them: an engine."""

    def fail(self, problem: str) -> None:
        """Stop for good: only an operator can fix this problem."""

    def took(self, held: OwnedPartition) -> None:
        """Note that something has been taken in that the next flush may write."""

    def won(self, held: OwnedPartition, following: int, outcome: Outcome, seconds: float) -> None:
        """Note a flush that won: the next offset, what it added, and the seconds that it took."""

    def lost(self, held: OwnedPartition, *, refused: bool = False) -> None:
        """Drop a partition that another owner has written to, or whose flush was refused."""

"""A partition that a worker holds: its state, the bookkeeping around it, and who is told."""

import asyncio
from dataclasses import dataclass, field
from typing import Protocol

from ldpstream.agents.partition.flushes import Outcome
from ldpstream.agents.partition.partition import Partition
from ldpstream.agents.reading.source import Session


@dataclass
class Frames:
    """How far the frames topic of a partition has been read, and what its packers do."""

    session: Session | None = None
    """The session in which it is read."""
    hole: int | None = None
    """The offset of the source up to which something is missing before the next message."""
    hole_since: float = 0.0
    at_end: bool = False
    """Whether all of it has been read."""
    unknown: float | None = None
    """Since when the broker has reported it as unknown."""
    packed: int | None = None
    """The source offset up to which the last packed message went; None before the first."""
    heard: float = 0.0
    """When packed messages last brought something new, or were about to."""
    own: float = 0.0
    """When a report or a rejection of this state was last taken in, from whichever topic."""
    decided: int = 0
    """How many had been then."""

    def note_own(self, now: float, decided: int) -> None:
        """Note how many reports and rejections of this state have been taken in by now."""
        if decided > self.decided:
            self.own = now
        self.decided = decided


@dataclass
class OwnedPartition:
    """A loaded partition. Times are on the monotonic clock, in seconds."""

    state: Partition
    session: Session | None = None
    """The session in which the source is read."""
    frames: Frames = field(default_factory=Frames)
    """The same of packed messages."""
    flushed: float = 0.0
    """When its last flush began."""
    flight: "asyncio.Task[None] | None" = None
    """The flush under way."""
    timer: asyncio.TimerHandle | None = None
    """The scheduled next flush."""
    leaving: bool = False
    """Whether it is about to be dropped, or has been: neither flushes nor reading begin."""
    read: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when its replica has been evaluated."""

    @property
    def partition(self) -> int:
        """The partition's number."""
        return self.state.partition

    @property
    def decided(self) -> int:
        """How many reports and messages its state has decided, without those of other specs."""
        head = self.state.work
        return head.n + head.late + sum(head.rejected.values())


class Owner(Protocol):
    """Who holds partitions, and is told what happens to them: an engine."""

    def fail(self, problem: str) -> None:
        """Stop for good: only an operator can fix this problem."""

    def took(self, held: OwnedPartition) -> None:
        """Note that something has been taken in that the next flush may write."""

    def won(self, held: OwnedPartition, outcome: Outcome, seconds: float) -> None:
        """Note a flush that won: what it added, and the seconds that it took."""

    def lost(self, held: OwnedPartition, *, refused: bool = False) -> None:
        """Drop a partition that another owner has written to, or whose flush was refused."""

"""A partition that a worker holds: its state, and what the shell knows beside it."""

import asyncio
from dataclasses import dataclass, field

from ldpstream.agents.state.partition import Partition


@dataclass
class Held:
    """A loaded partition. Moments are on the monotonic clock, in seconds."""

    state: Partition
    heard: float
    """When the stream last delivered anything of it."""
    flushed: float = 0.0
    """When its last flush began."""
    flight: "asyncio.Task[None] | None" = None
    """The flush under way."""
    wanted: int = 0
    """It has to be read without a group at least up to this offset."""
    behind: bool = False
    """It is read without a group to the end of the log, while the stream is held."""
    ended: tuple[int, int] | None = None
    """At which offset the source ended when its end was last read, and when that was (epoch ms)."""
    short_since: float | None = None
    """Since when the source has ended before its next offset."""

    read: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when its tail has been evaluated."""

    @property
    def partition(self) -> int:
        """Its number."""
        return self.state.partition

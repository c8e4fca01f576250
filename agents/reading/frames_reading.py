"""Track how far packed messages have been read, and when to read the source itself instead."""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from ldpstream.agents.partition.partition import Partition

GONE_SECONDS: Final = 60.0


class Due(Enum):
    """Which part of the source to read now, in addition to packed messages."""

    NOTHING = "nothing"
    END = "end"
    """Only its end; messages are left to the packer for a while."""
    ALL = "all"
    """Its messages, from the next offset on."""


@dataclass
class Reading:
    """How far the frames topic of one held partition has been read.

    Times are on the monotonic clock, in seconds.
    """

    heard: float
    """When packed messages last brought something new, or were about to."""
    own: float
    """When a report or a rejection of this state was last taken in, from whichever topic."""
    unpacked: float | None = None
    """Since when the source has been known to hold messages that were in no packed message."""
    probing: bool = False
    """Whether only the end of the source is read."""
    packed: int | None = None
    """The source offset up to which the last packed message went; None before the first."""
    hole: int | None = None
    """The offset, in the frames topic, of the message before which something is missing."""
    after: int = 0
    """The offset of the source at which that message begins."""
    since: float = 0.0
    """When that was noticed, or when the frames topic was first seen to end before our position."""
    short: bool = False
    session: int = 0
    """The session in which the frames topic is read."""
    at_end: bool = False
    """Whether all of the frames topic has been read."""
    unknown: float | None = None
    """Since when the broker has reported the frames topic as unknown."""

    def hear(self, now: float) -> None:
        """Note that packed messages advance the partition, or soon will."""
        self.heard, self.unpacked = now, None

    def read(self, now: float, *, known: bool) -> bool:
        """Return whether the frames topic has nothing more to offer.

        True when all of it has been read, or when the broker has not known it for a minute: by then
        it has been deleted.
        """
        self.unknown = None if known else (now if self.unknown is None else self.unknown)
        gone = self.unknown is not None and now - self.unknown > GONE_SECONDS
        return self.at_end or gone

    def due(self, now: float, *, silent_seconds: float) -> Due:
        """Return what to read of the source.

        After a third of `silent_seconds` without packed messages the source's end is checked; if it
        has new messages, the packer has the other two thirds to pack them. So silence alone does
        not count against a packer, and a packer that is down is still noticed after
        `silent_seconds`.
        """
        foreign = now - self.own > silent_seconds
        quiet = now - self.heard > silent_seconds / 3
        if self.hole is not None or (foreign and not quiet):
            return Due.ALL
        if self.unpacked is not None:
            waited = now - self.unpacked > silent_seconds * 2 / 3
            return Due.ALL if waited else Due.NOTHING
        return Due.END if quiet else Due.NOTHING


def decided_by(state: Partition) -> int:
    """Return how many reports and messages a state has decided, without those of other specs."""
    head = state.work
    return head.n + head.late + sum(head.rejected.values())

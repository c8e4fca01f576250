"""How far the reading of packed messages has come, and when the source has to be read itself."""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from ldpstream.agents.partition.partition import Partition

GONE_SECONDS: Final = 60.0


class Due(Enum):
    """What of the source is to be read now, beside what has been packed."""

    NOTHING = "nothing"
    END = "end"
    """Where it ends: what comes is left to the packer for a while."""
    ALL = "all"
    """Its messages, from the next offset on."""


@dataclass
class Reading:
    """How far the frames topic of one held partition has been read.

    Moments are on the monotonic clock, in seconds.
    """

    heard: float
    """When packed messages last brought something new, or were near to it."""
    own: float
    """When a report or a rejection of this state was last taken in, from whichever topic."""
    unpacked: float | None = None
    """Since when the source has been known to hold messages that no packed message has brought."""
    probing: bool = False
    """Whether the source is read for its end only."""
    packed: int | None = None
    """Up to which offset of the source, by the last packed message; None before the first."""
    hole: int | None = None
    """The offset, in the frames topic, of the message before which something is missing."""
    after: int = 0
    """The offset of the source at which that message begins."""
    since: float = 0.0
    """When that was noticed, or the frames topic first seen to end before our place in it."""
    short: bool = False
    session: int = 0
    """The session in which the frames topic is read."""
    at_end: bool = False
    """Whether all of the frames topic has been read."""
    unknown: float | None = None
    """Since when the broker has been seen not to know the frames topic."""

    def hear(self, now: float) -> None:
        """Note that packed messages bring the partition on, or soon will."""
        self.heard, self.unpacked = now, None

    def read(self, now: float, *, known: bool) -> bool:
        """Return whether nothing more is to be had from the frames topic.

        That is when all of it has been read, or when the broker has not known it for a minute, by
        which time it has been deleted and has no place in which anything could come.
        """
        self.unknown = None if known else (now if self.unknown is None else self.unknown)
        gone = self.unknown is not None and now - self.unknown > GONE_SECONDS
        return self.at_end or gone

    def due(self, now: float, *, silent_seconds: float) -> Due:
        """Return what of the source is to be read.

        After a third of `silent_seconds` without packed messages it is looked at, and when
        something is in it, the packer has the other two thirds. So a silence by itself says nothing
        against a packer, and one that is down is noticed as soon as before.
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
    """Return how many reports and messages a state has decided: it passes over those of others."""
    head = state.work
    return head.n + head.late + sum(head.rejected.values())

"""What has been won: told to the metrics at once, and to the consumer group every second."""

import asyncio
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Final, Protocol

from aiokafka import TopicPartition

from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.metrics import Metrics
from ldpstream.agents.partition.outcomes import Outcome
from ldpstream.agents.reading.pace import paced

_EVERY_SECONDS: Final = 1.0
_MOST_SECONDS: Final = 5.0


class Group(Protocol):
    """The consumer group, as far as a pipeline needs it."""

    async def commit(self, offsets: Mapping[TopicPartition, int]) -> bool:
        """Tell the group how far partitions have been counted; False if that did not work."""

    def silence(self, partitions: AbstractSet[TopicPartition]) -> None:
        """Let its own client fetch nothing of partitions that have just been assigned."""

    async def leave(self) -> bool:
        """Leave the group for now, with all that is read in it; False where it did not work."""

    async def come_back(self) -> bool:
        """Join the group again after `leave`; False where it did not work."""


class Progress:
    """Passes on what heads have won.

    Commits are for the group's view alone: a lost one costs nothing but an apparent lag.
    """

    def __init__(self, group: Group, metrics: Metrics) -> None:
        self._group = group
        self._metrics = metrics
        self._commits: dict[TopicPartition, int] = {}

    def won(
        self,
        collection: CollectionConfig,
        partition: int,
        following: int,
        outcome: Outcome,
        seconds: float,
        *,
        accepted: bool = False,
    ) -> None:
        """Take what a head has won: the next offset, what it added, and how long it took.

        The group's view of progress is that of the collection's own spec.
        """
        if not accepted:
            self._commits[TopicPartition(collection.topics.source, partition)] = following
        self._metrics.won(
            collection.name,
            counted=outcome.counted,
            late=outcome.late,
            rejected=outcome.rejected,
            lost_offsets=outcome.lost_offsets,
            delays=outcome.delays,
            accepted=collection.spec.fingerprint.hex() if accepted else None,
        )
        self._metrics.flushed(collection.name, seconds=seconds)

    async def commit(self) -> None:
        """Commit what has been won since the last time, and what could not be committed then."""
        commits, self._commits = self._commits, {}
        if commits and not await self._group.commit(commits):
            # It may be long until more is won there: all the while it would look as if it lagged.
            self._commits = commits | self._commits

    def assigned(self, partitions: AbstractSet[TopicPartition]) -> None:
        """Leave it to their owners to commit all partitions but these."""
        self._commits = {p: offset for p, offset in self._commits.items() if p in partitions}

    async def run(self) -> None:
        """Commit until cancelled."""
        while True:
            await asyncio.sleep(paced(_EVERY_SECONDS, len(self._commits), most=_MOST_SECONDS))
            await self.commit()

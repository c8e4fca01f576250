"""Report won heads: to the metrics at once, and to the consumer group every second."""

import asyncio
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Final, Protocol

from aiokafka import TopicPartition

from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.metrics import Metrics
from ldpstream.agents.partition.flushes import Outcome
from ldpstream.agents.reading.interval import scaled_interval

_EVERY_SECONDS: Final = 1.0
_MOST_SECONDS: Final = 5.0


class Group(Protocol):
    """The consumer group, as far as a pipeline uses it."""

    async def commit(self, offsets: Mapping[TopicPartition, int]) -> bool:
        """Commit how far partitions have been counted; return False if that failed."""

    def silence(self, partitions: AbstractSet[TopicPartition]) -> None:
        """Keep Faust's own client from fetching partitions that have just been assigned."""

    async def leave(self) -> bool:
        """Leave the group for now, with everything read in it; return False if that failed."""

    async def come_back(self) -> bool:
        """Rejoin the group after `leave`; return False if that failed."""


class Progress:
    """Reports what heads have won.

    Commits are for tools that watch the group only: a lost commit causes nothing but an apparent
    lag.
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
        """Report a won head: the next offset, what it added, and the seconds that the flush took.

        The offsets committed are those of the collection's own spec.
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
        """Commit what has been won since the last commit, and what could not be committed then."""
        commits, self._commits = self._commits, {}
        if commits and not await self._group.commit(commits):
            # The next head may be long in coming, and meanwhile this partition would seem to lag.
            self._commits = commits | self._commits

    def assigned(self, partitions: AbstractSet[TopicPartition]) -> None:
        """Stop committing all other partitions: their owners do."""
        self._commits = {p: offset for p, offset in self._commits.items() if p in partitions}

    async def run(self) -> None:
        """Commit until cancelled."""
        while True:
            await asyncio.sleep(
                scaled_interval(_EVERY_SECONDS, len(self._commits), most=_MOST_SECONDS)
            )
            await self.commit()

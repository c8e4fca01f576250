"""What has been won: told to the metrics at once, and to the consumer group every second."""

import asyncio
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import Final, Protocol

from aiokafka import TopicPartition

from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.metrics import Metrics
from ldpstream.agents.reading.pace import paced
from ldpstream.agents.state.outcomes import Outcome

_EVERY_SECONDS: Final = 1.0
_MOST_SECONDS: Final = 5.0


class Stream(Protocol):
    """What delivers messages, and keeps the group's view of progress."""

    async def commit(self, offsets: Mapping[TopicPartition, int]) -> bool:
        """Tell the group how far partitions have been counted; False if that did not work."""

    async def ends(self) -> Mapping[TopicPartition, int]:
        """Return where partitions end, as far as the stream's fetches have told."""

    def hold(self, partition: TopicPartition) -> None:
        """Let nothing come of a partition for now."""

    async def release(self, partition: TopicPartition, offset: int) -> None:
        """Let a partition come again, from an offset on."""

    async def leave(self) -> bool:
        """Leave the group for now, where that is ours to decide; False where it did not work."""

    async def come_back(self) -> bool:
        """Join the group again after `leave`; False where it did not work."""


class Progress:
    """Passes on what heads have won, and where the source ends.

    Commits are for the group's view alone: a lost one costs nothing but messages delivered again,
    and a lag that is none.
    """

    def __init__(
        self, stream: Stream, metrics: Metrics, *, on_end: Callable[[TopicPartition, int], None]
    ) -> None:
        self._stream = stream
        self._metrics = metrics
        self._on_end = on_end
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
            accepted=collection.spec.fingerprint.hex() if accepted else None,
        )
        self._metrics.flushed(collection.name, seconds=seconds)

    async def commit(self) -> None:
        """Commit what has been won since the last time, and what could not be committed then."""
        commits, self._commits = self._commits, {}
        if commits and not await self._stream.commit(commits):
            # It may be long until more is won there: all the while it would look as if it lagged.
            self._commits = commits | self._commits

    def assigned(self, partitions: AbstractSet[TopicPartition]) -> None:
        """Leave it to their owners to commit all partitions but these."""
        self._commits = {p: offset for p, offset in self._commits.items() if p in partitions}

    async def run(self) -> None:
        """Commit, and ask for the ends of the source, until cancelled."""
        while True:
            await asyncio.sleep(paced(_EVERY_SECONDS, len(self._commits), most=_MOST_SECONDS))
            await self.commit()
            for partition, end in (await self._stream.ends()).items():
                self._on_end(partition, end)

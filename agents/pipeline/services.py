"""What all engines of a worker share, and what they need of its consumer group."""

import asyncio
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final, Protocol

from aiokafka import TopicPartition

from ldpstream.agents.kafka.identity import TopicIdentity
from ldpstream.agents.kafka.producing import LastingProducer
from ldpstream.agents.metrics import Metrics
from ldpstream.agents.pipeline.flushing import FlushPace
from ldpstream.agents.reading.interval import scaled_interval
from ldpstream.agents.served.clock import Clock

_EVERY_SECONDS: Final = 1.0
_MOST_SECONDS: Final = 5.0


class Group(Protocol):
    """The consumer group, as far as a pipeline uses it."""

    @property
    def session_ms(self) -> int:
        """How long a silent member keeps its partitions."""

    async def commit(self, offsets: Mapping[TopicPartition, int]) -> bool:
        """Commit how far partitions have been counted; return False if that failed."""

    def silence(self, partitions: AbstractSet[TopicPartition]) -> None:
        """Keep Faust's own client from fetching partitions that have just been assigned."""

    async def leave(self) -> bool:
        """Leave the group for now, with everything read in it; return False if that failed."""

    async def come_back(self) -> bool:
        """Rejoin the group after `leave`; return False if that failed."""


class Progress:
    """Tells the group every second which offsets heads have won.

    That is for tools that watch the group only: a lost commit causes nothing but an apparent lag.
    """

    def __init__(self, group: Group) -> None:
        self._group = group
        self._commits: dict[TopicPartition, int] = {}

    def won(self, partition: TopicPartition, following: int) -> None:
        """Note the next offset of a won head."""
        self._commits[partition] = following

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
            many = len(self._commits)
            await asyncio.sleep(scaled_interval(_EVERY_SECONDS, many, most=_MOST_SECONDS))
            await self.commit()


@dataclass(frozen=True)
class Services:
    """What all engines of a worker share."""

    producer: LastingProducer
    identity: TopicIdentity
    progress: Progress
    metrics: Metrics
    clock: Clock
    pace: FlushPace = field(default_factory=FlushPace)

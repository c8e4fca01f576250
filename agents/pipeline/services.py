"""What all engines of a worker share, and what they need of its consumer group."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Protocol

from aiokafka import TopicPartition

from ldpstream.agents.kafka.identity import TopicIdentity
from ldpstream.agents.kafka.producing import LastingProducer
from ldpstream.agents.metrics import Metrics
from ldpstream.agents.pipeline.flushing import FlushPace
from ldpstream.agents.served.clock import Clock


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


@dataclass(frozen=True)
class Services:
    """What all engines of a worker share."""

    producer: LastingProducer
    identity: TopicIdentity
    metrics: Metrics
    clock: Clock
    pace: FlushPace = field(default_factory=FlushPace)

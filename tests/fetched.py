"""A consumer without a broker: aiokafka's own `fetched_records` reads what is given to it."""

from collections import defaultdict
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from aiokafka import TopicPartition
from aiokafka.consumer.fetcher import READ_COMMITTED, Fetcher, FetchResult, PartitionRecords
from aiokafka.record.memory_records import MemoryRecords

from ldpstream.agents.broker.patches.bounded_fetches import bound
from ldpstream.agents.broker.unpacking import BATCH_BYTES


class Place:
    """A partition's position, as a consumer keeps it."""

    paused = False

    def __init__(self, position: int = 0) -> None:
        self.position = position

    def consumed_to(self, position: int) -> None:
        self.position = position


def fetch_result(
    partition: TopicPartition, data: bytes, place: Place, aborted: Sequence[tuple[int, int]] = ()
) -> Any:
    """Return a fetch response as aiokafka keeps it.

    `aborted` are transactions: the producer's id and the first offset.
    """
    assignment = SimpleNamespace(active=True, state_value=lambda _: place)
    records = PartitionRecords(
        *(partition, MemoryRecords(data), aborted, place.position, None, None, True, READ_COMMITTED)
    )
    return FetchResult(partition, assignment=assignment, partition_records=records, backoff=0.0)


class Consumer:
    """The fetch responses of a bounded consumer, and its position in each partition."""

    def __init__(self, most_bytes: int = BATCH_BYTES) -> None:
        self.places: defaultdict[TopicPartition, Place] = defaultdict(Place)
        self._fetcher: Any = object.__new__(Fetcher)
        subscriptions = SimpleNamespace(reassignment_in_progress=False)
        vars(self._fetcher).update(
            _records={}, _subscriptions=subscriptions, _wait_consume_future=None
        )
        self._client = SimpleNamespace(send=None)
        self._fetches = bound(self._client, self._fetcher, most_bytes=most_bytes)

    def answered(
        self,
        partition: TopicPartition,
        data: bytes,
        *,
        start: int = 0,
        aborted: Sequence[tuple[int, int]] = (),
    ) -> None:
        """Queue a fetch response, to be read from the offset `start`."""
        place = self.places[partition] = Place(start)
        self._fetches.data[partition] = data
        self._fetcher._records[partition] = fetch_result(partition, data, place, aborted)

    async def poll(self, max_records: int | None = None) -> dict[TopicPartition, list[Any]]:
        found: dict[TopicPartition, list[Any]]
        found = await self._fetcher.fetched_records((), 0, max_records)
        return found

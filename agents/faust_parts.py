"""The few insides of Faust that are used here, in one place, for one pinned version.

Faust commits what was acknowledged, which is not what we have made durable, and its own commit of
chosen offsets ends the worker when the broker is away. It reads records of aborted transactions
unless it is told to write transactions too. Both need its consumer thread.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Final, cast

import faust
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import IllegalStateError, KafkaError
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread, Consumer, Transport

_COMMIT_SECONDS: Final = 5.0


async def commit(app: faust.App, offsets: Mapping[TopicPartition, int]) -> bool:
    """Commit next offsets for the group's view of progress; False if that did not work.

    Nothing here ever reads them back but Faust, to know where its stream begins.
    """
    thread = cast("Consumer", app.consumer)._thread  # noqa: SLF001 (see above)
    consumer = thread._consumer  # noqa: SLF001
    if consumer is None:
        return False
    assigned = consumer.assignment()
    ours = {partition: offset for partition, offset in offsets.items() if partition in assigned}
    if not ours:
        return False
    try:
        await asyncio.wait_for(thread.call_thread(_commit, consumer, ours), _COMMIT_SECONDS)
    except (KafkaError, IllegalStateError, TimeoutError):
        return False
    return True


async def _commit(consumer: AIOKafkaConsumer, offsets: Mapping[TopicPartition, int]) -> None:
    await consumer.commit(dict(offsets))


async def end_offsets(app: faust.App) -> Mapping[TopicPartition, int]:
    """Return where the partitions of the stream end, as its last fetches said; for lag only."""
    thread = cast("Consumer", app.consumer)._thread  # noqa: SLF001 (see above)
    consumer = thread._consumer  # noqa: SLF001
    if consumer is None:
        return {}
    try:
        found = await asyncio.wait_for(thread.call_thread(_highwaters, consumer), _COMMIT_SECONDS)
    except TimeoutError:
        return {}
    return cast("Mapping[TopicPartition, int]", found)


async def _highwaters(consumer: AIOKafkaConsumer) -> dict[TopicPartition, int]:
    ends = {partition: consumer.highwater(partition) for partition in consumer.assignment()}
    return {partition: end for partition, end in ends.items() if end is not None}


class _CommittedThread(AIOKafkaConsumerThread):
    def _create_worker_consumer(self, transport: Any) -> AIOKafkaConsumer:
        consumer = super()._create_worker_consumer(transport)
        # Read when the consumer starts.
        consumer._isolation_level = "read_committed"  # noqa: SLF001 (see above)
        return consumer


class _CommittedConsumer(Consumer):
    def _new_consumer_thread(self) -> AIOKafkaConsumerThread:
        return _CommittedThread(self, loop=self.loop, beacon=self.beacon)


class _CommittedTransport(Transport):
    Consumer = _CommittedConsumer


class WorkerApp(faust.App):
    """A Faust app that reads committed records only."""

    def _new_transport(self) -> Transport:
        return _CommittedTransport(self.conf.broker_consumer, self)

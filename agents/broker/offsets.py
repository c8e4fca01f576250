"""Where logs end, and all that is in them from their beginning.

Kafka has a request for end offsets, but the embedded broker answers it incorrectly (with the base
offset of the newest batch + 1). The high watermark in every fetch is correct everywhere, except for
a moment after a change of leader: the new leader's may lag behind, in which case a broker does not
answer the request (KIP-207). So both are asked for, and the larger counts.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Collection, Iterable
from typing import Final

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.errors import KafkaError, KafkaTimeoutError, OffsetOutOfRangeError

from ldpstream.agents.broker.health import log_transient_error

_END_POLL_SECONDS: Final = 0.02
_REPLAY_POLL_MS: Final = 500
_RETRY_SECONDS: Final = 1.0


async def end_offsets(
    consumer: AIOKafkaConsumer,
    partitions: Collection[TopicPartition],
    *,
    timeout_seconds: float = 10.0,
) -> dict[TopicPartition, int]:
    """Return the offset after the last record of each partition.

    `consumer` has no group and is started; it is assigned to these partitions afterwards.
    """
    consumer.assign(list(partitions))
    await consumer.seek_to_end(*partitions)
    answers = {partition: await consumer.position(partition) for partition in partitions}
    deadline = time.monotonic() + timeout_seconds
    while True:
        marks = {partition: consumer.highwater(partition) for partition in partitions}
        ends = {p: max(mark, answers[p]) for p, mark in marks.items() if mark is not None}
        if len(ends) == len(marks):
            return ends
        if time.monotonic() > deadline:
            missing = next(partition for partition, mark in marks.items() if mark is None)
            raise KafkaTimeoutError(f"no end offset of {missing.topic}[{missing.partition}]")
        await consumer.getmany(timeout_ms=0)
        await asyncio.sleep(_END_POLL_SECONDS)


async def replayed(
    consumer: AIOKafkaConsumer, topics: Iterable[str]
) -> AsyncIterator[ConsumerRecord[bytes, bytes]]:
    """Yield all messages of topics of one partition, for ever, with a started consumer.

    Some come repeatedly: after a topic has been truncated, it is read from the beginning again.
    """
    pending = [TopicPartition(topic, 0) for topic in topics]
    consumer.assign(pending)
    while True:
        try:
            if pending:
                await consumer.seek_to_beginning(*pending)
                pending = []
            fetched = await consumer.getmany(timeout_ms=_REPLAY_POLL_MS)
        except OffsetOutOfRangeError as error:
            pending = list(error.args[0])
        except KafkaError as error:
            log_transient_error(error)
            await asyncio.sleep(_RETRY_SECONDS)
        else:
            for records in fetched.values():
                for record in records:
                    yield record

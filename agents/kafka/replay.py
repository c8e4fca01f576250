"""Read topics of one partition from the beginning, and again after they are truncated."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Final

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.errors import KafkaError, OffsetOutOfRangeError

from ldpstream.agents.served.health import note_error

_POLL_MS: Final = 500
_RETRY_SECONDS: Final = 1.0


async def replayed(
    consumer: AIOKafkaConsumer, topics: Iterable[str]
) -> AsyncIterator[ConsumerRecord[bytes, bytes]]:
    """Yield all messages of topics, some of them repeatedly, with a started consumer."""
    pending = [TopicPartition(topic, 0) for topic in topics]
    consumer.assign(pending)
    while True:
        try:
            if pending:
                await consumer.seek_to_beginning(*pending)
                pending = []
            found = await consumer.getmany(timeout_ms=_POLL_MS)
        except OffsetOutOfRangeError as error:
            pending = list(error.args[0])
        except KafkaError as error:
            note_error(error)
            await asyncio.sleep(_RETRY_SECONDS)
        else:
            for records in found.values():
                for record in records:
                    yield record

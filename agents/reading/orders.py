"""Read the control topics, which hold orders to close panes; every worker reads from the beginning.

Applying an order again has no effect.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Final

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.errors import KafkaError, OffsetOutOfRangeError

from ldpstream.agents.served.health import note_error

_POLL_MS: Final = 500
_RETRY_SECONDS: Final = 1.0


async def read_orders(
    consumer: AIOKafkaConsumer, topics: Iterable[str]
) -> AsyncIterator[ConsumerRecord[bytes, bytes]]:
    """Yield all messages of control topics, with a consumer that the caller starts and stops."""
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

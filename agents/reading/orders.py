"""Read the control topics, which hold orders to close panes; every worker reads from the beginning.

Applying an order again has no effect.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError, OffsetOutOfRangeError

from ldpstream.agents.partition.clock import Control
from ldpstream.agents.partition.control import ControlError, decode_control

_POLL_MS: Final = 500
_RETRY_SECONDS: Final = 1.0


class ControlReader:
    """Reads control topics from the beginning, with one consumer that the caller starts and stops.

    `on_order(topic, control)` is called for every order, `on_bad(topic, offset, why)` for an
    invalid message, which is skipped, and `on_error` for errors of the broker.
    """

    def __init__(
        self,
        consumer: AIOKafkaConsumer,
        topics: Iterable[str],
        *,
        on_order: Callable[[str, Control], None],
        on_bad: Callable[[str, int, str], None],
        on_error: Callable[[KafkaError], None],
    ) -> None:
        self._consumer = consumer
        self._partitions = [TopicPartition(topic, 0) for topic in topics]
        self._on_order = on_order
        self._on_bad = on_bad
        self._on_error = on_error

    async def run(self) -> None:
        """Read until cancelled."""
        self._consumer.assign(self._partitions)
        pending = list(self._partitions)
        while True:
            try:
                if pending:
                    await self._consumer.seek_to_beginning(*pending)
                    pending = []
                found = await self._consumer.getmany(timeout_ms=_POLL_MS)
            except OffsetOutOfRangeError as error:
                pending = list(error.args[0])
            except KafkaError as error:
                self._on_error(error)
                await asyncio.sleep(_RETRY_SECONDS)
            else:
                for partition, records in found.items():
                    for record in records:
                        self._read(partition.topic, record.offset, record.value)

    def _read(self, topic: str, offset: int, value: bytes | None) -> None:
        try:
            control = decode_control(value or b"")
        except ControlError as error:
            self._on_bad(topic, offset, str(error))
        else:
            self._on_order(topic, control)

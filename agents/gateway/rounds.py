"""What rounds of unknown words ask about, for devices that ask a gateway."""

import asyncio
import time
from typing import Final

from aiokafka import AIOKafkaConsumer

from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.kafka.connections import Connections
from ldpstream.agents.kafka.rounds import read_rounds
from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.wire.rounds import round_document, words_of

_FRESH_SECONDS: Final = 2.0
_WAIT_MS: Final = 100


class NewestRounds:
    """Reads the topic of rounds again where what was read is older than two seconds."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._reader: AIOKafkaConsumer | None = None
        self._alone = asyncio.Lock()
        self._read: dict[str, tuple[float, dict[str, Json]]] = {}

    async def of(self, collection: CollectionConfig) -> dict[str, Json]:
        """Return what the device document has of rounds: the newest one, if any has begun.

        Raises:
            KafkaError: where the broker does not answer.
        """
        topic = collection.topics.rounds
        if topic is None:
            return {}
        async with self._alone:
            read_at, found = self._read.get(topic, (-_FRESH_SECONDS, {}))
            if time.monotonic() - read_at >= _FRESH_SECONDS:
                if self._reader is None:
                    opening = self._connections.reader(committed_only=False, wait_ms=_WAIT_MS)
                    self._reader = await opening
                rounds = await read_rounds(self._reader, topic, collection.spec)
                asked = words_of(rounds[max(rounds)]).round if rounds else None
                found = {} if asked is None else {"round": round_document(collection.spec, asked)}
                self._read[topic] = time.monotonic(), found
            return found

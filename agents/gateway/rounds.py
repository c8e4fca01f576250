"""The newest rounds of unknown words, for devices that use a gateway."""

import asyncio
import time
from typing import Final

from ldpstream.agents.config import CollectionConfig, KafkaConfig
from ldpstream.agents.device.sender import Sender
from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.wire.rounds import round_document, words_of

_FRESH_SECONDS: Final = 2.0


class NewestRounds:
    """Reads the topic of rounds, at most every two seconds."""

    def __init__(self, kafka: KafkaConfig) -> None:
        self._kafka = kafka
        self._alone = asyncio.Lock()
        self._read: dict[str, tuple[float, dict[str, Json]]] = {}

    async def of(self, collection: CollectionConfig) -> dict[str, Json]:
        """Return the newest round for the device document, if any has begun.

        Raises:
            KafkaError: where the broker does not answer. For two seconds after that, the last
                known round is returned.
        """
        if collection.topics.rounds is None:
            return {}
        async with self._alone:
            read_at, found = self._read.get(collection.name, (-_FRESH_SECONDS, {}))
            if time.monotonic() - read_at >= _FRESH_SECONDS:
                self._read[collection.name] = time.monotonic(), found
                found = await self._newest(collection)
                self._read[collection.name] = time.monotonic(), found
            return found

    async def _newest(self, collection: CollectionConfig) -> dict[str, Json]:
        spec, kafka = collection.spec, self._kafka
        newest = await Sender(spec, kafka.bootstrap, options=kafka.options).round()
        asked = None if newest is None else words_of(newest.spec).round
        return {} if asked is None else {"round": round_document(spec, asked)}

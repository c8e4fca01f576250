"""What a gateway reads from the broker: the topics that it can write to, and the newest rounds."""

import asyncio
import logging
import time
from collections.abc import Collection, Mapping
from typing import Final

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from ldpstream.agents.broker.metadata import GATEWAY, describe, missing_on_topics
from ldpstream.agents.broker.topics import lacking_partitions
from ldpstream.agents.config import CollectionConfig, KafkaConfig
from ldpstream.agents.edge.sender import Sender
from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.wire.rounds import round_document, words_of

_WATCH_SECONDS: Final = 2.0
_ASK_SECONDS: Final = 5.0
_FRESH_SECONDS: Final = 2.0
log = logging.getLogger(__name__)


class SourceTopics:
    """The existing source topics: writing to a missing one could make the broker create it.

    As of the last answer, `writable` are the topics that exist with as many partitions as devices
    use, `refused` is what is not permitted on them, and `problems` everything that is wrong, one
    sentence each.
    """

    def __init__(
        self, admin: AIOKafkaAdminClient, collections: Collection[CollectionConfig]
    ) -> None:
        self._admin = admin
        self._by_topic: Mapping[str, CollectionConfig] = {
            collection.topics.source: collection for collection in collections
        }
        self.writable: set[str] = set()
        self.problems: list[str] = []
        self.refused: list[str] = []

    async def refresh(self) -> None:
        """Ask the broker, and update everything."""
        states = await describe(self._admin, self._by_topic)
        lacking = {
            name: problem
            for name, state in states.items()
            if (problem := lacking_partitions(state.partitions, self._by_topic[name]))
        }
        self.writable.clear()
        self.writable.update(states.keys() - lacking.keys())
        self.refused = [
            missing
            for collection in self._by_topic.values()
            for missing in missing_on_topics(collection, states, needed=GATEWAY)
        ]
        absent = [name for name in self._by_topic if name not in states]
        self.problems[:] = [
            *self.refused,
            *lacking.values(),
            *(f"topic {name} is missing: a worker creates it" for name in absent),
        ]

    async def watch(self) -> None:
        """Ask periodically, until cancelled."""
        while True:
            await asyncio.sleep(_WATCH_SECONDS)
            try:
                async with asyncio.timeout(_ASK_SECONDS):
                    await self.refresh()
            except (KafkaError, TimeoutError) as error:
                log.debug("no topics: %r", error)
                self.problems[:] = ["the broker does not answer"]


class NewestRounds:
    """Reads the newest rounds of unknown words for devices, at most every two seconds."""

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
            read_at, document = self._read.get(collection.name, (-_FRESH_SECONDS, {}))
            if time.monotonic() - read_at >= _FRESH_SECONDS:
                self._read[collection.name] = time.monotonic(), document
                document = await self._newest(collection)
                self._read[collection.name] = time.monotonic(), document
            return document

    async def _newest(self, collection: CollectionConfig) -> dict[str, Json]:
        spec, kafka = collection.spec, self._kafka
        newest = await Sender(spec, kafka.bootstrap, options=kafka.options).round()
        question = None if newest is None else words_of(newest.spec).round
        return {} if question is None else {"round": round_document(spec, question)}

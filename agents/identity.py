"""Whether source topics are still those that the state was counted from.

A topic that is deleted and created anew has the same name, offsets from 0 again, and another id.
Counting on from the old offset would leave out what comes first and claim to know it.
"""

import asyncio
import logging
import time
from collections.abc import Mapping
from typing import Final
from uuid import UUID

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from ldpstream.agents.engine import Engine
from ldpstream.agents.flight import SourceChangedError
from ldpstream.agents.metadata import TopicState, describe
from ldpstream.agents.topics import Topics

_WATCH_SECONDS: Final = 2.0

log = logging.getLogger(__name__)


class TopicIdentity:
    """Remembers the ids that topics had at the start, and compares."""

    def __init__(self) -> None:
        self._client: AIOKafkaAdminClient | None = None
        self._ids: dict[str, UUID | None] = {}
        self._lock = asyncio.Lock()
        self._asked = 0.0
        self._found: Mapping[str, TopicState] = {}

    def remember(self, found: Mapping[str, TopicState]) -> None:
        """Remember the ids of these topics."""
        self._ids.update({name: state.id for name, state in found.items()})

    def start(self, client: AIOKafkaAdminClient) -> None:
        """Use a started client from now on."""
        self._client = client

    def source_id(self, topics: Topics) -> bytes:
        """Return the id of a collection's source in 16 bytes; empty where the broker has none."""
        found = self._ids.get(topics.source)
        return b"" if found is None else found.bytes

    async def check(self, collection: str, topics: Topics) -> None:
        """Make sure that source and changelog are the same topics as at the start.

        Raises:
            SourceChangedError: if one of them is missing or another one.
            KafkaError: if the broker does not answer.
        """
        found = await self._describe()
        for name in (topics.source, topics.changelog):
            if name not in found:
                raise SourceChangedError(f"topic {name} has been deleted")
            if found[name].id != self._ids[name]:
                raise SourceChangedError(
                    f"topic {name} was deleted and created anew; `ldpstream reset {collection}` "
                    "begins anew with it"
                )

    async def watch(self, engine: Engine) -> None:
        """Check a collection from time to time, until it stops for whatever reason."""
        while not engine.problems:
            await asyncio.sleep(_WATCH_SECONDS)
            try:
                await self.check(engine.config.name, engine.config.topics)
            except SourceChangedError as error:
                engine.fail(str(error))
            except KafkaError as error:
                log.debug("no topic ids: %r", error)

    async def _describe(self) -> Mapping[str, TopicState]:
        """Ask the broker; callers that wait at the same time share an answer asked for later."""
        called = time.monotonic()
        assert self._client is not None
        async with self._lock:
            if self._asked <= called:
                self._asked = time.monotonic()
                self._found = await describe(self._client, self._ids)
            return self._found

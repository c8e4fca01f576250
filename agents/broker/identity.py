"""Check that source topics are still those from which the state was counted.

A topic that is deleted and created again has the same name, offsets from 0, and another id.
Continuing from the old offset would silently skip its first messages.

A broker that has just started may answer before it knows its topics. So a missing topic counts as
deleted only once it has been missing from all answers for a while, and until then nothing is
counted.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final
from uuid import UUID

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError, UnknownTopicOrPartitionError

from ldpstream.agents.broker import clients
from ldpstream.agents.broker.metadata import (
    WORKER,
    TopicState,
    count_brokers,
    describe,
    missing_on_group,
    missing_on_topics,
)
from ldpstream.agents.broker.refusals import not_permitted
from ldpstream.agents.broker.topics import declare_topics
from ldpstream.agents.config import CollectionConfig, KafkaConfig

MISSING_SECONDS: Final = 15.0
"""How long a topic must be missing to count as deleted."""


class SourceChangedError(RuntimeError):
    """A topic is not the one that it was at the start."""


class TopicIdentity:
    """Remembers the ids of topics at the start, and compares them later."""

    def __init__(self, *, seconds: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._client: AIOKafkaAdminClient | None = None
        self._ids: dict[str, UUID | None] = {}
        self._names: set[str] = set()
        self._lock = asyncio.Lock()
        self._requested_at = 0.0
        self._states: Mapping[str, TopicState] = {}
        self._failure: KafkaError | None = None
        self._missing_since: dict[str, float] = {}

    async def open(
        self,
        client: AIOKafkaAdminClient,
        kafka: KafkaConfig,
        collections: Sequence[CollectionConfig],
        *,
        group: str,
    ) -> None:
        """Declare the collections' topics, remember them, and use a started client from now on."""
        factor = clients.replication_factor(kafka.options, brokers=count_brokers(client))
        named = [
            getattr(collection.topics, field) for collection in collections for field in WORKER
        ]
        topics = await declare_topics(client, collections, replication_factor=factor, only=named)
        self._ids = {name: state.id for name, state in topics.items()}
        missing = [
            lacking
            for collection in collections
            for lacking in missing_on_topics(collection, topics)
        ]
        missing += await missing_on_group(client, group)
        if missing:
            raise not_permitted(kafka, missing)
        self._client = client

    def partitions(self, topic: str) -> int:
        """Return how many partitions a topic had in the last answer, 0 before any."""
        return self._states[topic].partitions if topic in self._states else 0

    def topic_id(self, name: str) -> bytes:
        """Return the id that a topic had at the start; empty if the broker has none."""
        identity = self._ids.get(name)
        return b"" if identity is None else identity.bytes

    async def check(self, names: Sequence[str], *, then: str) -> None:
        """Check that topics are those of the start; `then` says what to do otherwise."""
        # Not all topics: an answer lists every partition of every topic in the request.
        self._names.update(names)
        topics = await self._describe()
        for name in names:
            if name not in topics:
                if self._seconds() - self._missing_since[name] < MISSING_SECONDS:
                    raise UnknownTopicOrPartitionError(f"topic {name}")
                raise SourceChangedError(f"topic {name} has been deleted")
            if topics[name].id != self._ids[name]:
                raise SourceChangedError(f"topic {name} was deleted and created again; {then}")

    async def _describe(self) -> Mapping[str, TopicState]:
        """Describe the topics; concurrent callers share an answer requested after they called."""
        called = self._seconds()
        assert self._client is not None
        async with self._lock:
            if self._requested_at <= called:
                requested_at = self._seconds()
                try:
                    self._states, self._failure = await describe(self._client, self._names), None
                except KafkaError as error:
                    # A broker that did not answer may have been starting all that time.
                    self._missing_since.clear()
                    self._failure = error
                else:
                    self._note_missing()
                # Only now: callers waiting behind a cancelled one must ask themselves.
                self._requested_at = requested_at
            # A failure is shared too, since the last answer is older than the call.
            if self._failure is not None:
                raise self._failure
            return self._states

    def _note_missing(self) -> None:
        missing = self._names - self._states.keys()
        now = self._seconds()
        self._missing_since = {name: self._missing_since.get(name, now) for name in missing}

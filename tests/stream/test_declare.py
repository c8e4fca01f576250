"""Topics that several workers declare at once, over a client that answers as it is told."""

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import InvalidPartitionsError, KafkaError, PolicyViolationError

from ldpstream.agents.config import read_config
from ldpstream.agents.kafka import declare
from ldpstream.agents.kafka.declare import TopicError, declare_topics
from ldpstream.agents.kafka.metadata import TopicState
from tests.stream.serving import CITY


class Client:
    """Answers a wish for more partitions with an error."""

    def __init__(self, error: type[KafkaError]) -> None:
        self.error = error
        self.asked: list[str] = []

    async def describe_configs(self, _: object) -> None:
        raise KafkaError

    async def create_partitions(self, wanted: Mapping[str, object]) -> Any:
        self.asked += wanted
        errors = [(name, self.error.errno, "Topic already has 2 partition(s).") for name in wanted]
        return SimpleNamespace(topic_errors=errors)


async def test_a_changelog_that_another_worker_has_given_partitions_meanwhile_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mapping = {"collection": {"city": {**CITY, "input": "frames"}}}
    collection = read_config(mapping, base=Path(), environment={}).collections["city"]
    topics = collection.topics
    found = {name: TopicState(2, None) for name in topics.names()}
    found |= {name: TopicState(1, None) for name in (topics.changelog, topics.frames) if name}

    async def describe(*_: object) -> Mapping[str, TopicState]:
        return found

    async def declared(client: Client) -> Mapping[str, TopicState]:
        asked = cast("AIOKafkaAdminClient", client)
        return await declare_topics(asked, collection, replication_factor=1)

    monkeypatch.setattr(declare, "describe", describe)
    client = Client(InvalidPartitionsError)
    assert await declared(client) == found
    assert client.asked == [topics.changelog, topics.frames]
    with pytest.raises(TopicError, match="cannot be given more partitions: Topic already"):
        await declared(Client(PolicyViolationError))

"""Topics that several workers declare at once, with a fake client."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import (
    InvalidPartitionsError,
    KafkaError,
    PolicyViolationError,
    TopicAlreadyExistsError,
)

from ldpstream.agents.broker import topics as declare
from ldpstream.agents.broker.metadata import TopicState
from ldpstream.agents.broker.topics import TopicError, declare_topics
from ldpstream.agents.config import CollectionConfig, read_config
from tests.stream.serving import CITY


class Client:
    """Refuses more partitions with an error; topics to create exist already."""

    def __init__(self, error: type[KafkaError]) -> None:
        self.error = error
        self.asked: list[str] = []
        self.requests: list[int] = []

    async def create_topics(self, wanted: Sequence[NewTopic]) -> Any:
        self.requests.append(len(wanted))
        self.asked += [new.name for new in wanted]
        errors = [(new.name, TopicAlreadyExistsError.errno, None) for new in wanted]
        return SimpleNamespace(topic_errors=errors)

    async def describe_configs(self, _: object) -> None:
        raise KafkaError

    async def create_partitions(self, wanted: Mapping[str, object]) -> Any:
        self.asked += wanted
        raise self.error(f"Could not create partitions for {next(iter(wanted))}: it has 2")


def cities(*names: str, **changes: object) -> list[CollectionConfig]:
    mapping = {"collection": {name: {**CITY, **changes} for name in names}}
    return [*read_config(mapping, base=Path(), environment={}).collections.values()]


def city() -> CollectionConfig:
    return cities("city")[0]


async def declared(client: Client, *collections: CollectionConfig) -> Mapping[str, TopicState]:
    asked = cast("AIOKafkaAdminClient", client)
    return await declare_topics(asked, collections, replication_factor=1)


async def test_a_changelog_that_another_worker_has_grown_meanwhile_is_accepted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    collection, topics = city(), city().topics
    found = {name: TopicState(2, None) for name in topics.names()}
    found |= {topics.changelog: TopicState(1, None)}

    async def describe(*_: object) -> Mapping[str, TopicState]:
        return found

    monkeypatch.setattr(declare, "describe", describe)
    client = Client(InvalidPartitionsError)
    assert await declared(client, collection) == found
    assert client.asked == [topics.changelog]
    with pytest.raises(TopicError, match=r"cannot be given more partitions: .*: it has 2"):
        await declared(Client(PolicyViolationError), collection)


async def test_a_source_that_somebody_else_creates_meanwhile_is_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A device's first message may create it, with the broker's default number of partitions."""
    collection = city()
    shown: dict[str, TopicState] = {}
    answers = [shown]

    async def describe(*_: object) -> Mapping[str, TopicState]:
        return answers.pop(0) if len(answers) > 1 else answers[0]

    monkeypatch.setattr(declare, "describe", describe)
    monkeypatch.setattr(declare, "_DELAYS_SECONDS", (0.0, 0.0, 0.0))
    client = Client(KafkaError)
    there = {name: TopicState(2, None) for name in collection.topics.names()}
    few = there | {collection.topics.source: TopicState(1, None)}
    answers += [few]
    with pytest.raises(TopicError, match=r"city\.reports has 1 partition, but collection\.city"):
        await declared(client, collection)
    # The broker may not list all of them yet.
    answers[:] = [shown, few, there]
    assert await declared(client, collection) == there


@pytest.mark.parametrize(("partitions", "requests"), [(2, [18]), (1_200, [6, 6, 6])])
async def test_topics_of_all_collections_are_created_in_as_few_requests_as_a_broker_takes(
    monkeypatch: pytest.MonkeyPatch, partitions: int, requests: list[int]
) -> None:
    """A controller refuses a request of more than 10,000 partitions."""
    collections = cities("one", "two", "three", partitions=partitions)
    there = {name: TopicState(partitions, None) for c in collections for name in c.topics.names()}
    answers, described = [{}, there], []

    async def describe(_: object, names: Collection[str]) -> Mapping[str, TopicState]:
        described.append(set(names))
        return answers.pop(0)

    monkeypatch.setattr(declare, "describe", describe)
    client = Client(KafkaError)
    assert await declared(client, *collections) == there
    assert described == [there.keys(), there.keys()]
    assert sorted(client.asked) == sorted(there)
    assert client.requests == requests

"""Topics that go missing: deleted, created again, or not yet known to a starting broker."""

import asyncio
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaConnectionError, KafkaError, UnknownTopicOrPartitionError

from ldpstream.agents.broker import identity
from ldpstream.agents.broker.identity import MISSING_SECONDS, SourceChangedError, TopicIdentity
from ldpstream.agents.broker.metadata import TopicState
from ldpstream.agents.config.collection import Topics

TOPICS = Topics.derive("rides", worker_id="w", collection="rides")
THERE = {
    TOPICS.source: TopicState(4, UUID(int=1)),
    TOPICS.changelog: TopicState(4, UUID(int=2)),
}


class Broker:
    """Gives the answers, and has the time, that a test sets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.answer: Mapping[str, TopicState] | KafkaError = THERE
        self.now = 100.0

        async def describe(*_: Any) -> Mapping[str, TopicState]:
            await asyncio.sleep(0)
            self.now += 1
            if isinstance(self.answer, KafkaError):
                raise self.answer
            return self.answer

        monkeypatch.setattr(identity, "describe", describe)
        self.identity = TopicIdentity(seconds=lambda: self.now)
        self.identity._ids.update({name: state.id for name, state in THERE.items()})
        self.identity._client = cast("AIOKafkaAdminClient", SimpleNamespace())

    async def check(self, after_seconds: float) -> None:
        self.now += after_seconds
        await self.identity.check((TOPICS.source, TOPICS.changelog), then="start over")


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    return Broker(monkeypatch)


@pytest.mark.parametrize("missing", [TOPICS.source, TOPICS.changelog])
async def test_a_topic_that_is_missing_for_long_counts_as_deleted(
    broker: Broker, missing: str
) -> None:
    await broker.check(1)
    broker.answer = {name: state for name, state in THERE.items() if name != missing}
    for _ in range(3):
        with pytest.raises(UnknownTopicOrPartitionError):
            await broker.check(MISSING_SECONDS / 4)
    with pytest.raises(SourceChangedError, match=f"topic {missing} has been deleted"):
        await broker.check(MISSING_SECONDS)


async def test_a_broker_that_starts_knows_its_topics_later(broker: Broker) -> None:
    for _ in range(3):
        broker.answer = {}
        for _ in range(2):
            with pytest.raises(UnknownTopicOrPartitionError):
                await broker.check(MISSING_SECONDS * 0.9)
            # The broker goes away again.
            broker.answer = KafkaConnectionError()
            with pytest.raises(KafkaConnectionError):
                await broker.check(MISSING_SECONDS)
            broker.answer = {}
        broker.answer = THERE
        await broker.check(1)


async def test_a_source_created_again_is_refused_until_it_is_reset(broker: Broker) -> None:
    broker.answer = {**THERE, TOPICS.source: TopicState(4, UUID(int=3))}
    with pytest.raises(SourceChangedError, match="created again; start over"):
        await broker.check(1)


async def test_concurrent_checks_share_one_failure(broker: Broker) -> None:
    broker.answer = {}
    with pytest.raises(UnknownTopicOrPartitionError):
        await broker.check(1)
    broker.answer = KafkaConnectionError()
    checks = [broker.check(0) for _ in range(4)]
    found = await asyncio.gather(*checks, return_exceptions=True)
    assert [type(one) for one in found] == [KafkaConnectionError] * 4


async def test_a_check_behind_a_cancelled_one_asks_by_itself(broker: Broker) -> None:
    broker.answer = {}
    first = asyncio.create_task(broker.check(1))
    second = asyncio.create_task(broker.check(0))
    third = asyncio.create_task(broker.check(0))
    await asyncio.sleep(0)
    first.cancel()
    broker.answer = THERE
    await asyncio.gather(second, third)
    with pytest.raises(asyncio.CancelledError):
        await first

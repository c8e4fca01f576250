"""Incremental fetch sessions with real brokers."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from aiokafka import TopicPartition

from ldpstream.agents.broker.patches.fetch_sessions import FetchSession
from tests.brokers import Broker
from tests.lab import Lab
from tests.processes import eventually

pytestmark = pytest.mark.broker


async def test_an_idle_reader_is_sent_no_partition_and_knows_the_ends_of_all(
    running: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab, sent, forgotten = Lab(running, tmp_path, partitions=3), list[int](), list[bool]()
    record = FetchSession.record_answer

    def recorded(session: FetchSession, response: Any) -> bool:
        sent.append(sum(len(partitions) for _, partitions in response.topics))
        continues = record(session, response)
        if forgotten:
            session._id += 1
            forgotten.pop()
        return continues

    monkeypatch.setattr(FetchSession, "record_answer", recorded)
    topic = lab.collection.topics.source
    await lab.create(topic, partitions=3)
    places = [TopicPartition(topic, number) for number in range(3)]
    async with lab.reader() as reader, lab.producer() as producer:
        reader.assign(places)
        for place in places:
            reader.seek(place, 0)

        async def read(number: int) -> None:
            found = 0
            async with asyncio.timeout(60):
                while found < number:
                    got = await reader.getmany(timeout_ms=100)
                    found += sum(map(len, got.values()))

        async def answered() -> None:
            before = {place: reader.last_poll_timestamp(place) for place in places}
            await eventually(
                lambda: all(reader.last_poll_timestamp(p) != before[p] for p in places)
            )

        await producer.send_and_wait(topic, b"one", partition=0)
        await read(1)
        for _ in range(3):
            await answered()
        assert [reader.highwater(place) for place in places] == [1, 0, 0]
        if running.kind == "kafka":
            assert sent[-2:] == [0, 0]
            # As if the broker had evicted the session, as it does when others need the place.
            forgotten.append(True)
            for _ in range(3):
                await answered()
            assert 3 in sent[-4:]
        await producer.send_and_wait(topic, b"two", partition=2)
        await read(1)
        assert [reader.highwater(place) for place in places] == [1, 0, 1]

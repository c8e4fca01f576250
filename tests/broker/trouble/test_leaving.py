"""A worker that stops leaves its group at once, and one that stays keeps its place."""

import asyncio
import signal

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition

from ldpstream.agents.broker.groups import count_members
from ldpstream.agents.broker.patches.joining_members import is_joining
from ldpstream.agents.engine.patches.consumer_group import _commit
from tests.broker.conftest import on_kafka
from tests.lab import Lab
from tests.processes import PATIENCE_SECONDS, eventually

# The embedded broker does not tell which members of a group are there.
pytestmark = [pytest.mark.broker, on_kafka]


async def test_a_worker_that_stops_while_its_group_waits_for_another_leaves_at_once(
    lab: Lab,
) -> None:
    """The group waits for a session, which is longer than a worker may take to stop."""
    lab = lab.changed("long.toml", ("session_timeout_ms = 6000", "session_timeout_ms = 60000"))
    with lab.worker() as one, lab.worker() as two, lab.worker() as three:
        workers = (one, two, three)
        await eventually(
            lambda: all(worker.metrics("ldpstream_owned") > 0 for worker in workers),
            what="a share for each",
        )
        two.process.send_signal(signal.SIGSTOP)
        assert await asyncio.to_thread(three.terminate) == 0
        await eventually(lambda: one.metrics("ldpstream_owned") == 0, what="joining again")
        assert await asyncio.to_thread(one.terminate) == 0
        async with lab.admin() as admin:
            assert await count_members(admin, lab.config.worker.id) == 1


async def test_a_member_that_would_commit_while_others_join_keeps_its_place(lab: Lab) -> None:
    topic = lab.collection.topics.source
    await lab.create(topic, partitions=4)

    def member(heartbeat_ms: int) -> AIOKafkaConsumer:
        return AIOKafkaConsumer(
            topic,
            bootstrap_servers=lab.broker.bootstrap,
            group_id=lab.config.worker.id,
            enable_auto_commit=False,
            heartbeat_interval_ms=heartbeat_ms,
        )

    # The second one is slow to notice that a third one joins.
    async with member(100) as first, member(3_000), asyncio.timeout(PATIENCE_SECONDS):
        coordinator = first._coordinator
        await eventually(lambda: not is_joining(coordinator))
        place, generation = coordinator.member_id, coordinator.generation
        committed = []
        third = member(100)
        joining = asyncio.create_task(third.start())
        while coordinator.generation == generation or is_joining(coordinator):
            committed.append(await _commit(first, dict.fromkeys(first.assignment(), 0)))
            await asyncio.sleep(0.02)
        await joining
        await third.stop()
        assert False in committed
        assert coordinator.member_id == place
        assert not await _commit(first, {TopicPartition(topic, 4): 0}), "of another member"

"""`check` tells of other consumer groups that count the same reports, or read them."""

import asyncio
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition

from tests.broker.conftest import on_kafka, on_one_broker
from tests.broker.pages.acls import grant
from tests.broker.pages.listeners import STRANGER, Secured
from tests.brokers import Broker
from tests.lab import START_MS, Lab
from tests.processes import PATIENCE_SECONDS
from tests.stream.cli import invoke

pytestmark = pytest.mark.broker


async def lines_about(lab: Lab, part: str) -> list[str]:
    """Return what a `check` that finds no problem prints with this part in it."""
    checked = await asyncio.to_thread(invoke, "check", "-c", str(lab.file))
    assert checked.exit_code == 0, checked.output
    return [line for line in checked.stdout.splitlines() if part in line]


async def count_one_frame(lab: Lab) -> None:
    """Send a frame, and wait until the lab's running workers have committed that it is counted."""
    source, group = lab.collection.topics.source, lab.config.group
    async with lab.producer() as producer:
        value = lab.frame(30, first_ms=START_MS, last_ms=START_MS)
        await producer.send_and_wait(source, value, partition=2)
    at = TopicPartition(source, 2)
    async with lab.admin() as admin, asyncio.timeout(PATIENCE_SECONDS):
        while (await admin.list_consumer_group_offsets(group, partitions=[at]))[at].offset < 1:  # noqa: ASYNC110 (no event)
            await asyncio.sleep(0.1)


@on_kafka
async def test_workers_of_another_id_that_count_the_topic(lab: Lab) -> None:
    """Each counts every report: twice in all, and `minimum` holds for each alone."""
    other = lab.changed("other.toml", ('id = "w-', 'id = "other-w-'))
    with other.worker():
        await count_one_frame(other)
        (line,) = await lines_about(lab, other.config.group)
        assert line == (
            f"{lab.collection.topics.source}: warning: other workers count it too, in group "
            f"{other.config.group} (1 member, as far as the broker says), with their state in "
            f"{other.collection.topics.changelog}: every report counts in both, and `minimum` "
            "holds only for the answers of one. To share the work, give all the same worker.id; "
            "or stop the others, and delete their group"
        )
        # With the workers' own file nothing is odd.
        assert await lines_about(other, "too") == []


@on_one_broker  # It keeps no metadata of commits, and does not show who is in a group.
async def test_a_broker_that_does_not_say_what_reads_the_topic(lab: Lab) -> None:
    other = lab.changed("other.toml", ('id = "w-', 'id = "other-w-'))
    with other.worker():
        await count_one_frame(other)
        source, group = lab.collection.topics.source, other.config.group
        wanted = f"{source}: note: group {group}, 0 members, reads it too"
        assert await lines_about(lab, "too") == [wanted]


@on_kafka
async def test_another_name_of_the_collection_in_the_same_group(
    running: Broker, tmp_path: Path
) -> None:
    """Workers of one group share the partitions, whatever name they read them under."""
    lab, folder = Lab(running, tmp_path), tmp_path / "other"
    folder.mkdir()
    other = Lab(running, folder, names=("rides",))
    other.file.write_text(lab.file.read_text().replace("[collection.trips]", "[collection.rides]"))
    other.reload()
    with other.worker():
        await count_one_frame(other)
        (line,) = await lines_about(lab, "count it too")
        assert f"in group {lab.config.group} " in line
        assert f"state in {other.collection.topics.changelog}: not as trips: those under " in line


@on_kafka
async def test_other_software_that_reads_the_topic(running: Broker, tmp_path: Path) -> None:
    """An archive may read reports; whoever runs the workers should know of it."""
    lab = Lab(running, tmp_path)
    source = lab.collection.topics.source
    await lab.create(source, partitions=4)
    group = f"archive-{source}"
    consumer = AIOKafkaConsumer(source, bootstrap_servers=running.bootstrap, group_id=group)
    await consumer.start()
    try:
        await consumer.commit({TopicPartition(source, 0): 0})
        wanted = (
            f"{source}: note: group {group}, 1 member, reads it too, by the protocol roundrobin"
        )
        assert await lines_about(lab, group) == [wanted]
    finally:
        await consumer.stop()


async def test_groups_that_a_login_may_not_list(secured: Secured, tmp_path: Path) -> None:
    lab = Lab(secured.broker("SASL_PLAINTEXT", user=STRANGER), tmp_path)
    topics = lab.collection.topics
    permit = f"kafka-acls.sh --bootstrap-server one:9092 --add --allow-principal User:{STRANGER}"
    allowed = "--operation Read --operation Write --operation Create"
    async with secured.administrator() as client:
        for kind in (f"--topic {topics.source}", f"--topic {topics.changelog}"):
            await grant(client, f"{permit} {allowed} --resource-pattern-type prefixed {kind}")
        await grant(client, f"{permit} --operation Read --group {lab.config.group}")
    wanted = (
        "groups: note: whether others read the sources was not looked at: this login may not list "
        "them (Describe on the cluster)"
    )
    assert await lines_about(lab, "groups: ") == []  # There is no source yet.
    await lab.create(topics.source, partitions=4)
    assert await lines_about(lab, "groups: ") == [wanted]

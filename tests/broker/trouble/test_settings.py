"""Settings of brokers and topics that lose something, or stop something: each is told by cause."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import pytest
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError

from tests.broker.conftest import on_kafka
from tests.broker.trouble.test_groups import check, limited, only_reason, reasons
from tests.brokers import Broker, KafkaServer, skip_without_kafka
from tests.lab import START_MS, Lab
from tests.ledger import WINDOW_MS
from tests.ports import free_ports
from tests.processes import PATIENCE_SECONDS, eventually
from tests.stream.cli import spawn

pytestmark = pytest.mark.broker

COMPACTED = {"cleanup.policy": "compact"}
UNREADABLE = b"no frame"


@pytest.fixture(scope="module")
def ports() -> tuple[int, int]:
    """The port of a listener, and the one that it advertises, where nobody listens."""
    bound, advertised = free_ports(2)
    return bound, advertised


@pytest.fixture(scope="module")
def strict(ports: tuple[int, int]) -> Iterator[KafkaServer]:
    """A Kafka that creates no topics by itself, with that listener beside its usual one."""
    skip_without_kafka()
    settings = {"auto.create.topics.enable": "false"}
    with KafkaServer.prepared(settings=settings, listeners={"OUTSIDE": ports}) as server:
        server.start()
        yield server


async def configure(lab: Lab, topic: str, settings: Mapping[str, str]) -> None:
    async with lab.admin() as admin:
        await admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, dict(settings))])


@on_kafka  # the embedded broker neither compacts nor tells the configuration of topics
async def test_compacted_topics_are_told_with_their_setting(lab: Lab) -> None:
    topics = lab.collection.topics
    wanted = []
    for topic in (topics.source, topics.late, topics.rejected, topics.control):
        await lab.create(topic, partitions=1 if topic == topics.control else 4, configs=COMPACTED)
        wanted.append(f"topic {topic} has cleanup.policy=compact, which ")
    code, printed = await asyncio.to_thread(check, lab)
    assert code == 1
    assert [one in printed for one in wanted] == [True] * 4
    with lab.worker() as worker:
        await eventually(lambda: len(reasons(worker)) == 4, what="a reason for each")
        problems = worker.get("/api/collections/trips/status")["problems"]
        assert sorted(reasons(worker)) == sorted(f"trips: {one}" for one in problems)
        for one in wanted:
            (problem,) = (said for said in problems if said.startswith(one))
            assert problem.endswith("set it to delete")
        assert worker.terminate() == 0
        logged = worker.errors()
        assert [logged.count(one) for one in wanted] == [1] * 4


@on_kafka
async def test_a_partition_that_a_compacted_topic_stops_goes_on_once_it_is_not(lab: Lab) -> None:
    topics = lab.collection.topics
    with lab.worker() as worker:
        await configure(lab, topics.rejected, COMPACTED)
        async with lab.producer() as producer, asyncio.timeout(PATIENCE_SECONDS):
            # The broker says that it has the setting before its log follows it.
            with suppress(KafkaError):
                while True:
                    await producer.send_and_wait(topics.rejected, b"without a key", partition=2)
            await producer.send_and_wait(topics.source, UNREADABLE, partition=2)
            value = lab.frame(30, first_ms=START_MS, last_ms=START_MS)
            await producer.send_and_wait(topics.source, value, partition=2)
        refused = (
            "partition 2 cannot be written and is tried again: the broker refuses it for topic "
            f"{topics.rejected} (INVALID_RECORD): a compacted topic takes no record without a key: "
            "set its cleanup.policy to delete"
        )
        await eventually(lambda: f"trips: {refused}" in reasons(worker), what="not ready")
        await configure(lab, topics.rejected, {"cleanup.policy": "delete"})
        await lab.close(START_MS + WINDOW_MS)
        await lab.check_exact()
        await eventually(lambda: f"trips: {refused}" not in reasons(worker), what="written")
        assert worker.terminate() == 0
        assert refused in worker.errors()


@on_kafka
async def test_estimates_of_a_compacted_topic_are_published(lab: Lab) -> None:
    """Documents have keys: of a window's final, and of what is provisional, the newest stays."""
    await lab.create(lab.collection.topics.estimates, partitions=1, configs=COMPACTED)
    code, printed = await asyncio.to_thread(check, lab)
    assert code == 0, printed
    with lab.worker() as worker:
        async with lab.producer() as producer:
            value = lab.frame(30, first_ms=START_MS, last_ms=START_MS)
            await producer.send_and_wait(lab.collection.topics.source, value, partition=2)
        await lab.close(START_MS + WINDOW_MS)
        await lab.check_exact()
        await eventually(lambda: reasons(worker) == [], what="ready")
        assert worker.terminate() == 0
        assert "cleanup.policy" not in worker.errors()


@on_kafka
async def test_a_changelog_that_takes_no_batch_of_the_worker(lab: Lab) -> None:
    topic = lab.collection.topics.changelog
    # A statistic of 12 values fits into the smaller batches that the key allows.
    await lab.create(
        topic,
        partitions=4,
        configs=COMPACTED
        | {"message.timestamp.type": "LogAppendTime", "max.message.bytes": "100000"},
    )
    wanted = (
        f"topic {topic} has max.message.bytes=100000, less than a batch of the worker may have: "
        "set it to 262144 or more, or kafka.max_batch_size to 100000 or less"
    )
    code, printed = await asyncio.to_thread(check, lab)
    assert (code, wanted in printed) == (1, True), printed
    await configure(lab, topic, COMPACTED | {"max.message.bytes": "200"})
    with lab.worker() as worker:
        async with lab.producer() as producer:
            value = lab.frame(30, first_ms=START_MS, last_ms=START_MS)
            await producer.send_and_wait(lab.collection.topics.source, value, partition=2)
        await eventually(
            lambda: any("(MESSAGE_SIZE_TOO_LARGE): raise" in one for one in reasons(worker)),
            what="a refused flush",
        )
        await eventually(
            lambda: any("=200, less than a single record may have" in r for r in reasons(worker)),
            what="why it is refused",
        )
        await configure(lab, topic, COMPACTED)
        await lab.close(START_MS + WINDOW_MS)
        await lab.check_exact()
        await eventually(lambda: reasons(worker) == [], what="ready")
        assert worker.terminate() == 0


async def stopped_without_topics(lab: Lab, *said: str) -> str:
    """Delete the topics of a running worker; return why it has stopped, after it has `said` so."""
    topics = lab.collection.topics
    with lab.worker() as worker:
        for topic in (topics.changelog, topics.source):
            await lab.delete(topic)
        for reason in said:
            await eventually(lambda one=reason: one in reasons(worker), what=reason)
        await eventually(lambda: "has stopped" in str(reasons(worker)), what="stopped")
        await asyncio.sleep(7)  # Longer than a broker may be silent.
        stopped = await only_reason(worker, "has stopped")
        assert stopped.startswith("trips has stopped: ")
        assert worker.terminate() == 0
        assert "no answer from the broker" not in worker.errors()
    return stopped


@on_kafka
async def test_deleted_topics_are_not_taken_for_a_broker_that_does_not_answer(lab: Lab) -> None:
    """By default the broker makes them again for the worker's own clients."""
    assert "created again" in await stopped_without_topics(lab)


async def test_topics_that_stay_deleted_are_told(strict: KafkaServer, tmp_path: Path) -> None:
    lab = Lab(Broker("kafka", strict.bootstrap), tmp_path)
    gone = f"the broker answers, but has no topic {lab.collection.topics.changelog}: was it deleted"
    assert "has been deleted" in await stopped_without_topics(lab, f"{gone}?")


async def test_a_broker_that_deletes_no_topics(tmp_path: Path) -> None:
    with limited(delete_topic_enable="false") as broker:
        lab = Lab(broker, tmp_path)
        await lab.create(lab.collection.topics.changelog, partitions=4, configs=COMPACTED)
        done = await asyncio.to_thread(spawn, "reset", "-c", str(lab.file), "--yes", "trips")
        assert done.returncode == 1
        assert done.stderr.decode() == (
            f"the broker at {broker.bootstrap} deletes no topics (TOPIC_DELETION_DISABLED): set "
            "delete.topic.enable = true on the broker for as long as this takes\n"
        )


@pytest.mark.usefixtures("strict")
async def test_an_advertised_address_that_cannot_be_reached_is_named(
    ports: tuple[int, int], tmp_path: Path
) -> None:
    bound, advertised = ports
    lab = Lab(Broker("kafka", f"127.0.0.1:{bound}"), tmp_path)
    wanted = (
        f"the broker at 127.0.0.1:{bound} answers, but sends clients on to "
        f"127.0.0.1:{advertised}, which cannot be reached from here: set advertised.listeners"
    )
    code, printed = await asyncio.to_thread(check, lab)
    assert (code, wanted in printed) == (1, True), printed
    assert (await asyncio.to_thread(lab.refusal))[-1].startswith(wanted)

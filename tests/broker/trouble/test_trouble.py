"""Topics and brokers that are not as expected: a clear line, and nothing counted wrong."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from aiokafka import TopicPartition
from faust.transport.drivers.aiokafka import Consumer

from ldpstream.agents.broker.embedded import embedded_broker
from ldpstream.agents.engine.patches.worker_app import WorkerApp
from ldpstream.agents.worker import faust_settings
from tests.broker.asking import counted
from tests.broker.conftest import on_kafka, on_one_broker
from tests.brokers import Broker, KafkaServer, skip_without_kafka
from tests.forked import Forked
from tests.lab import START_MS, Lab
from tests.ledger import WINDOW_MS, Ledger
from tests.ports import free_ports
from tests.processes import PATIENCE_SECONDS, Worker, eventually
from tests.stream.cli import spawn

pytestmark = pytest.mark.broker


@on_one_broker
@pytest.mark.parametrize("partitions", [3, 5])
async def test_another_number_of_partitions_ends_the_worker_with_one_line(
    running: Broker, tmp_path: Path, partitions: int
) -> None:
    lab = Lab(running, tmp_path)
    source = lab.collection.topics.source
    await lab.create(source, partitions=partitions)
    more = (
        ", or add partitions: kafka-topics.sh --bootstrap-server BROKER --alter --topic "
        f"{source} --partitions 4"
    )
    (line,) = await asyncio.to_thread(lab.refusal)
    assert line == (
        f"topic {source} has {partitions} partitions, but collection.trips.partitions is 4: "
        f"set collection.trips.partitions = {partitions}{more if partitions < 4 else ''}"
    )


@on_kafka
async def test_a_topic_that_the_broker_created_for_a_device_is_told_with_what_to_do(
    running: Broker, tmp_path: Path
) -> None:
    """By default a broker makes a topic of one partition for whoever sends to it first."""
    lab = Lab(running, tmp_path)
    source = lab.collection.topics.source
    async with lab.producer() as producer:
        await producer.send_and_wait(source, lab.frame(3, first_ms=START_MS, last_ms=START_MS))
    assert any("--alter --topic" in line for line in await asyncio.to_thread(lab.refusal))
    checked = await asyncio.to_thread(spawn, "check", "-c", str(lab.file))
    assert checked.returncode == 1
    assert "set collection.trips.partitions = 1, or add partitions" in checked.stderr.decode()
    await lab.add_partitions(4)
    with lab.worker() as worker:
        await lab.close(START_MS + WINDOW_MS)
        await lab.check_exact()
        assert worker.terminate() == 0


@on_kafka  # the embedded broker does not tell the configuration of topics
async def test_changelog_that_would_lose_state(running: Broker, tmp_path: Path) -> None:
    lab = Lab(running, tmp_path)
    await lab.create(lab.collection.topics.changelog, partitions=4)
    (line,) = await asyncio.to_thread(lab.refusal)
    assert "cleanup.policy=delete, which would delete state" in line


@on_kafka
async def test_topic_created_again_under_a_running_worker(running: Broker, tmp_path: Path) -> None:
    lab = Lab(running, tmp_path, names=("trips", "rides"))
    trips, rides = lab.collection.topics.source, lab.config.collections["rides"].topics.source
    with lab.worker() as worker:
        assert worker.status("/readyz") == 200
        async with lab.producer() as producer:
            value = lab.frame(30, first_ms=START_MS, last_ms=START_MS)
            await producer.send_and_wait(trips, value, partition=2)
            await eventually(lambda: worker.get("/api/collections/trips/windows")["windows"] != [])
            await lab.delete(trips)
            await lab.create(trips, partitions=4)
            await eventually(lambda: worker.status("/readyz") == 503)
            # What comes on the new topic is not counted; other collections go on.
            await producer.client.force_metadata_update()
            other = lab.config.collections["rides"].spec
            value = other.frame([1, 2, 3], times_ms=[START_MS] * 3)
            await producer.send_and_wait(rides, value, partition=0)
        await eventually(lambda: worker.get("/api/collections/rides/windows")["windows"] != [])
        assert sum(head.n for head in await lab.heads()) == 30
        assert worker.terminate() == 0
        (line,) = worker.errors().splitlines()
        assert f"collection trips stops: topic {trips} " in line
        assert "ldpstream reset trips" in line


@on_kafka
async def test_topic_created_again_while_no_worker_runs(lab: Lab) -> None:
    source = lab.collection.topics.source
    async with lab.producer() as producer:
        with lab.worker() as worker:
            value = lab.frame(30, first_ms=START_MS, last_ms=START_MS)
            await producer.send_and_wait(source, value, partition=2)
            await eventually(lambda: worker.get("/api/collections/trips/windows")["windows"] != [])
            assert worker.terminate() == 0
        await lab.delete(source)
        await lab.create(source, partitions=4)
        await producer.client.force_metadata_update()
        lab.ledger = Ledger(lab.collection)
        # More records than the first topic had: offsets alone would not show the change.
        for _ in range(5):
            value = lab.frame(1, first_ms=START_MS, last_ms=START_MS)
            await producer.send_and_wait(source, value, partition=2)
    with lab.worker() as worker:
        await eventually(lambda: worker.status("/readyz") == 503)
        assert worker.terminate() == 0
        (line,) = worker.errors().splitlines()
        assert f"collection trips stops: topic {source} is another one" in line
    assert sum(head.n for head in await lab.heads()) == 30
    reset = await asyncio.to_thread(spawn, "reset", "-c", str(lab.file), "--yes", "trips")
    assert reset.returncode == 0, reset.stderr
    with lab.worker() as worker:
        await lab.close(START_MS + WINDOW_MS)
        await lab.check_exact()
        assert counted(worker) == 5
        assert worker.terminate() == 0
        assert worker.errors() == ""


@on_kafka  # the embedded broker does not delete records
async def test_retention_overtakes_the_worker(running: Broker, tmp_path: Path) -> None:
    lab = Lab(running, tmp_path)
    source = lab.collection.topics.source
    async with lab.producer() as producer:
        with lab.worker() as worker:
            value = lab.frame(30, first_ms=START_MS, last_ms=START_MS)
            await producer.send_and_wait(source, value, partition=2)
            await eventually(lambda: worker.get("/api/collections/trips/windows")["windows"] != [])
            assert worker.terminate() == 0
        lost = lab.collection.spec.frame([1], times_ms=[START_MS])
        for _ in range(5):
            await producer.send_and_wait(source, lost, partition=2)
        await lab.delete_before(TopicPartition(source, 2), 6)
        value = lab.frame(30, first_ms=START_MS, last_ms=START_MS)
        await producer.send_and_wait(source, value, partition=2)
    with lab.worker() as worker:
        await lab.close(START_MS + WINDOW_MS)
        await lab.check_exact()
        assert worker.metrics("ldpstream_lost_offsets_total", collection="trips") == 5
        assert worker.terminate() == 0
        (line,) = worker.errors().splitlines()
        assert line.endswith(f"{source}[2] deleted offsets 1 to 5 before they were read")
    heads = await lab.heads()
    assert sum(head.lost for head in heads) == 5
    assert sum(gap.offsets for head in heads for gap in head.gaps) == 5


@on_kafka  # the embedded broker has no transactions
async def test_aborted_transactions_are_not_counted(running: Broker, tmp_path: Path) -> None:
    lab = Lab(running, tmp_path, window='grace = "1s", idle = "500ms", future = "1s"')
    source = lab.collection.topics.source
    # All but the last are of the window's first moment: while the producer falters partitions are
    # idle, and time goes on. Whatever is aborted would close the window.
    last_ms = START_MS + WINDOW_MS - 1
    after_ms = START_MS + 2 * WINDOW_MS
    with lab.worker() as worker:
        async with lab.transactional_producer() as producer:
            for number in range(30):
                await producer.begin_transaction()
                for partition in (0, 1):
                    if number % 3:
                        time_ms = last_ms if number == 29 else START_MS
                        value = lab.frame(10, first_ms=time_ms, last_ms=time_ms)
                    else:
                        value = lab.collection.spec.frame([1] * 10, times_ms=[after_ms] * 10)
                    await producer.send(source, value, partition=partition)
                await (
                    producer.commit_transaction() if number % 3 else producer.abort_transaction()
                )
        # The log ends with transaction markers; it is read to its end, and its partitions idle.
        await lab.check_exact()
        assert worker.terminate() == 0


@pytest.fixture(scope="module")
def server() -> Iterator[KafkaServer]:
    """A Kafka broker that tests stop and start; it may be either when a test begins."""
    skip_without_kafka()
    with KafkaServer.prepared() as prepared:
        yield prepared


async def test_a_worker_that_starts_before_its_broker_waits_for_it(
    server: KafkaServer, tmp_path: Path
) -> None:
    lab = Lab(Broker("kafka", server.bootstrap), tmp_path)
    server.stop()
    worker = lab.start_worker()
    try:
        await asyncio.sleep(3)
        assert worker.process.poll() is None
        await asyncio.to_thread(server.start)
        await asyncio.to_thread(worker.wait_ready)
        assert worker.status("/readyz") == 200
        assert worker.terminate() == 0
        said = worker.errors().splitlines()
        assert "LDPSTREAM_KAFKA_BOOTSTRAP" in said[0]
        assert said[-1].endswith(f"a broker answers at {server.bootstrap}")
    finally:
        worker.kill()


async def test_broker_goes_away_and_comes_back(server: KafkaServer, tmp_path: Path) -> None:
    lab = Lab(Broker("kafka", server.bootstrap), tmp_path)
    source = lab.collection.topics.source
    if server.running is None:
        await asyncio.to_thread(server.start)
    with lab.worker() as worker:
        async with lab.producer() as producer:
            for partition in range(4):
                value = lab.frame(30, first_ms=START_MS, last_ms=START_MS)
                await producer.send_and_wait(source, value, partition=partition)
            assert worker.status("/readyz") == 200
            server.stop()
            await eventually(lambda: worker.status("/readyz") == 503)
            await asyncio.to_thread(server.start)
            await eventually(lambda: worker.status("/readyz") == 200)
            for partition in range(4):
                value = lab.frame(30, first_ms=START_MS, last_ms=START_MS)
                await producer.send_and_wait(source, value, partition=partition)
        await lab.close(START_MS + WINDOW_MS)
        await lab.check_exact()
        server.stop()
        # With the broker away again, it still ends on SIGTERM.
        assert worker.terminate() == 0
        away, back, *_ = worker.errors().splitlines()
        assert away.endswith(f"no answer from the broker at {server.bootstrap}: waiting for it")
        assert f"the broker at {server.bootstrap} answers again after" in back


_WITHOUT_PARTITIONS = """
import asyncio
from ldpstream.agents.cli.main import main
from ldpstream.agents.engine.patches.worker_app import WorkerApp

async def assigned_nothing(_):
    print("ready to wait", flush=True)
    await asyncio.Event().wait()

WorkerApp._wait_for_table_recovery_completed = assigned_nothing
main()
"""


@on_one_broker
def test_a_worker_that_waits_for_its_first_partitions_ends_when_told(lab: Lab) -> None:
    """Others of the group, or a broker that is away, can keep it waiting for long."""
    worker = Worker(Forked(["worker", "-c", str(lab.file)], program=_WITHOUT_PARTITIONS))
    try:
        worker.wait_ready()
        assert worker.terminate() == 0
        assert worker.errors() == ""
    finally:
        worker.kill()


async def test_the_groups_client_waits_for_a_broker_that_has_just_gone_away(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """It goes away after the topics are checked, before the app starts."""
    (port,) = free_ports(1)
    bootstrap = f"127.0.0.1:{port}"
    for comes in (True, False):
        app = WorkerApp("late", **faust_settings(bootstrap, {}), web_enabled=False)
        thread = cast("Consumer", app.consumer)._thread
        starting = asyncio.create_task(thread.start())
        await asyncio.sleep(0.3)
        assert not starting.done()
        async with asyncio.timeout(PATIENCE_SECONDS):
            if comes:
                with embedded_broker(port=port):
                    await starting
                    await thread.stop()
            else:
                await thread.stop()
                await starting
        thread.thread_loop.close()
    assert "Traceback" not in capfd.readouterr().err

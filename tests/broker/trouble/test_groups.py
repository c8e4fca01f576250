"""A worker that the broker refuses in its group says why, is not ready, and tries again."""

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor

from tests.broker.conftest import on_kafka, on_one_broker
from tests.brokers import Broker, KafkaServer, skip_without_kafka
from tests.configuring import collection
from tests.forked import Forked
from tests.lab import START_MS, Lab
from tests.ledger import WINDOW_MS
from tests.ports import free_ports
from tests.processes import Worker, eventually
from tests.stream.cli import spawn

pytestmark = pytest.mark.broker


@contextmanager
def limited(**settings: object) -> Iterator[Broker]:
    """Run a Kafka with these settings, dots written as underscores."""
    skip_without_kafka()
    named: Mapping[str, object] = {name.replace("_", "."): one for name, one in settings.items()}
    with KafkaServer.prepared(settings=named) as server:
        server.start()
        yield Broker("kafka", server.bootstrap)


def reasons(worker: Worker) -> list[str]:
    """Return why a worker is not ready; empty if it is, or does not serve yet."""
    try:
        with urllib.request.urlopen(worker.url + "/readyz", timeout=10):
            return []
    except urllib.error.HTTPError as error:
        with error:
            return list(json.loads(error.read())["reasons"])
    except OSError:
        return []


async def only_reason(worker: Worker, part: str) -> str:
    """Wait until a worker is not ready for one reason alone, which has this part; return it."""
    found: list[str] = []

    def alone() -> bool:
        found[:] = reasons(worker)
        return len(found) == 1 and part in found[0]

    await eventually(alone, what=part)
    return found[0]


@asynccontextmanager
async def refused(lab: Lab, *said: str) -> AsyncIterator[Worker]:
    """Run a worker that is refused at the beginning of the block, and says so everywhere."""
    (port,) = free_ports(1)
    other = lab.changed("refused.toml", ("127.0.0.1:0", f"127.0.0.1:{port}"))
    worker = lab.start_worker(file=other.file)
    worker.url = f"http://127.0.0.1:{port}"
    try:
        reason = await only_reason(worker, "refuses")
        problem = reason.removeprefix("trips: ")
        # Between two attempts there may be none for a moment.
        path = "/api/collections/trips/status"
        await eventually(lambda: worker.get(path)["problems"] == [problem], what=problem)
        for one in (*said, f"in the group {lab.config.worker.id} (", "it gets no partitions"):
            assert one in problem
        await eventually(lambda: worker.metrics("ldpstream_problems") == 1, what="a problem")
        yield worker
    finally:
        worker.kill()
    assert worker.errors().count(problem) == 1


def check(lab: Lab) -> tuple[int, str]:
    """Return the exit code of `ldpstream check`, and what it prints."""
    done = spawn("check", "-c", str(lab.file))
    return done.returncode, (done.stdout + done.stderr).decode()


async def test_a_session_outside_the_brokers_limits(tmp_path: Path) -> None:
    with limited(group_min_session_timeout_ms=20_000) as broker:
        lab = Lab(broker, tmp_path)
        code, printed = await asyncio.to_thread(check, lab)
        wanted = (
            "kafka.session_timeout_ms: expected 20000 to 1800000, as the broker's "
            "group.min.session.timeout.ms and group.max.session.timeout.ms say, got 6000"
        )
        assert (code, wanted in printed) == (1, True), printed
        async with refused(lab, "INVALID_SESSION_TIMEOUT", "set kafka.session_timeout_ms, 6000"):
            pass
        text = lab.file.read_text()
        lab.file.write_text(text.replace("session_timeout_ms = 6000", "session_timeout_ms = 20000"))
        code, printed = await asyncio.to_thread(check, lab)
        assert (code, "group.min" in printed) == (0, False), printed


async def test_a_full_group_takes_a_worker_once_another_has_left(tmp_path: Path) -> None:
    with limited(group_max_size=1) as broker:
        lab = Lab(broker, tmp_path)
        with lab.worker() as first:
            _, printed = await asyncio.to_thread(check, lab)
            assert "has 1 member, as many as the broker's group.max.size allows" in printed
            async with refused(lab, "GROUP_MAX_SIZE_REACHED", "group.max.size") as second:
                assert first.terminate() == 0
                await eventually(lambda: second.metrics("ldpstream_owned") == 4, what="partitions")
                await eventually(lambda: not reasons(second), what="ready")
                async with lab.producer() as producer:
                    value = lab.frame(30, first_ms=START_MS, last_ms=START_MS)
                    source = lab.collection.topics.source
                    await producer.send_and_wait(source, value, partition=2)
                await lab.close(START_MS + WINDOW_MS)
                await lab.check_exact()
                assert second.terminate() == 0


@on_kafka  # the embedded broker does not compare protocols
async def test_a_group_that_other_software_uses(running: Broker, tmp_path: Path) -> None:
    lab = Lab(running, tmp_path)
    source = lab.collection.topics.source
    await lab.create(source, partitions=4)
    other = AIOKafkaConsumer(
        source,
        bootstrap_servers=running.bootstrap,
        group_id=lab.config.worker.id,
        partition_assignment_strategy=[RoundRobinPartitionAssignor],
    )
    await other.start()
    with suppress(Exception):
        await other.getmany(timeout_ms=100)
    try:
        code, printed = await asyncio.to_thread(check, lab)
        assert code == 1
        wanted = f"group {lab.config.worker.id}: other software uses it, by the protocol roundrobin"
        assert wanted in printed
        async with refused(lab, "INCONSISTENT_GROUP_PROTOCOL", "worker.id") as worker:
            await other.stop()
            await eventually(lambda: worker.metrics("ldpstream_owned") == 4, what="partitions")
            await eventually(lambda: not reasons(worker), what="ready")
    finally:
        await other.stop()


async def test_a_cluster_that_cannot_keep_groups(tmp_path: Path) -> None:
    with limited(offsets_topic_replication_factor=3) as broker:
        lab = Lab(broker, tmp_path)
        code, printed = await asyncio.to_thread(check, lab)
        assert code == 1
        assert f"group {lab.config.worker.id} (COORDINATOR_NOT_AVAILABLE): no broker" in printed
        async with refused(lab, "COORDINATOR_NOT_AVAILABLE", "offsets.topic.replication.factor"):
            pass


def owned(worker: Worker) -> set[int]:
    """Return the partitions that a worker says it owns."""
    partitions = worker.get("/api/collections/trips/status")["partitions"]
    return {partition["partition"] for partition in partitions if partition["owned"]}


@on_kafka
async def test_two_workers_give_the_same_answers(lab: Lab) -> None:
    source = lab.collection.topics.source
    with lab.worker() as one, lab.worker() as two:
        await eventually(lambda: len(owned(one)) == len(owned(two)) == 2)
        assert owned(one) | owned(two) == {0, 1, 2, 3}
        async with lab.producer() as producer:
            for partition in range(4):
                value = lab.frame(100, first_ms=START_MS, last_ms=START_MS + WINDOW_MS - 1)
                await producer.send_and_wait(source, value, partition=partition)
            await lab.close(START_MS + WINDOW_MS)
            await lab.check_exact()
            path = "/api/collections/trips/windows"
            await eventually(lambda: one.get(path)["windows"] == two.get(path)["windows"] != [])
            window = one.get(path)["windows"][0]
            span = window["window"]
            query = f"start={span['start']}&end={span['end']}&top=all"
            answers = [w.get(f"/api/collections/trips/estimate?{query}") for w in (one, two)]
            assert answers[0] == answers[1]
            assert answers[0]["n"] == 400

            # The one that goes hands its partitions over; nothing is lost on the way.
            assert one.terminate() == 0
            await eventually(lambda: owned(two) == {0, 1, 2, 3})
            at_ms = START_MS + WINDOW_MS
            for partition in range(4):
                value = lab.frame(100, first_ms=at_ms, last_ms=at_ms)
                await producer.send_and_wait(source, value, partition=partition)
        await lab.close(at_ms + WINDOW_MS)
        await lab.check_exact()
        assert two.terminate() == 0


_TOLD_NOTHING = """
from aiokafka.client import AIOKafkaClient
from ldpstream.agents.cli.main import main

asked = AIOKafkaClient._metadata_update

async def asks(client, cluster, topics):
    of_the_group = client._client_id.startswith("faust")
    return False if of_the_group else await asked(client, cluster, topics)

AIOKafkaClient._metadata_update = asks
main()
"""


@on_kafka  # the embedded broker tells a client of all topics as it connects
def test_a_leader_assigns_partitions_of_topics_missing_from_its_metadata(lab: Lab) -> None:
    """aiokafka assigns after it has asked about topics, answered or not."""
    worker = Worker(Forked(["worker", "-c", str(lab.file)], program=_TOLD_NOTHING))
    try:
        worker.wait_ready()
        assert owned(worker) == {0, 1, 2, 3}
        assert worker.terminate() == 0
    finally:
        worker.kill()


@on_one_broker
async def test_workers_own_as_many_of_each_collection_and_of_all(
    running: Broker, tmp_path: Path
) -> None:
    alone = collection(partitions=1, window='idle = "off"', extra="")
    four = collection(partitions=4, window='idle = "off"', extra="")
    names = ["trips", "walks", "rides"]
    lab = Lab(running, tmp_path, collections={n: four if n == "trips" else alone for n in names})

    def owns(workers: list[Worker]) -> list[list[int]]:
        """Return how many partitions of `trips` workers own, and of all, each in order."""
        every = [
            [
                sum(p["owned"] for p in worker.get(f"/api/collections/{n}/status")["partitions"])
                for n in names
            ]
            for worker in workers
        ]
        return [sorted(own[0] for own in every), sorted(map(sum, every))]

    with ExitStack() as stack:
        workers = [stack.enter_context(lab.worker()) for _ in range(3)]
        await eventually(lambda: owns(workers) == [[1, 1, 2], [2, 2, 2]])
        workers.pop().kill()
        await eventually(lambda: owns(workers) == [[2, 2], [3, 3]])


@on_kafka  # the embedded broker forgets members whose connections end
async def test_a_worker_says_that_it_waits_for_one_that_was_killed(
    running: Broker, tmp_path: Path
) -> None:
    long = ("session_timeout_ms = 6000", "session_timeout_ms = 20000")
    lab = Lab(running, tmp_path).changed("long.toml", long)
    said = []
    for number in range(2):
        log = tmp_path / f"{number}.log"
        with log.open("wb") as stderr:
            worker = lab.start_worker(stderr=stderr)
        try:
            worker.wait_ready()
        finally:
            worker.kill()
        said.append(log.read_text().count("up to 20 s (session_timeout_ms)"))
    assert said == [0, 1]

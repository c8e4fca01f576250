"""A worker that the broker refuses in its group says why, is not ready, and tries again."""

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor

from tests.broker.conftest import on_kafka
from tests.brokers import Broker, KafkaServer, skip_without_kafka
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

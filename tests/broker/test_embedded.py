"""The embedded broker ends with its parent, and still has the defect that we work around."""

import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from aiokafka import TopicPartition

from ldpstream.agents.broker.embedded import embedded_broker, start_broker
from ldpstream.agents.broker.offsets import end_offsets
from ldpstream.agents.broker.producer import LastingProducer
from ldpstream.agents.broker.refusals import BrokerUnavailableError
from tests.broker.conftest import on_one_broker
from tests.brokers import Broker, wait_until
from tests.lab import START_MS, Lab

pytestmark = pytest.mark.broker

_PARENT = """
import signal, sys, time
from ldpstream.agents.broker.embedded import start_broker
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored below a shell's background job
print(start_broker().bootstrap, flush=True)
time.sleep(60)
"""


def serves(bootstrap: str) -> bool:
    host, _, port = bootstrap.partition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=1.0):
            return True
    except OSError:
        return False


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_it_ends_with_its_parent(number: int) -> None:
    command = [sys.executable, "-c", _PARENT]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as parent:
        assert parent.stdout is not None
        bootstrap = parent.stdout.readline().decode().strip()
        assert serves(bootstrap)
        parent.send_signal(number)
        parent.wait()
    wait_until(lambda: not serves(bootstrap), "the broker's end")


def test_stop_leaves_nothing() -> None:
    with embedded_broker() as broker:
        group = broker.guarded.process.pid
        assert serves(broker.bootstrap)
        # The guard, what it guards, and what waits for its parent's end.
        assert len(running_in(group)) == 3
    assert not serves(broker.bootstrap)
    # Zombies may be left, until init reaps them.
    assert running_in(group) == []


def running_in(group: int) -> list[str]:
    """Return the states of a group's processes that have not ended."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            # The name, in brackets, may hold anything.
            state, _, own_group, *_ = entry.read_text().rpartition(")")[2].split()
            found += [state] if int(own_group) == group and state not in "ZX" else []
    return found


def test_a_taken_port_is_reported() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(BrokerUnavailableError, match="Address already in use"):
            start_broker(port=taken.getsockname()[1])


@on_one_broker
async def test_its_end_offsets_are_still_wrong(running: Broker, tmp_path: Path) -> None:
    """Fails once a release is right: then `ldpstream.agents.broker.offsets` may ask for them."""
    lab = Lab(running, tmp_path, partitions=1)
    topic = lab.collection.topics.source
    await lab.create(topic, partitions=1)
    async with lab.producer(linger_ms=50) as producer:
        for _ in range(10):
            value = lab.collection.spec.frame([1], times_ms=[START_MS])
            await producer.send(topic, value, partition=0)
        await producer.flush()
    partition = TopicPartition(topic, 0)
    async with lab.reader() as reader:
        assert (await end_offsets(reader, [partition]))[partition] == 10
        assert (await reader.end_offsets([partition]))[partition] == 1


@on_one_broker
async def test_a_producer_asks_for_no_topics_but_those_that_it_sends_to(
    running: Broker, tmp_path: Path
) -> None:
    """A cluster may have a hundred thousand partitions, and its metadata go stale often."""
    lab = Lab(running, tmp_path, partitions=2)
    topics = lab.collection.topics
    for topic in (topics.source, topics.changelog, topics.late):
        await lab.create(topic, partitions=2)
    producer = LastingProducer(lab.config.kafka.bootstrap, lab.config.kafka.options)
    await producer.start()
    try:
        await producer.send_records(topics.changelog, 1, [(b"key", b"value")])
        await producer.send_all(topics.late, 0, [(b"value", ())])
        assert producer._producer is not None
        client = producer._producer.client
        await client.force_metadata_update()
        assert client.cluster.topics() == {topics.changelog, topics.late}
    finally:
        await producer.stop()

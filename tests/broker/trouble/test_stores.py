"""A worker's store on disk: a worker resumes from it, alone, and notices what does not fit."""

import asyncio
from pathlib import Path

import pytest
from aiokafka import TopicPartition

from ldpstream.agents.broker.metadata import describe
from ldpstream.agents.broker.offsets import end_offsets
from ldpstream.agents.engine.changelog import ChangelogReader
from ldpstream.agents.engine.stores import Stores
from ldpstream.agents.state.context import Context
from ldpstream.agents.state.replica import Replica
from tests.broker.asking import until_counted
from tests.broker.conftest import on_kafka
from tests.brokers import Broker
from tests.lab import START_MS, Lab
from tests.ledger import WINDOW_MS
from tests.processes import eventually

pytestmark = pytest.mark.broker
WINDOWS = 4


class Counted(Replica):
    """A replica that counts the records it is given."""

    given = 0

    def read(self, records, *, position: int, end: int) -> bool:  # noqa: ANN001 (the replica's)
        self.given += len(records)
        return super().read(records, position=position, end=end)


class Collection:
    """The lab's collection, as a reader of its changelog needs it."""

    def __init__(self, lab: Lab) -> None:
        self.config = lab.collection
        self.context = Context(
            spec=self.config.spec, window=self.config.window, make_final=lambda _: b""
        )
        self.replicas = [Counted(self.context, p) for p in range(self.config.partitions)]


async def send(lab: Lab, *, windows: range) -> None:
    async with lab.producer() as producer:
        for window in windows:
            first_ms = START_MS + window * WINDOW_MS
            for p in range(lab.collection.partitions):
                frame = lab.frame(50, first_ms=first_ms, last_ms=first_ms + WINDOW_MS - 1)
                await producer.send_and_wait(lab.collection.topics.source, frame, partition=p)


@on_kafka
async def test_a_restart_reads_what_the_changelog_has_gained(
    running: Broker, tmp_path: Path
) -> None:
    lab = Lab(running, tmp_path, store="rocksdb")
    changelog = lab.collection.topics.changelog
    with lab.worker() as worker:
        await send(lab, windows=range(2))
        await until_counted(lab, lab.ledger.n)
        refused = lab.start_worker()
        assert refused.wait() == 1
        said = refused.errors()
        assert "is in use by another worker: give each its own worker.data" in said
        assert "Traceback" not in said
        assert refused.process.stdout is not None
        refused.process.stdout.close()
        assert worker.terminate() == 0
    collection, stores = Collection(lab), Stores(lab.config.worker)
    partitions = [TopicPartition(changelog, replica.partition) for replica in collection.replicas]
    async with lab.admin() as admin, lab.reader() as reader:
        found = (await describe(admin, [changelog]))[changelog].id
        assert found is not None
        resumed = stores.open([collection], lambda _: found.bytes)
        ends = await end_offsets(reader, partitions)
        read = ChangelogReader(
            reader,
            dict(zip(partitions, collection.replicas, strict=True)),
            resumed=resumed,
            on_read=lambda _: None,
            on_broken=lambda _, why: pytest.fail(why),
        )
        task = asyncio.create_task(read.run())
        await eventually(lambda: all(replica.head is not None for replica in collection.replicas))
        task.cancel()
    for partition, replica in zip(partitions, collection.replicas, strict=True):
        assert replica.given == ends[partition] - resumed[partition]
        # What it wrote while it ended may not have been read back.
        assert resumed[partition] >= ends[partition] / 2
    stores.close()
    assert [replica.head for replica in collection.replicas] == await lab.heads()
    with lab.worker() as worker:
        await send(lab, windows=range(2, WINDOWS))
        await lab.close(START_MS + WINDOWS * WINDOW_MS)
        await lab.check_exact()
        assert worker.terminate() == 0
        assert not worker.errors()


@on_kafka
async def test_a_changelog_created_again_is_noticed(running: Broker, tmp_path: Path) -> None:
    lab = Lab(running, tmp_path, partitions=1, store="rocksdb")
    with lab.worker() as worker:
        await send(lab, windows=range(2))
        await until_counted(lab, lab.ledger.n)
        assert worker.terminate() == 0
    await lab.delete(lab.collection.topics.changelog)
    with lab.worker() as worker:
        await lab.close(START_MS + WINDOWS * WINDOW_MS)
        await lab.check_exact()
        assert worker.terminate() == 0
        assert "the stored one is of another topic with this name" in worker.errors()

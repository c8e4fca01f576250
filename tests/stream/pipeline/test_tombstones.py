"""Dead records are deleted as fast as they arise; beyond a limit, counting pauses."""

import asyncio
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import cast

import pytest
from aiokafka.errors import KafkaTimeoutError

from ldpstream.agents.broker.producer import LastingProducer
from ldpstream.agents.engine import periodic_tasks as rounds
from ldpstream.agents.engine.engine import Engine
from ldpstream.agents.engine.periodic_tasks import collect_tombstones
from ldpstream.agents.state import partition, replica
from ldpstream.agents.state.windows import WindowSpec
from tests.processes import eventually
from tests.stream.harness import Cluster, frame, make_context

MANY = 70_000


class Replica(replica.Replica):
    """Stands for a replica: keys that are dead until their deletion is read."""

    def __init__(self, dead: int) -> None:
        super().__init__(make_context(WindowSpec(size_ms=1, hop_ms=1)), 0)
        self._dead = {b"%d" % number: None for number in range(dead)}

    def deleted(self, key: bytes) -> None:
        del self._dead[key]


class Log:
    """A changelog that acknowledges deletions at once, and shows them while `shown` is true."""

    def __init__(self, *dead: int) -> None:
        self.replicas = [Replica(number) for number in dead]
        self.asked: list[tuple[int, list[bytes]]] = []
        self.refusing = 0
        self.shown = True
        self.failures: list[str] = []

    async def send_records(
        self, topic: str, partition: int, records: Sequence[tuple[bytes, None]]
    ) -> None:
        await asyncio.sleep(0)
        keys = [key for key, _ in records]
        self.asked.append((partition, keys))
        if self.refusing:
            self.refusing -= 1
            raise KafkaTimeoutError
        if self.shown:
            self.show(partition, keys)

    def show(self, partition: int, keys: Sequence[bytes]) -> None:
        for key in keys:
            self.replicas[partition].deleted(key)

    @contextmanager
    def swept(self) -> Iterator[None]:
        """Collect tombstones for the length of a block."""
        held = frozenset(range(len(self.replicas)))
        config = SimpleNamespace(name="trips", topics=SimpleNamespace(changelog="state"))
        engine = SimpleNamespace(
            loaded_partitions=held, replicas=self.replicas, config=config, fail=self.failures.append
        )
        task = asyncio.create_task(
            collect_tombstones([cast("Engine", engine)], cast("LastingProducer", self))
        )
        try:
            yield
        finally:
            task.cancel()
        assert self.failures == []


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "_LOOK_SECONDS", 0.0)
    # Records are deleted because they are many, not because time has passed.
    monkeypatch.setattr(rounds, "_SWEEP_SECONDS", math.inf)
    monkeypatch.setattr(rounds, "_MOST_SWEEP_SECONDS", math.inf)


async def test_many_tombstones_are_written_at_once_and_fairly_to_all_partitions() -> None:
    log = Log(MANY, 5, MANY)
    log.refusing = 2
    with log.swept():
        await eventually(lambda: max(t.dead_records for t in log.replicas) < rounds._MANY_RECORDS)
    assert log.replicas[1].dead_records == 0
    assert {partition for partition, _ in log.asked[:3]} == {0, 1, 2}
    assert max(len(keys) for _, keys in log.asked) <= rounds._RECORDS_A_ROUND


async def test_a_tombstone_is_not_sent_again_before_it_is_read() -> None:
    log = Log(MANY)
    log.shown = False
    with log.swept():
        await eventually(lambda: sum(len(keys) for _, keys in log.asked) >= MANY)
        await asyncio.sleep(0.01)
        sent = [key for _, keys in log.asked for key in keys]
        assert len(sent) == len(set(sent)) == MANY
        log.show(0, sent)
        log.replicas[0] = Replica(0)


async def test_a_few_tombstones_wait_for_the_next_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log(100, 0)
    with log.swept():
        await asyncio.sleep(0.05)
        assert log.asked == []
        monkeypatch.setattr(rounds, "_SWEEP_SECONDS", 0.0)
        await eventually(lambda: log.replicas[0].dead_records == 0)
    assert [partition for partition, _ in log.asked] == [0]


def test_a_partition_with_too_much_to_delete_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition, "DEAD_LIMIT", 5)
    cluster = Cluster(make_context(WindowSpec(size_ms=1_000, hop_ms=1_000)))
    full = []
    for _ in range(4):
        cluster.produce(0, frame((0, 0)))
        cluster.ingest(0)
        cluster.flush(0)
        full.append(cluster.part().full)
    # A flush supersedes a head, a chunk and a pane's totals.
    assert [cluster.replicas[0].dead_records, full] == [9, [False, False, True, True]]
    cluster.sweep(0)
    assert not cluster.part().full
    # The next owner is full as well.
    for _ in range(2):
        cluster.produce(0, frame((0, 0)))
        cluster.ingest(0)
        cluster.flush(0)
    loaded = cluster.take_over(0)
    assert loaded.full

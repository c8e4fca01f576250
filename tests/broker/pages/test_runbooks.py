"""docs/how-to/back-up-and-restore.md, as it stands.

Nothing is lost or counted twice, and unsafe ways are refused.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from aiokafka import TopicPartition

from ldpstream.agents.broker.metadata import describe
from tests.broker.asking import counted, until_counted
from tests.broker.conftest import on_kafka
from tests.brokers import Broker, broker, skip_without_kafka
from tests.configuring import collection
from tests.lab import START_MS, Lab
from tests.ledger import WINDOW_MS
from tests.pages import Block, Place, agrees, blocks
from tests.processes import PATIENCE_SECONDS, Worker, eventually
from tests.stream.cli import spawn

pytestmark = [pytest.mark.broker, on_kafka]

LIVE = 'grace = "3s", future = "3s", idle = "4s"'
HOLDING = 'grace = "2h", future = "3s", idle = "off"'


@pytest.fixture(scope="module")
def other() -> Iterator[Broker]:
    """Another cluster."""
    skip_without_kafka()
    with broker("kafka") as running:
        yield running


def commands(heading: str, page: str = "docs/how-to/back-up-and-restore.md") -> list[Block]:
    """Return the page's commands below a heading."""
    found = [one for one in blocks(page) if one.heading == heading]
    assert found
    return found


async def follow(place: Place, block: Block) -> None:
    """Run commands of the page, and compare what they print with what it shows."""
    said = await asyncio.to_thread(place.shell, block.code)
    assert agrees(said, block), said


def place_of(lab: Lab) -> Place:
    return Place.made(lab.file.parent, {})


@asynccontextmanager
async def devices(lab: Lab) -> AsyncIterator[None]:
    """Send reports dated now to all partitions for the length of the block."""
    source, partitions = lab.collection.topics.source, lab.collection.partitions

    async def send() -> None:
        async with lab.producer() as producer:
            for number in range(1_000_000):
                now_ms = time.time_ns() // 1_000_000
                frame = lab.frame(5, first_ms=now_ms - 20, last_ms=now_ms)
                # Not cancelled halfway: the ledger has entered it.
                await asyncio.shield(
                    producer.send_and_wait(source, frame, partition=number % partitions)
                )
                await asyncio.sleep(0.02)

    task = asyncio.create_task(send())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def replay(lab: Lab, windows: range) -> None:
    """Send reports of these windows, in event time's order, to all partitions."""
    async with lab.producer() as producer:
        for window in windows:
            first_ms = START_MS + window * WINDOW_MS
            for partition in range(lab.collection.partitions):
                frame = lab.frame(50, first_ms=first_ms, last_ms=first_ms + WINDOW_MS - 1)
                await producer.send(lab.collection.topics.source, frame, partition=partition)
        await producer.flush()


async def until_final(lab: Lab, windows: int) -> None:
    """Wait until so many windows are final."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while len(await lab.finals()) < windows:  # noqa: ASYNC110 (no event)
            await asyncio.sleep(0.3)


def stop(worker: Worker) -> None:
    assert worker.terminate() == 0
    worker.kill()


async def test_a_back_up_made_while_workers_count_is_restored_exactly(lab: Lab) -> None:
    place = place_of(lab)
    (back_up,), (restore,) = commands("Back up"), commands("Restore")
    with lab.worker() as worker:
        await replay(lab, range(3))
        await follow(place, back_up)
        await replay(lab, range(3, 6))
        await until_counted(lab, lab.ledger.n)
        running = await asyncio.to_thread(spawn, *_restore(lab.file))
        assert b"stop all workers first" in running.stderr
        stop(worker)
    await lab.delete(lab.collection.topics.changelog)
    await follow(place, restore)
    # What the back-up has, and what came since, before and after the restore.
    with lab.worker():
        await replay(lab, range(6, 8))
        await lab.close(START_MS + 8 * WINDOW_MS)
        await lab.check_exact()
    heads = await lab.heads()
    assert sum(head.n for head in heads) == lab.ledger.n
    assert sum(head.late for head in heads) == 0


async def test_a_back_up_under_load_loses_and_doubles_nothing(running: Broker, tmp_path: Path):
    seconds = collection(partitions=4, window=LIVE, extra="", size="1s")
    lab = Lab(running, tmp_path, collections={"trips": seconds})
    place = place_of(lab)
    (back_up,), (restore,) = commands("Back up"), commands("Restore")
    with lab.worker() as one, lab.worker() as two:
        async with devices(lab):
            for windows in (1, 3):
                await until_final(lab, windows)
                await follow(place, back_up)
            # These become final twice.
            await until_final(lab, 5)
        stop(one)
        stop(two)
    await follow(place, restore)
    with lab.worker():
        await lab.check_exact()
    assert sum(head.late for head in await lab.heads()) == 0


async def test_a_collection_moves_to_another_cluster(
    running: Broker, other: Broker, tmp_path: Path
) -> None:
    seconds = collection(partitions=4, window=LIVE, extra="", size="1s")
    lab = Lab(running, tmp_path, collections={"trips": seconds})
    place = place_of(lab)
    old = lab.changed("old.toml", (LIVE, HOLDING))
    new = old.changed("new.toml", (running.bootstrap, other.bootstrap))
    old.ledger = new.ledger = lab.ledger
    store, go_on = commands("Move to another cluster")
    # 1. Windows are held open.
    with lab.worker() as worker:
        async with devices(lab):
            await until_final(lab, 1)
            stop(worker)
            worker = old.start_worker()
            await asyncio.to_thread(worker.wait_ready)
            # 2. Devices move, some earlier than others.
            with new.worker() as first:
                stop(first)
            async with devices(new):
                # A state that is still counted would go on in both clusters.
                await follow(place, commands("Back up")[0])
                asked = await asyncio.to_thread(spawn, *_restore(new.file))
                assert asked.returncode == 1
                assert b"nothing was changed" in asked.stderr
                assert b"let a worker there count the rest, stop it" in asked.stderr
        # 3. The rest is counted.
        async with devices(new):
            sent = len(await old.records(old.collection.topics.source))
            async with asyncio.timeout(PATIENCE_SECONDS):
                while sum(head.next for head in await old.heads()) != sent:  # noqa: ASYNC110 (no event)
                    await asyncio.sleep(0.3)
            stop(worker)
            await follow(place, store)
            # 4. The state goes on there.
            await follow(place, go_on)
            with new.worker() as working:
                before = counted(working)
                await eventually(lambda: counted(working) > before)
                stop(working)
    # 5. Windows close.
    live = new.changed("live.toml", (HOLDING, LIVE))
    live.ledger = lab.ledger
    with live.worker():
        published = await lab.finals()
        left = lab.ledger.windows.keys() - published.keys()
        assert left, "some windows were open during the move"
        await _check_finals(live, published)
    heads = await live.heads()
    assert sum(head.n for head in heads) == lab.ledger.n
    assert sum(head.late for head in heads) == 0


async def _check_finals(lab: Lab, published: dict[int, list[dict[str, object]]]) -> None:
    """Wait until every window is final in one cluster or the other, with the ledger's counts."""
    wanted = {start: int(s.sum()) for start, s in lab.ledger.windows.items()}
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not wanted.keys() <= (found := published | await lab.finals()).keys():  # noqa: ASYNC110 (no event)
            await asyncio.sleep(0.3)
    assert {start: documents[0]["n"] for start, documents in found.items()} == wanted


async def test_a_copied_state_is_refused(running: Broker, other: Broker, tmp_path: Path) -> None:
    """What MirrorMaker 2 copies: all messages in their order, at offsets of their own."""
    lab = Lab(running, tmp_path)
    new = lab.changed("new.toml", (running.bootstrap, other.bootstrap))
    with lab.worker() as worker:
        await replay(lab, range(2))
        await until_counted(lab, lab.ledger.n)
        stop(worker)
    with new.worker() as worker:
        stop(worker)
    for topic in (lab.collection.topics.source, lab.collection.topics.changelog):
        async with new.producer() as producer:
            for record in await lab.records(topic):
                await producer.send(
                    topic,
                    record.value,
                    key=record.key,
                    partition=record.partition,
                    timestamp_ms=record.timestamp,
                )
            await producer.flush()
    with new.worker() as worker:
        (problem,) = worker.get("/api/collections/trips/status")["problems"]
        stop(worker)
    assert "the state was copied from another cluster" in problem
    assert "--restore FILE" in problem
    # Nor is it worth a back-up, of which nothing could go on.
    words = ["backup", "-c", str(new.file), "trips", str(tmp_path / "trips.backup")]
    stored = await asyncio.to_thread(spawn, *words)
    assert b"is another one than the state was counted from" in stored.stderr
    # Nor can a back-up go on there: what it has counted would be counted again.
    words = ["backup", "-c", str(lab.file), "trips", str(tmp_path / "trips.backup")]
    stored = await asyncio.to_thread(spawn, *words)
    assert b"it can move to another cluster" in stored.stdout
    asked = await asyncio.to_thread(spawn, *_restore(new.file))
    assert asked.returncode == 1
    assert b"has a copy of what" in asked.stderr
    assert b"which would count twice" in asked.stderr


async def test_one_of_two_collections_is_erased(running: Broker, tmp_path: Path) -> None:
    lab = Lab(running, tmp_path, names=("trips", "rides"))
    place = place_of(lab)
    (tmp_path / "old.toml").write_text(lab.file.read_text())
    trips, rides = lab.collection.topics, lab.of("rides")
    with lab.worker() as worker:
        await replay(lab, range(2))
        await replay(rides, range(2))
        await until_counted(lab, lab.ledger.n)
        await eventually(lambda: worker.get("/readyz")["ready"])
        async with lab.admin() as admin, asyncio.timeout(PATIENCE_SECONDS):
            group = lab.config.worker.id
            while not _of(trips.source, await admin.list_consumer_group_offsets(group)):  # noqa: ASYNC110 (no event)
                await asyncio.sleep(0.1)
        asked = await asyncio.to_thread(
            spawn, "reset", "-c", str(tmp_path / "old.toml"), "--erase", "--yes", "trips"
        )
        assert b"or restart them without trips" in asked.stderr
        stop(worker)
    before, _, after = lab.file.read_text().partition("[collection.trips]")
    lab.file.write_text(before + "[collection.rides]" + after.partition("[collection.rides]")[2])
    # The other one is counted meanwhile.
    with rides.worker():
        (erase,) = commands("Erase a collection", "docs/how-to/erase-data.md")
        await follow(place, erase)
        async with lab.admin() as admin:
            assert not await describe(admin, trips.names())
            assert not _of(trips.source, await admin.list_consumer_group_offsets(group))
        await replay(rides, range(2, 4))
        await rides.close(START_MS + 4 * WINDOW_MS)
        await rides.check_exact()


def _of(topic: str, offsets: dict[TopicPartition, object]) -> bool:
    return any(partition.topic == topic for partition in offsets)


def _restore(file: Path) -> tuple[str, ...]:
    backup = file.with_name("trips.backup")
    return "reset", "-c", str(file), "--restore", str(backup), "--yes", "trips"

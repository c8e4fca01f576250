"""Configurations change while reports flow: each is counted once, by its own spec's state."""

import asyncio
import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np
import pytest

from ldpstream.mechanisms.wire.spec import CollectionSpec
from tests.broker.asking import counted
from tests.broker.conftest import on_kafka
from tests.broker.flow import Flow
from tests.brokers import Broker
from tests.lab import START_MS, Lab
from tests.ledger import WINDOW_MS
from tests.processes import Worker, eventually
from tests.stream.cli import invoke

pytestmark = [pytest.mark.broker, on_kafka]


GROWN = "partitions 2 to 3 wait, and no window closes, until all workers are restarted with 4"


@contextmanager
def fleet() -> Iterator[list[Worker]]:
    """Yield a list whose workers are killed at the end."""
    workers: list[Worker] = []
    try:
        yield workers
    finally:
        for worker in workers:
            worker.kill()


async def start(
    workers: list[Worker], lab: Lab, *, stderr: int | IO[bytes] = subprocess.PIPE
) -> Worker:
    worker = lab.start_worker(stderr=stderr)
    workers.append(worker)
    await asyncio.to_thread(worker.wait_ready)
    return worker


async def replace(workers: list[Worker], lab: Lab) -> Worker:
    """End the oldest worker as an operator does, and start one by this configuration."""
    assert await asyncio.to_thread(workers[0].terminate) == 0
    workers.pop(0).kill()
    return await start(workers, lab)


async def test_a_spec_changes_while_devices_move(running: Broker, tmp_path: Path) -> None:
    old = Lab(running, tmp_path)
    new = old.changed("new.toml", *CHANGED)
    with fleet() as workers:
        await asyncio.gather(start(workers, old), start(workers, old))
        async with old.producer() as producer:
            flow = Flow(producer, [old] * 4, garbage=True)
            async with flow.run():
                await asyncio.sleep(1)
                await replace(workers, new)
                # An old and a new worker share the partitions, and devices begin to move.
                flow.devices[0] = new
                await asyncio.sleep(1)
                flow.devices[1] = new
                newest = await replace(workers, new)
                flow.devices[2] = flow.devices[3] = new
                await asyncio.sleep(1)
            await old.close(flow.end_ms)
        await old.check_exact()
        await new.check_exact()
        print_of_old = old.collection.spec.fingerprint.hex()
        path = f"/api/collections/trips/status?fingerprint={print_of_old}"
        await eventually(lambda: newest.get(path)["counted"] == old.ledger.n)
        path = "/api/collections/trips/status"
        await eventually(lambda: newest.get(path)["counted"] == new.ledger.n)
        assert newest.metrics("ldpstream_problems") == 0
        assert newest.metrics("ldpstream_accepted_problems") == 0
        for worker in workers:
            assert worker.terminate() == 0
            assert worker.errors() == ""
    # Bad messages were rejected once, as were messages of the new spec that old workers read.
    copies = await old.records(old.collection.topics.rejected)
    early = {
        (dict(copy.headers)["partition"], dict(copy.headers)["offset"])
        for copy in copies
        if dict(copy.headers)["reason"] == b"fingerprint"
    }
    fingerprint = new.collection.spec.fingerprint
    assert all(
        (copy.value or b"")[4:12] == fingerprint
        for copy in copies
        if dict(copy.headers)["reason"] == b"fingerprint"
    )
    wanted = {"undecodable": flow.garbage} | ({"fingerprint": len(early)} if early else {})
    assert await rejected(old, new) == wanted


def tables(lab: Lab, *names: str) -> list[tuple[str, str]]:
    """Return the changes that leave only the tables of these collections."""
    found = lab.file.read_text().split("[collection.")[1:]
    return [(f"[collection.{t}", "") for t in found if t.split("]")[0] not in names]


async def test_collections_come_change_and_go(running: Broker, tmp_path: Path) -> None:
    trips = Lab(running, tmp_path, names=("trips", "rides", "walks"))
    first = trips.changed("first.toml", *tables(trips, "trips", "rides"))
    changed = ("top = 12", "top = 6")
    second = trips.changed("second.toml", *tables(trips, "trips", "walks"), changed)
    rides, walks = trips.of("rides"), trips.of("walks")
    # Devices of a collection may begin before it is configured.
    await walks.create(walks.collection.topics.source, partitions=4)
    with fleet() as workers:
        await asyncio.gather(start(workers, first), start(workers, first))
        async with trips.producer() as producer:
            flow = Flow(producer, [trips, rides, walks])
            async with flow.run():
                await asyncio.sleep(1)
                await replace(workers, second)
                await asyncio.sleep(0.5)
                newest = await replace(workers, second)
                await asyncio.sleep(0.5)
            for lab in (trips, walks):
                await lab.close(flow.end_ms)
                await lab.check_exact()
            documents = [
                document for found in (await trips.finals()).values() for document in found
            ]
            assert {len(document["distribution"]) for document in documents} <= {6, 12}
            assert len(documents[-1]["distribution"]) == 6
            listed = newest.get("/api/collections")["collections"]
            assert [one["name"] for one in listed] == ["trips", "walks"]
            # Reports of the removed collection wait in its topic, and its state in its changelog.
            assert sum(head.n for head in await rides.heads()) < rides.ledger.n
            for worker in workers:
                assert worker.terminate() == 0
                assert worker.errors() == ""
                worker.kill()
            workers.clear()
            worker = await start(workers, trips)
            await rides.close(flow.end_ms)
            await rides.check_exact()
            assert worker.metrics("ldpstream_lost_offsets_total") == 0
            assert worker.terminate() == 0


async def test_partitions_are_added_while_reports_of_two_specs_flow(
    running: Broker, tmp_path: Path
) -> None:
    old, said = Lab(running, tmp_path, partitions=2), tmp_path / "said"
    new = old.changed("new.toml", *CHANGED)
    path = "/api/collections/trips/status"
    specs = [one.collection.spec.fingerprint.hex() for one in (old, new)]
    paths = ["/metrics", "/api/collections", "/api/collections/trips", "/healthz"]
    paths += [f"{path}?fingerprint={one}" for one in specs]
    with fleet() as workers, said.open("wb") as stream:
        await start(workers, new, stderr=stream)
        await start(workers, new)
        async with new.producer() as producer:
            flow = Flow(producer, [old, new])
            async with flow.run():
                await asyncio.sleep(1)
                await new.add_partitions(4)
                await producer.client.force_metadata_update()
                flow.partitions = 4
                # Nothing is late in the new partitions: no window closed before they were counted.
                await eventually(lambda: GROWN in said.read_text(), what=GROWN)
                # Meanwhile the known partitions are counted, and other questions are answered.
                known = counted(workers[1])
                await eventually(lambda: counted(workers[1]) > known + 100, what="counting")
                await eventually(lambda: workers[1].status("/readyz") == 503)
                assert [workers[1].status(one) for one in paths] == [200] * len(paths)
                await eventually(lambda: GROWN in str(workers[1].get(path)["problems"]), what=GROWN)
                answer = workers[1].get(path)
                assert (answer["stopped"], answer["ready"]) == (False, True)
                assert await asyncio.to_thread(workers[0].terminate) == 0
                newest = await replace(workers, new)
                # Whoever owns partition 0: the next one is restarted once this one is ready.
                await eventually(lambda: newest.status("/readyz") == 200)
                newest = await replace(workers, new)
                await asyncio.sleep(0.5)
            await new.close(flow.end_ms)
        for lab in (old, new):
            await lab.check_exact()
            assert sum(head.late for head in await lab.heads()) == 0
        await eventually(lambda: all(p["counted"] > 0 for p in newest.get(path)["partitions"]))
        assert len(newest.get(path)["partitions"]) == 4
        await eventually(lambda: newest.metrics("ldpstream_problems") == 0, what="no problem")
        for worker in workers:
            assert worker.terminate() == 0
            assert worker.errors() == ""


CHANGED = (
    ("epsilon = 1.0", 'epsilon = 2.0\naccept = ["ldpstream.toml"]'),
    ("size = 12", "size = 20"),
)


def foreign(lab: Lab) -> bytes:
    """Return a frame of a spec that no worker accepts."""
    mapping = {"mechanism": "block-hadamard", "epsilon": 3.0, "domain": {"size": 12}}
    spec = CollectionSpec.from_mapping("trips", mapping, base=lab.file.parent)
    return spec.frame([3], times_ms=np.array([START_MS]))


async def rejected(*labs: Lab) -> dict[str, int]:
    """Return the rejected messages by reason, over all states."""
    found: dict[str, int] = {}
    for lab in labs:
        for head in await lab.heads():
            for reason, count in head.rejected.items():
                found[reason] = found.get(reason, 0) + count
    return found


async def abort(lab: Lab) -> None:
    """Send reports in a transaction that is aborted."""
    frame = lab.collection.spec.frame_reports(lab.reports(5), times_ms=np.full(5, START_MS))
    async with lab.transactional_producer() as producer:
        await producer.begin_transaction()
        for partition in range(4):
            await producer.send(lab.collection.topics.source, frame, partition=partition)
        await producer.abort_transaction()


async def test_a_changed_spec_takes_both_kinds_of_reports(running: Broker, tmp_path: Path) -> None:
    lab = Lab(running, tmp_path)
    source = lab.collection.topics.source
    new = lab.changed("new.toml", *CHANGED)
    old_print, new_print = (one.collection.spec.fingerprint.hex() for one in (lab, new))
    async with lab.producer() as producer:

        async def send(*labs: Lab, start_ms: int, garbage: bool = True) -> None:
            for partition in range(4):
                for one in labs:
                    value = one.frame(30, first_ms=start_ms, last_ms=start_ms + WINDOW_MS - 1)
                    await producer.send(source, value, partition=partition)
                if garbage:
                    for value in (b"no frame", foreign(lab), None):
                        await producer.send(source, value, partition=partition, key=b"k")
            await producer.flush()

        with lab.worker() as worker:
            await send(lab, start_ms=START_MS)
            await eventually(lambda: worker.metrics("ldpstream_rejected_total") == 12)
            assert worker.terminate() == 0
        await send(lab, new, start_ms=START_MS)
        await abort(lab)
        with new.worker() as worker:
            await send(lab, new, start_ms=START_MS + WINDOW_MS)
            late = lab.collection.spec.frame_reports(lab.reports(3), times_ms=np.full(3, START_MS))
            await lab.close(START_MS + 2 * WINDOW_MS)
            await lab.check_exact()
            await new.check_exact()
            await producer.send_and_wait(source, late, partition=1)
            name = "ldpstream_accepted_reports_total"
            await eventually(lambda: worker.metrics(name, result="late") == 3)

            # What the worker decided, in all and of the old spec.
            assert worker.metrics(name, result="counted", fingerprint=old_print) == 8 * 30
            assert worker.metrics(name, result="rejected") == 0
            counted = worker.metrics("ldpstream_reports_total", result="counted")
            assert counted == 8 * 30 + new.ledger.n
            assert worker.metrics("ldpstream_reports_total", result="rejected") == 2 * 12
            assert worker.metrics("ldpstream_lost_offsets_total") == 0
            assert worker.metrics("ldpstream_accepted_ready") == 1

            (listed,) = worker.get("/api/collections")["collections"]
            assert listed["fingerprint"] == new_print
            assert [one["fingerprint"] for one in listed["accepted"]] == [old_print]
            for one in (lab, new):
                fingerprint = one.collection.spec.fingerprint.hex()
                asked = ["query", worker.url, "trips", "--all", "--json"]
                result = await asyncio.to_thread(invoke, *asked, "--fingerprint", fingerprint)
                assert result.exit_code == 0, result.stderr
                documents = json.loads(result.stdout)["windows"]
                assert [document["n"] for document in documents] == [
                    int(one.ledger.windows[start].sum()) for start in sorted(one.ledger.windows)
                ]
                assert {document["fingerprint"] for document in documents} == {fingerprint}
                status = worker.get(f"/api/collections/trips/status?fingerprint={fingerprint}")
                assert status["counted"] == one.ledger.n
            result = await asyncio.to_thread(invoke, "status", worker.url)
            assert result.exit_code == 0
            assert old_print in result.stdout
            assert new_print in result.stdout
            assert worker.terminate() == 0
            assert worker.errors() == ""
    # A worker with the old file alone says that another spec has the state now.
    with lab.worker() as worker:
        assert worker.terminate() == 0
    assert "trips: its state was handed over to another spec" in worker.errors()
    # Each bad message was rejected by one of the states, and copied once.
    assert await rejected(lab, new) == {"undecodable": 24, "fingerprint": 12}
    copies = await lab.records(lab.collection.topics.rejected)
    positions = [(dict(c.headers)["partition"], dict(c.headers)["offset"]) for c in copies]
    assert len(positions) == len(set(positions)) == 36
    keys = {record.key for record in await lab.records(lab.collection.topics.estimates)}
    assert {key.split(b"/")[0].decode() for key in keys if key} == {old_print, new_print}

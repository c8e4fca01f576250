"""A spec changes under its topic: both specs' reports are counted, each once, by its own state."""

import asyncio
import json
from pathlib import Path

import numpy as np
import pytest

from ldpstream.mechanisms.wire.spec import CollectionSpec
from tests.broker.conftest import on_kafka
from tests.brokers import Broker
from tests.lab import START_MS, Lab
from tests.ledger import WINDOW_MS
from tests.processes import eventually
from tests.stream.cli import invoke

pytestmark = [
    pytest.mark.broker,
    on_kafka,  # nothing here depends on the broker
]

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

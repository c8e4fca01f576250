"""From devices to finals through a real broker: each report has one outcome, counts are exact."""

import asyncio
import json
from typing import Any

import numpy as np
import pytest

from ldpstream.mechanisms.wire.spec import CollectionSpec
from tests.broker.conftest import on_one_broker
from tests.lab import START_MS, Lab
from tests.ledger import WINDOW_MS
from tests.processes import PATIENCE_SECONDS

pytestmark = pytest.mark.broker


async def test_counts_equal_the_ledger(lab: Lab) -> None:
    with lab.worker() as worker:
        async with lab.producer() as producer:
            for i in range(60):
                first_ms = START_MS + i // 20 * WINDOW_MS
                value = lab.frame(200, first_ms=first_ms, last_ms=first_ms + WINDOW_MS - 1)
                await producer.send(lab.collection.topics.source, value, partition=i % 4)
        await lab.close(START_MS + 3 * WINDOW_MS)
        await lab.check_exact()
        listed = worker.get("/api/collections/trips/windows?all=true")
        assert sum(window["n"] for window in listed["windows"]) == lab.ledger.n
        assert worker.terminate() == 0
        assert worker.errors() == ""


@on_one_broker
async def test_late_and_rejected_are_counted_and_copied(lab: Lab) -> None:
    spec = lab.collection.spec
    topics = lab.collection.topics
    other = CollectionSpec.from_mapping(
        "trips",
        {"mechanism": "block-hadamard", "epsilon": 2.0, "domain": {"size": 12}},
        base=lab.file.parent,
    )
    outputs = spec.mechanism.outputs
    good = lab.frame(10, first_ms=START_MS, last_ms=START_MS)
    wrong_range = bytearray(spec.frame_reports(np.zeros(1, int), times_ms=np.array([START_MS])))
    wrong_range[-1] = outputs
    later = START_MS + WINDOW_MS
    bad = {
        "undecodable": b"no frame",
        "fingerprint": other.frame([3], times_ms=np.array([START_MS])),
        "range": bytes(wrong_range),
        "future": spec.frame([3], times_ms=np.array([4_000_000_000_000])),
    }
    with lab.worker() as worker:
        async with lab.producer() as producer:
            for value in [good, *bad.values(), None]:
                await producer.send_and_wait(topics.source, value, partition=2, key=b"secret")
            await producer.send(
                topics.source, lab.frame(7, first_ms=later, last_ms=later), partition=2
            )
            late = spec.frame_reports(lab.reports(5), times_ms=np.full(5, START_MS))
            await producer.send_and_wait(topics.source, late, partition=2)
        await lab.close(START_MS + 2 * WINDOW_MS)
        await lab.check_exact()
        assert worker.terminate() == 0

    copies = await lab.records(topics.rejected)
    reasons = sorted(dict(copy.headers)["reason"].decode() for copy in copies)
    assert reasons == sorted([*bad, "undecodable"])
    for copy in copies:
        headers = dict(copy.headers)
        assert copy.key is None
        assert headers["partition"] == b"2"
        assert int(headers["offset"]) in range(1, 6)
    (copy,) = await lab.records(topics.late)
    assert dict(copy.headers) == {"reason": b"late", "partition": b"2", "offset": b"7"}
    assert copy.value == late
    (final,) = (await lab.finals())[START_MS + WINDOW_MS]
    assert final["rejected"] == 5


@on_one_broker
async def test_provisional_and_final_have_different_keys_and_the_published_queries(
    lab: Lab,
) -> None:
    blocks = [value // 4 for value in range(12)]
    lab = lab.changed("means.toml", ("top = 12", f"top = 12, linear = {{ block = {blocks} }}"))
    with lab.worker() as worker:
        async with lab.producer() as producer:
            value = lab.frame(50, first_ms=START_MS, last_ms=START_MS)
            await producer.send_and_wait(lab.collection.topics.source, value, partition=1)
        keys: dict[bytes, dict[str, Any]] = {}
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not keys:
                await asyncio.sleep(0.2)
                records = await lab.records(lab.collection.topics.estimates)
                keys = {record.key or b"": json.loads(record.value or b"") for record in records}
        ((key, document),) = keys.items()
        assert key.endswith(b"/provisional")
        assert not document["final"]
        assert document["n"] == 50
        # The block is disclosed, so its mean is exact.
        decoder = lab.collection.spec.mechanism.decoder
        counts = decoder.group_reports(lab.ledger.windows[START_MS])
        (mean,) = document["linear"]
        assert (mean["name"], mean["low"], mean["high"]) == ("block", mean["mean"], mean["mean"])
        assert mean["total"] == pytest.approx(counts @ np.arange(3))
        await lab.close(START_MS + WINDOW_MS)
        await lab.check_exact()
        records = await lab.records(lab.collection.topics.estimates)
        assert {record.key for record in records} == {
            key,
            key.replace(b"provisional", b"final"),
        }
        (final,) = (await lab.finals())[START_MS]
        assert final["linear"] == [mean]
        assert worker.metrics("ldpstream_estimate", query="linear:block") == mean["mean"]

"""After the retention, state and changelog shrink to what is kept, on Apache Kafka."""

import asyncio
import itertools
from pathlib import Path

import pytest

from tests.broker.conftest import on_kafka
from tests.brokers import Broker
from tests.lab import COMPACTED, START_MS, Lab
from tests.ledger import WINDOW_MS
from tests.processes import PATIENCE_SECONDS, eventually

pytestmark = pytest.mark.broker
WINDOWS = 40
KEPT = 6
"""Windows that are open, or closed less than the retention ago, at most."""


async def send(lab: Lab, *, windows: range) -> None:
    async with lab.producer() as producer:
        for window in windows:
            first_ms = START_MS + window * WINDOW_MS
            frame = lab.frame(50, first_ms=first_ms, last_ms=first_ms + WINDOW_MS - 1)
            await producer.send_and_wait(lab.collection.topics.source, frame, partition=0)


async def compacted(lab: Lab, *, windows: int) -> int:
    """Wait until the changelog holds at most 60 records; return how many have been written.

    A segment is compacted only once another has begun, so another window is sent every few seconds.
    """
    async with asyncio.timeout(PATIENCE_SECONDS):
        for window in itertools.count(windows):
            for _ in range(10):
                records = await lab.records(lab.collection.topics.changelog)
                if len(records) <= 60:
                    return records[-1].offset + 1
                await asyncio.sleep(0.3)
            await send(lab, windows=range(window, window + 1))
            await lab.close(START_MS + (window + 1) * WINDOW_MS)
    raise AssertionError


@on_kafka
async def test_what_has_expired_leaves_state_and_changelog(running: Broker, tmp_path: Path) -> None:
    window = 'grace = "0s", idle = "off", retention = "30s"'
    lab = Lab(running, tmp_path, partitions=1, window=window)
    await lab.create(lab.collection.topics.changelog, partitions=1, configs=COMPACTED)
    with lab.worker() as worker:
        await send(lab, windows=range(WINDOWS))
        # A pane has a chunk, its totals and a final.
        await eventually(lambda: 0 < worker.metrics("ldpstream_state_cells") <= 3 * KEPT)
        await eventually(lambda: worker.metrics("ldpstream_state_dead_records") == 0)
        # One window more, so that what is there is no longer the newest segment.
        await send(lab, windows=range(WINDOWS, WINDOWS + 1))
        await lab.close(START_MS + (WINDOWS + 1) * WINDOW_MS)
        finals = await lab.finals()
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(finals) < WINDOWS + 1:
                finals = await lab.finals()
        assert {start: one[0]["n"] for start, one in finals.items()} == dict.fromkeys(
            lab.ledger.windows, 50
        )
        assert await compacted(lab, windows=WINDOWS + 1) > 3 * WINDOWS
        await eventually(lambda: worker.metrics("ldpstream_state_cells") <= 3 * KEPT)
        await eventually(lambda: worker.metrics("ldpstream_state_dead_records") == 0)
        assert worker.terminate() == 0

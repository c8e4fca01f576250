"""Messages longer than usual, and longer than topics take: counted, or refused with one line."""

import asyncio
import itertools
from pathlib import Path

import numpy as np
import pytest

from tests.broker.conftest import on_kafka
from tests.brokers import Broker
from tests.fairness import decided
from tests.lab import COMPACTED, START_MS, Lab
from tests.ledger import WINDOW_MS
from tests.processes import PATIENCE_SECONDS, eventually
from tests.stream.cli import invoke

pytestmark = pytest.mark.broker

RAISED = {"max.message.bytes": "10000000"}
SHORT = {"max.message.bytes": "600"}


@on_kafka
async def test_frames_longer_than_a_fetch_are_counted(lab: Lab) -> None:
    source = lab.collection.topics.source
    await lab.create(source, partitions=4, configs=RAISED)
    async with lab.producer(max_request_size=20_000_000, compression_type="none") as producer:
        for reports in (1_048_000, 4_300_000, 1):
            frame = lab.frame(reports, first_ms=START_MS, last_ms=START_MS + 99)
            await producer.send_and_wait(source, frame, partition=1)
    with lab.worker() as worker:
        await lab.close(START_MS + WINDOW_MS)
        await lab.check_exact()
        assert worker.terminate() == 0
        assert worker.errors() == ""


@on_kafka
async def test_send_says_what_to_do_about_a_message_that_is_too_large(
    lab: Lab, tmp_path: Path
) -> None:
    await lab.create(lab.collection.topics.source, partitions=4, configs=SHORT)
    # Sorted reports would be compressed to almost nothing.
    table = lab.file.read_text().replace("[kafka]\n", '[kafka]\ncompression_type = "none"\n')
    lab.file.write_text(table)
    values = tmp_path / "values.csv"
    values.write_text("".join(f"{value}\n" for value in np.arange(5_000) % 12))
    words = ("send", "-c", str(lab.file), "trips", str(values), "--batch")
    result = await asyncio.to_thread(invoke, *words, "5000")
    assert result.exit_code == 1
    assert "as too large: put fewer reports into a message (send --batch)" in result.output
    assert len(result.stderr.splitlines()) == 1, result.stderr
    # A batch of messages counts as one: it must not be longer than the topic takes, either.
    lab.file.write_text(table.replace("[kafka]\n", "[kafka]\nmax_batch_size = 500\n"))
    result = await asyncio.to_thread(invoke, *words, "50")
    assert result.exit_code == 0, result.output


@on_kafka
async def test_a_document_longer_than_its_topic_takes_is_reported_once(lab: Lab) -> None:
    source = lab.collection.topics.source
    await lab.create(lab.collection.topics.estimates, partitions=1, configs=SHORT)
    with lab.worker() as worker:
        async with lab.producer() as producer:
            for partition in range(4):
                frame = lab.frame(50, first_ms=START_MS, last_ms=START_MS)
                await producer.send_and_wait(source, frame, partition=partition)
        await lab.close(START_MS + WINDOW_MS)
        await eventually(lambda: decided(worker, "trips") == 200)
        path = "/api/collections/trips/windows?all=true"
        await eventually(lambda: bool(worker.get(path)["windows"][0]["final"]))
        await asyncio.sleep(1.0)
        # Nothing is lost by it: the final is stored, and can be asked for.
        assert not worker.get(path)["windows"][0]["published"]
        assert worker.terminate() == 0
        assert worker.errors().count("estimates cannot be written") == 1


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

"""States that others wrote: of a later release, refused and kept, and of benchmarks, read."""

import asyncio
from pathlib import Path

import pytest
from benchmarks.state.lab import StateLab, fill

from ldpstream.agents.state.encoding import encode_key, state_prefix
from ldpstream.agents.state.records import HEAD, Key
from tests.broker.conftest import on_kafka
from tests.broker.flow import Flow
from tests.brokers import Broker
from tests.lab import Lab
from tests.pages import shown_alone
from tests.processes import eventually

pytestmark = [pytest.mark.broker, on_kafka]


async def test_a_state_of_another_format_is_refused_and_kept(
    running: Broker, tmp_path: Path
) -> None:
    lab = Lab(running, tmp_path)
    topic = lab.collection.topics.changelog
    async with lab.producer() as producer:
        flow = Flow(producer, [lab])
        async with flow.run():
            with lab.worker() as worker:
                await asyncio.sleep(1)
                assert await asyncio.to_thread(worker.terminate) == 0
            seq = (await lab.heads())[0].seq + 1
            key = encode_key(state_prefix(lab.context), Key(HEAD, 9, seq))
            await producer.send_and_wait(topic, b"\x02later", key=key, partition=0)
            written = await values(lab)
            refused = lab.start_worker()
            try:
                said = await asyncio.to_thread(refused.error_line, " stops: ")
                await asyncio.sleep(1)
            finally:
                refused.kill()
            assert await values(lab) == written
            # The later release goes on; here it has never been.
            await producer.send_and_wait(topic, None, key=key, partition=0)
        await lab.close(flow.end_ms)
    shown = shown_alone("docs/how-to/upgrade.md", "The state's format").output.strip()
    assert shown.replace("ldpstream-trips-changelog", topic) in said
    with lab.worker():
        await lab.check_exact()


async def values(lab: Lab) -> list[bytes]:
    """Return all values in the changelog, sorted; deletions have none."""
    records = await lab.records(lab.collection.topics.changelog)
    return sorted(record.value for record in records if record.value is not None)


async def test_a_worker_reads_what_was_filled(running: Broker, tmp_path: Path) -> None:
    window = 'grace = "1h", idle = "off", retention = "9000d"'
    lab = StateLab(running, tmp_path, values=10, partitions=3, window=window)
    await fill(lab, panes=5, flushes=1)
    worker = lab.start_worker()
    try:
        worker.wait_ready()
        path = "/api/collections/trips/status"
        await eventually(lambda: worker.get(path)["counted"] == 3 * 5 * 10)
        assert worker.metrics("ldpstream_lost_offsets_total") == 0
        # Two of five windows are open in each partition; partition 0 has the others.
        cells = [worker.metrics("ldpstream_state_cells", partition=str(p)) for p in range(3)]
        assert cells[0] > cells[1] == cells[2] > 0
    finally:
        worker.kill()

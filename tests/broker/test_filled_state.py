"""A worker reads the state that benchmarks write, in every partition."""

from pathlib import Path

import pytest
from benchmarks.state.lab import StateLab, fill

from tests.broker.conftest import on_kafka
from tests.brokers import Broker
from tests.processes import eventually

pytestmark = [pytest.mark.broker, on_kafka]


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

"""More partitions than a worker polls one by one: rounds are paced, and counts stay exact.

The stream is paused then, every partition is read without a group, and flushes go in rounds.
"""

from pathlib import Path

import pytest

from ldpstream.agents.engine.clock import PARTITIONS
from tests.broker.conftest import on_one_broker
from tests.brokers import Broker
from tests.lab import START_MS, Lab
from tests.ledger import WINDOW_MS

# Nothing here depends on the broker.
pytestmark = [
    pytest.mark.broker,
    on_one_broker,
]
MANY = PARTITIONS + 10


async def test_counts_of_many_partitions_are_exact(running: Broker, tmp_path: Path) -> None:
    lab = Lab(running, tmp_path, partitions=MANY)
    with lab.worker() as worker:
        async with lab.producer() as producer:
            for window in range(2):
                first_ms = START_MS + window * WINDOW_MS
                for partition in range(MANY):
                    frame = lab.frame(5, first_ms=first_ms, last_ms=first_ms + WINDOW_MS - 1)
                    await producer.send(lab.collection.topics.source, frame, partition=partition)
                await producer.flush()
        await lab.close(START_MS + 2 * WINDOW_MS)
        await lab.check_exact()
        assert worker.metrics("ldpstream_owned") == MANY
        assert worker.terminate() == 0
        assert worker.errors() == ""

"""Every final equals the ledger while windows close by idleness and workers come and go."""

from pathlib import Path

import pytest

from tests.broker.conftest import on_kafka
from tests.brokers import Broker
from tests.crash.idle import WINDOW, run
from tests.lab import Lab

pytestmark = [
    pytest.mark.broker,
    pytest.mark.crash,
    on_kafka,
]


async def test_every_final_equals_the_ledger_and_nothing_is_late(
    running: Broker, tmp_path: Path
) -> None:
    await run(Lab(running, tmp_path, partitions=6, window=WINDOW), seconds=24.0, seed=1)

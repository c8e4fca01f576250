"""A worker with a store on disk, killed with -9: counts stay exact.

The long form is `python -m tests.crash.run --broker kafka --store rocksdb`.
"""

from pathlib import Path

import pytest

from tests.broker.conftest import on_kafka
from tests.brokers import Broker
from tests.crash.scenario import run
from tests.lab import Lab

pytestmark = [pytest.mark.broker, pytest.mark.crash]


@on_kafka
async def test_a_worker_with_a_store_is_killed(running: Broker, tmp_path: Path) -> None:
    lab = Lab(running, tmp_path, store="rocksdb")
    await run(lab, disturbance="kill", times=1, workers=1, reports=20_000, seed=5)

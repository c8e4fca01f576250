"""Random faults of many kinds, overlapping, while collections are counted: counts stay exact.

The long form is `python -m benchmarks.resilience.faults`.
"""

import asyncio
from pathlib import Path

import pytest

from tests.brokers import skip_without_kafka
from tests.crash.faults.result import Settings
from tests.crash.faults.run import run

pytestmark = [
    pytest.mark.broker,
    pytest.mark.crash,
    # Processes that are killed while they start may leave ends of pipes to the garbage collector.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


RUNS = {
    # Worker, devices and broker killed, connections cut and held, a worker stopped and woken as a
    # zombie, the broker stopped for seconds, its disk slow.
    "kafka": Settings(
        broker="kafka", faults=8, reports=40_000, seed=186, seconds=10.0, workers=2, visitors=0
    ),
    # The worker with a store on disk killed while one node is away for three seconds.
    "cluster": Settings(
        broker="cluster", faults=2, reports=20_000, seed=57, seconds=5.0, workers=2, visitors=0
    ),
}


@pytest.mark.parametrize("name", RUNS)
async def test_counts_are_exact_after_many_faults(name: str, tmp_path: Path) -> None:
    skip_without_kafka()
    settings = RUNS[name]
    async with asyncio.timeout(600):
        result = await run(settings, tmp_path)
    assert (result.wrong, result.differences) == ([], [])
    assert result.exact
    assert len({fault.kind for fault in result.faults}) == settings.faults
    assert sum(checked.counted for checked in result.checked.values()) > 0.7 * settings.reports

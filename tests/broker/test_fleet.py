"""`benchmarks.resilience.fleet`, shorter: ledgers on disk, and a process that is killed."""

from pathlib import Path

import pytest
from benchmarks.resilience.fleet import run

from tests.broker.conftest import on_kafka
from tests.brokers import Broker

pytestmark = pytest.mark.broker


@on_kafka  # the embedded one shows no more
def test_nobody_spends_too_much_and_every_window_has_one_report_of_each(
    running: Broker, tmp_path: Path
) -> None:
    """Fails by chance, with right bounds, with a probability below 1e-6."""
    found = run(
        running,
        tmp_path,
        devices=120,
        windows=4,
        period=2,
        reports=1,
        processes=1,
        killed=0.0,
        seed=1,
        level=1e-6,
    )
    assert found.problems == []
    assert (found.kills, found.at_arrival) == (2, 1)
    assert len(found.participants) == 4
    assert all(found.participants)

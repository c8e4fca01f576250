"""The beginning of a day: exact and without errors, while workers are restarted and killed.

The long form, `python -m tests.crash.day.run`, also asks that finals come in time.
"""

from contextlib import closing
from pathlib import Path

import pytest

from tests.broker.conftest import on_kafka
from tests.brokers import Broker
from tests.crash.day.story import Day
from tests.processes import PATIENCE_SECONDS

pytestmark = [pytest.mark.broker, pytest.mark.crash, on_kafka]


async def test_three_collections_are_counted_while_workers_come_and_go(
    running: Broker, tmp_path: Path
) -> None:
    day = Day(running, running, tmp_path, seed=1, patience_seconds=PATIENCE_SECONDS)
    with closing(day):
        assert not await day.live(["restart", "kill"], pause_seconds=1)
    assert all(late == 0 for _, _, late in day.counts.values())
    assert len(day.finals) == len(day.counts) == 3
    assert min(came for came, _, _ in day.finals.values()) > 2

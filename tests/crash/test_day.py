"""The beginning of a day: exact, in time and without errors, while workers are restarted."""

from contextlib import closing
from pathlib import Path

import pytest

from tests.broker.conftest import on_kafka
from tests.brokers import Broker
from tests.crash.day.story import Day

pytestmark = [pytest.mark.broker, pytest.mark.crash, on_kafka]


async def test_three_collections_are_counted_while_workers_come_and_go(
    running: Broker, tmp_path: Path
) -> None:
    with closing(Day(running, running, tmp_path, seed=1)) as day:
        assert not await day.live(["restart", "kill"], pause_seconds=3)
    assert all(late == 0 for _, _, late in day.counts.values())
    assert len(day.finals) == len(day.counts) == 3
    assert min(came for came, _, _ in day.finals.values()) > 2

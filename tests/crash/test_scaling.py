"""What benchmarks.resilience.scaling measures while workers come and go, and a scene of it."""

from pathlib import Path

import pytest
from benchmarks.resilience.progress import total_seconds, waits
from benchmarks.resilience.scenes import SCENES, play

from tests.broker.conftest import on_one_broker
from tests.brokers import Broker


def test_a_wait_begins_with_a_message_and_ends_with_the_head_that_counts_it() -> None:
    arrived = {0: [10.0, 11.0, 12.0], 1: [10.5]}
    heads = {0: [(1, 10.25), (2, 15.0), (3, 15.5)], 1: [(1, 20.5)]}
    # The second head comes 4 s after its message; the third message waits since the second head.
    assert waits(heads, arrived) == [(10.0, 10.25), (11.0, 15.0), (15.0, 15.5), (10.5, 20.5)]
    assert total_seconds(waits(heads, arrived)) == 10.25


def test_spans_that_overlap_count_once() -> None:
    assert total_seconds([(3.0, 4.0), (1.0, 2.5), (2.0, 2.25), (7.0, 8.0)]) == 3.5


@pytest.mark.broker
@pytest.mark.crash
@on_one_broker
async def test_one_worker_becomes_four_and_one_again(running: Broker, tmp_path: Path) -> None:
    outcome = await play(SCENES[0], running, tmp_path, step_seconds=0.5)
    assert outcome.wrong == []
    assert outcome.published >= outcome.windows > 0

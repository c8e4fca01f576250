"""Malformed messages through a broker and a worker: metrics and copies agree with expectations."""

from pathlib import Path

import pytest

from tests.broker.conftest import on_one_broker
from tests.brokers import Broker
from tests.fuzz.stream import OUTCOMES, WINDOW, check_fuzz, nothing_sent, send_fuzz
from tests.lab import Lab

pytestmark = [pytest.mark.broker, on_one_broker]


async def test_metrics_and_copies_agree_with_expectations_message_by_message(
    running: Broker, tmp_path: Path
) -> None:
    lab = Lab(running, tmp_path, window=WINDOW)
    topics, fuzzed = lab.collection.topics, nothing_sent(lab)
    await lab.create(topics.source, partitions=lab.collection.partitions)
    # The first half is a backlog, the second one comes by the stream.
    await send_fuzz(lab, fuzzed, 1_500, seed=1)
    with lab.worker() as worker:
        await send_fuzz(lab, fuzzed, 1_500, seed=2)
        await check_fuzz(lab, worker, fuzzed)
        assert fuzzed.outcomes["counted"] > 3_000
        assert set(fuzzed.outcomes) == set(OUTCOMES) - {"precision"}
        assert worker.terminate() == 0
        assert worker.errors() == ""

"""Much at once: malformed messages, many partitions, and a collection that is far behind."""

from pathlib import Path

import pytest

from ldpstream.agents.engine.clock import PARTITIONS
from tests.broker.conftest import on_kafka, on_one_broker
from tests.brokers import Broker
from tests.fairness import decided, fill, trickle
from tests.fuzz.stream import OUTCOMES, WINDOW, check_fuzz, copied_reasons, nothing_sent, send_fuzz
from tests.lab import START_MS, Lab
from tests.ledger import WINDOW_MS
from tests.processes import eventually

pytestmark = pytest.mark.broker

JUNK = 150_000


@on_kafka
async def test_windows_are_final_while_another_collection_is_flooded(
    running: Broker, tmp_path: Path
) -> None:
    lab = Lab(running, tmp_path, names=("flooded", "trips"), partitions=2)
    await fill(lab, "flooded", JUNK, reports=0)
    with lab.worker() as worker:
        seen = await trickle(lab, worker, slow="trips", fast="flooded", backlog=JUNK, windows=2)
        assert seen.behind >= 1
        await eventually(lambda: decided(worker, "flooded") == JUNK)
        assert worker.terminate() == 0
        assert worker.errors() == ""
    # Every one of them was copied, under its one reason.
    assert list((await copied_reasons(lab)).values()) == [{"undecodable"}] * JUNK


MANY = PARTITIONS + 10


@on_one_broker
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


@on_one_broker
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

"""Messages that come twice, late, out of order, from wrong clocks, or never."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import RequestTimedOutError
from aiokafka.protocol.produce import ProduceRequest

from tests.broker.conftest import on_kafka
from tests.brokers import Broker
from tests.lab import START_MS, Lab
from tests.ledger import WINDOW_MS
from tests.processes import eventually

pytestmark = pytest.mark.broker
HOUR_MS = 3_600_000


def lose_one_answer(producer: AIOKafkaProducer, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let the answer to the next message get lost: the broker has it, the producer sends again."""
    send, lost = producer.client.send, []

    async def lossy(node: int, request: Any, **options: Any) -> Any:
        answer = await send(node, request, **options)
        if isinstance(request, ProduceRequest) and not lost:
            lost.append("answer")
            raise RequestTimedOutError
        return answer

    monkeypatch.setattr(producer.client, "send", lossy)
    return lost


@on_kafka  # it drops a producer's repeats
async def test_disordered_messages_are_counted_exactly(
    running: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = Lab(running, tmp_path, window='grace = "5s", idle = "off", future = "1s"')
    source, spec = lab.collection.topics.source, lab.collection.spec

    def frame(n: int, *, after_ms: int) -> bytes:
        return lab.frame(n, first_ms=START_MS + after_ms, last_ms=START_MS + after_ms)

    def uncounted(n: int, time_ms: int) -> bytes:
        return spec.frame_reports(lab.reports(n), times_ms=np.full(n, time_ms))

    async with lab.producer() as producer:
        await lab.create(source, partitions=4)
        # The same bytes twice count twice: the wire knows no identities.
        reports, times_ms = lab.reports(10), np.full(10, START_MS)
        for _ in range(2):
            value = spec.frame_reports(reports, times_ms=times_ms)
            await producer.send_and_wait(source, value, partition=0)
            lab.ledger.add(reports, times_ms)
        # The broker drops what an idempotent producer itself repeats.
        lost = lose_one_answer(producer, monkeypatch)
        await producer.send_and_wait(source, frame(10, after_ms=0), partition=0)
        assert lost == ["answer"]
        assert len(await lab.records(source)) == 3
        with lab.worker() as worker:
            # In another order than the events: within the grace all of it counts.
            for after_ms in (9_000, 2_000, WINDOW_MS + 4_999, 500, WINDOW_MS, 9_999):
                await producer.send_and_wait(source, frame(7, after_ms=after_ms), partition=1)
            # A clock an hour ahead is refused, and moves no watermark; then a message that was
            # delayed beyond the grace, and one from a clock that is far behind.
            ahead = int(np.datetime64("now", "ms").astype(np.int64)) + HOUR_MS
            await producer.send_and_wait(source, uncounted(3, ahead), partition=1)
            await producer.send_and_wait(source, frame(7, after_ms=1_000), partition=1)
            await producer.send_and_wait(source, frame(7, after_ms=WINDOW_MS + 5_000), partition=1)
            for time_ms in (START_MS + 9_999, START_MS - HOUR_MS):
                await producer.send_and_wait(source, uncounted(2, time_ms), partition=1)
            # Nothing ever comes in partitions 2 and 3: an operator closes them.
            await lab.close(START_MS + 2 * WINDOW_MS)
            await lab.check_exact()
            reported = "ldpstream_reports_total"
            await eventually(lambda: worker.metrics(reported, result="counted") == lab.ledger.n)
            await eventually(lambda: worker.metrics(reported) == lab.ledger.n + 7)
            assert worker.metrics(reported, result="late") == 4
            assert worker.metrics(reported, result="rejected") == 3
            assert worker.metrics("ldpstream_rejected_total", reason="future") == 3
            assert worker.terminate() == 0
            assert worker.errors() == ""

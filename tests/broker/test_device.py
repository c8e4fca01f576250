"""What a device leaves on a real topic: reports, and nothing that distinguishes devices."""

import asyncio
import time
from pathlib import Path

import numpy as np
import pytest
from aiokafka.errors import InvalidTimestampError

from ldpstream.agents.device import Sender
from ldpstream.mechanisms import CollectionSpec, decode_frame
from ldpstream.mechanisms.ledger import BudgetError, Ledger
from tests.broker.conftest import on_kafka, on_one_broker
from tests.exact.wire.test_vectors import spec_of
from tests.lab import Lab
from tests.stream.cli import spawn

pytestmark = pytest.mark.broker

MINUTE_MS = 60_000


async def made(lab: Lab, name: str) -> CollectionSpec:
    """Return a collection with a precision of a minute, on a topic of its own."""
    topic = f"{lab.collection.topics.source}-{name}"
    await lab.create(topic, partitions=2)
    return spec_of(
        {
            "toml": f'[collection.{name}]\nmechanism = "l1-bits"\nepsilon = 1.0\n'
            f'domain = {{ size = 20 }}\ntopic = "{topic}"\nprecision = "1m"\n'
        }
    )


@on_one_broker
async def test_records_hold_nothing_but_reports(lab: Lab) -> None:
    spec = await made(lab, "plain")
    began_ms = time.time_ns() // 1_000_000
    async with Sender(spec, lab.broker.bootstrap, options=lab.broker.options) as sender:
        await sender.send([3, 4, 5])
        for start in range(0, 120, 40):
            reports = spec.privatize(np.arange(start, start + 40) % 20)
            await sender.send_reports(reports, times_ms=np.full(40, began_ms, dtype=np.int64))
    records = await lab.records(spec.topic)
    counted = 0
    for record in records:
        assert record.key is None
        assert record.headers == ()
        assert record.timestamp % MINUTE_MS == 0
        assert began_ms - MINUTE_MS <= record.timestamp <= time.time_ns() // 1_000_000
        size = spec.mechanism.report_bytes
        frame = decode_frame(record.value, fingerprint=spec.fingerprint, report_bytes=size)
        assert (frame.times_ms % MINUTE_MS == 0).all()
        rows = [row.tobytes() for row in frame.payload]
        if len(frame.counts) == 1:
            assert rows == sorted(rows)
        counted += len(rows)
    assert counted == 123


@on_one_broker
async def test_a_ledger_sends_one_report_a_window_whatever_is_asked(
    lab: Lab, tmp_path: Path
) -> None:
    spec = await made(lab, "once")
    start_ms = time.time_ns() // 1_000_000 // (4 * MINUTE_MS) * (4 * MINUTE_MS)
    path, options = tmp_path / "ledger", lab.broker.options
    for _ in range(2):  # also after a restart
        with Ledger(path, specs=[(spec, 2 * MINUTE_MS)], budget=40) as ledger:
            async with Sender(spec, lab.broker.bootstrap, options=options) as sender:
                sent = [
                    await sender.send_once(label, ledger=ledger, time_ms=start_ms + minute_ms)
                    for label, minute_ms in ((3, 0), (7, MINUTE_MS), (3, 2 * MINUTE_MS))
                ]
                # An epsilon of 1 a step, 19 steps, twice: 38.
                with pytest.raises(BudgetError):
                    await sender.send_once(3, ledger=ledger, time_ms=start_ms + 4 * MINUTE_MS)
    assert sent == [False, False, False]
    assert len(await lab.records(spec.topic)) == 2


@on_one_broker
async def test_send_with_a_ledger_sends_a_window_once(lab: Lab, tmp_path: Path) -> None:
    lines = "".join(f"2026-11-22T10:00:{second:02}Z,3\n" for second in range(0, 50, 5)).encode()
    ledger = ("--ledger", str(tmp_path / "ledger"), "--budget", "4")
    command = ("send", "-c", str(lab.file), "trips", "--times", "--replay", *ledger)
    said = []
    for stdin in (lines[: len(lines) // 2], lines, lines):
        ended = await asyncio.to_thread(spawn, *command, stdin=stdin)
        said.append((ended.returncode, ended.stdout.decode(), ended.stderr.decode()))
    # Panes of 10 seconds, an epsilon of 1 each: the fifth is refused, and what came before it goes.
    assert said[0][:2] == (0, "3 reports in 1 message acknowledged\n")
    assert said[1][0] == said[2][0] == 1
    assert "line 9: trips: expected at most 4 (--budget) " in said[1][2]
    assert "before that 1 report in 1 message acknowledged" in said[1][2]
    assert "before that" not in said[2][2]
    records = await lab.records(lab.collection.topics.source)
    assert len(records) == 2
    assert all((record.key, record.headers) == (None, ()) for record in records)


@on_kafka
async def test_kafka_refuses_records_dated_well_ahead_of_its_clock(lab: Lab) -> None:
    """So records are dated when they are sent: a device's own clock may be fast."""
    spec = await made(lab, "ahead")
    now_ms, hour_ms = time.time_ns() // 1_000_000, 60 * MINUTE_MS
    async with lab.producer() as producer:
        for ahead_ms in (-24 * hour_ms, 50 * MINUTE_MS):
            await producer.send_and_wait(spec.topic, b"x", timestamp_ms=now_ms + ahead_ms)
        with pytest.raises(InvalidTimestampError):
            await producer.send_and_wait(spec.topic, b"x", timestamp_ms=now_ms + 2 * hour_ms)

"""Producers as devices have them: every codec, idempotent, with transactions kept or aborted."""

import asyncio
import errno
import json
import os
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import ldpstream as ldp
from tests.broker.conftest import on_kafka, on_one_broker
from tests.brokers import Broker
from tests.lab import START_MS, Lab
from tests.ledger import WINDOW_MS
from tests.stream.cli import invoke, refused
from tests.stream.modes import MODES

pytestmark = pytest.mark.broker

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


# The default, lz4, is written by all other tests; test_clients chooses every codec.
@on_kafka  # see test_embedded.py
@pytest.mark.parametrize("codec", ["none", "zstd"])
async def test_a_worker_reads_all_codecs_and_writes_each(
    running: Broker, tmp_path: Path, codec: str
) -> None:
    broker = Broker("kafka", running.bootstrap, {"compression_type": codec})
    lab = Lab(broker, tmp_path)
    with lab.worker() as worker:
        for number, used in enumerate(CODECS):
            async with lab.producer(
                compression_type=used, enable_idempotence=number % 2 == 0
            ) as producer:
                for partition in range(4):
                    # All alike: what compression does not shrink would be sent as it is.
                    reports, times_ms = np.full(500, partition), np.full(500, START_MS)
                    lab.ledger.add(reports, times_ms)
                    value = lab.collection.spec.frame_reports(reports, times_ms=times_ms)
                    await producer.send(lab.collection.topics.source, value, partition=partition)
                await producer.flush()
        await lab.close(START_MS + WINDOW_MS)
        await lab.check_exact()
        assert worker.terminate() == 0
        assert worker.errors() == ""
    assert lab.ledger.n == 10_000


@on_kafka  # see test_embedded.py
async def test_interleaved_transactions_before_and_while_a_worker_runs(lab: Lab) -> None:
    await lab.create(lab.collection.topics.source, partitions=4)
    await _transactions(lab, first=0, last=30)
    with lab.worker() as worker:
        await _transactions(lab, first=30, last=60)
        await lab.close(START_MS + WINDOW_MS)
        await lab.check_exact()
        assert worker.terminate() == 0
        assert worker.errors() == ""
    heads = await lab.heads()
    # The markers that end transactions have offsets too: neither lost nor late nor rejected.
    assert sum(head.lost + head.late + sum(head.rejected.values()) for head in heads) == 0
    assert sum(head.next for head in heads) > len(await lab.records(lab.collection.topics.source))


async def _transactions(lab: Lab, *, first: int, last: int) -> None:
    """Two producers, each with a transaction open while the other's ends; a third has none."""
    source, spec = lab.collection.topics.source, lab.collection.spec
    aborted = spec.frame([1] * 10, times_ms=[START_MS] * 10)
    async with (
        lab.transactional_producer("-one") as one,
        lab.transactional_producer("-other") as other,
        lab.producer() as plain,
    ):
        await other.begin_transaction()
        for number in range(first, last):
            committed = number % 3 != 0
            await one.begin_transaction()
            for partition in (number % 4, (number + 1) % 4):
                value = lab.frame(10, first_ms=START_MS, last_ms=START_MS) if committed else aborted
                await one.send(source, value, partition=partition)
                await other.send(source, aborted, partition=partition)
                await plain.send_and_wait(
                    source, lab.frame(3, first_ms=START_MS, last_ms=START_MS), partition=partition
                )
            await (one.commit_transaction() if committed else one.abort_transaction())
            if number % 5 == 4:
                await other.abort_transaction()
                await other.begin_transaction()
        await other.abort_transaction()


@on_kafka  # see test_embedded.py
async def test_an_order_to_close_waits_for_an_open_transaction(lab: Lab) -> None:
    source = lab.collection.topics.source
    with lab.worker() as worker:
        async with lab.transactional_producer() as open_one, lab.producer() as plain:
            await open_one.begin_transaction()
            for partition in range(4):
                value = lab.frame(10, first_ms=START_MS, last_ms=START_MS)
                await open_one.send(source, value, partition=partition)
                await open_one.flush()
                value = lab.frame(5, first_ms=START_MS, last_ms=START_MS)
                await plain.send_and_wait(source, value, partition=partition)
            await lab.close(START_MS + WINDOW_MS)
            await asyncio.sleep(2)
            assert await lab.finals() == {}
            # Its worker has gone and come back in the meantime.
            worker.process.kill()
            with lab.worker() as other:
                await asyncio.sleep(1)
                assert await lab.finals() == {}
                await open_one.commit_transaction()
                await lab.check_exact()
                assert other.terminate() == 0
                assert other.errors() == ""


@on_one_broker
def test_finals_of_a_topic_are_kept_once_and_the_last_counts(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    asked = ["finals", "-c", str(lab.file), "trips"]
    topic = lab.collection.topics.estimates
    assert refused(invoke(*asked), code=1).startswith(f"topic {topic} does not exist: start a ")
    driver = ldp.Driver(MODES, start="2026-11-21T10:00:00Z")
    for _ in range(2):
        driver.send(["bus"] * 300)
        driver.advance("65m")
    first, second = driver.finals
    provisional = second.model_copy(update={"final": False, "n": 7})
    again = first.model_copy(update={"n": 301})
    # Of another size, before the configuration changed: it begins where the first one does.
    assert first.window is not None
    shorter = first.window.model_copy(update={"end": "2026-11-21T10:30:00Z"})
    earlier = first.model_copy(update={"window": shorter, "n": 200, "size": "30m"})
    messages = [one.to_json() for one in (first, provisional, second, again, earlier)]

    async def produce() -> None:
        await lab.create(topic, partitions=1)
        async with lab.producer() as producer:
            for message in (*messages[:2], b"no document", *messages[2:]):
                await producer.send_and_wait(topic, message, partition=0)

    asyncio.run(produce())
    left_out = [
        f"trips: left out the windows of {size} that {topic} also has: --size '{size}' takes them\n"
        for size in ("1h", "30m")
    ]
    skipped = f"{topic}: offset 2: not an estimate, skipped\n"
    printed = invoke(*asked)
    assert (printed.exit_code, printed.stdout, printed.stderr) == (
        0,
        "",
        skipped + "".join(left_out),
    )
    asked += ["--size", "1h"]
    printed = invoke(*asked)
    assert (printed.exit_code, printed.stderr) == (0, skipped + left_out[1])
    assert [json.loads(line)["n"] for line in printed.stdout.splitlines()] == [300, 300, 301]
    for _ in range(2):
        kept = invoke(*asked, "--to", str(tmp_path / "f.parquet"))
        assert (kept.exit_code, kept.stdout) == (0, "")
        assert kept.stderr.endswith("2 final windows stored\n")
        rows = pq.read_table(tmp_path / "f.parquet").to_pylist()
        assert [row["n"] for row in rows if row["entry"] == 0] == [301, 300]
        assert len(rows) == len(first.distribution) + len(second.distribution)
    (tmp_path / "folder.parquet").mkdir()
    for name, why in {
        "none/f.parquet": "No such file or directory",
        "folder.parquet": "expected a file, got a folder",
        "full.parquet": "No space left on device",
    }.items():
        with monkeypatch.context() as disk:
            if name == "full.parquet":
                disk.setattr(os, "fsync", _refuse)
            stopped = invoke(*asked, "--to", str(tmp_path / name))
        *_, said = stopped.stderr.splitlines()
        assert (stopped.exit_code, stopped.stdout) == (2, "")
        assert said.startswith("--to: ")
        assert name in said
        assert why in said


def _refuse(descriptor: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

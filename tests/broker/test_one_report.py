"""`one_report` on a real broker: devices that send twice, a worker killed with -9 in between."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import numpy as np
import pytest

from ldpstream.agents.broker import clients
from ldpstream.agents.config import load_config
from ldpstream.agents.device import Sender
from ldpstream.agents.edge.gateway_topics import SourceTopics
from ldpstream.mechanisms.wire.frame import decode_frame, frame_fingerprint
from tests.broker.asking import counted
from tests.broker.conftest import on_one_broker
from tests.broker.test_rolling import foreign
from tests.brokers import Broker
from tests.lab import START_MS, Lab
from tests.ledger import WINDOW_MS
from tests.processes import Worker, eventually
from tests.stream.cli import invoke, refused, spawn

pytestmark = pytest.mark.broker

DEVICES = [number.to_bytes(2, "little") * 16 for number in range(400)]


@pytest.fixture
def lab(running: Broker, tmp_path: Path) -> Lab:
    return Lab(running, tmp_path, partitions=3, extra="one_report = true")


async def report(lab: Lab, sender: Sender, seed: int) -> None:
    """Let most devices report once in the window, some of them at once in one message."""
    spec, rng = lab.collection.spec, np.random.default_rng(seed)
    devices = rng.choice(len(DEVICES), 300, replace=False)
    for some in np.array_split(devices, 12):
        times_ms = START_MS + rng.integers(0, WINDOW_MS, len(some))
        tokens = np.concatenate(
            [spec.tokens(DEVICES[d], times_ms[i : i + 1]) for i, d in enumerate(some)]
        )
        await sender.send_reports(lab.reports(len(some)), times_ms=times_ms, tokens=tokens)


async def expected(lab: Lab) -> tuple[int, int]:
    """Put what has to be counted into the lab's ledger; return how many are repeated or misplaced.

    The first report of a token and window in the topic counts, in the token's own partition only.
    """
    spec, seen = lab.collection.spec, set[tuple[int, bytes]]()
    assert spec.one_report is not None
    repeated = misplaced = 0
    records = await lab.records(lab.collection.topics.source)
    for record in sorted(records, key=lambda r: (r.partition, r.offset)):
        if frame_fingerprint(record.value or b"") != spec.fingerprint:
            continue
        frame = decode_frame(
            record.value or b"", fingerprint=spec.fingerprint, report_bytes=spec.report_bytes
        )
        rows, tokens = spec.split(frame.payload)
        reports, _ = spec.mechanism.decode(rows)
        times_ms = frame.times_ms.repeat(frame.counts)
        for i, token in enumerate(map(bytes, tokens)):
            key = int(times_ms[i]) // WINDOW_MS, token
            if int.from_bytes(token[:4], "little") % spec.one_report.partitions != record.partition:
                misplaced += 1
            elif key in seen:
                repeated += 1
            else:
                seen.add(key)
                lab.ledger.add(reports[i : i + 1], times_ms[i : i + 1])
    return repeated, misplaced


@on_one_broker  # nothing here depends on the broker
async def test_an_accepted_spec_keeps_a_rule_and_partitions_of_its_own(
    running: Broker, tmp_path: Path
) -> None:
    """Devices that have not moved send to the two partitions that they know; there are three."""
    old = Lab(running, tmp_path, partitions=2, extra="one_report = true")
    new = old.changed("new.toml", ("partitions = 2", 'partitions = 3\naccept = ["ldpstream.toml"]'))
    source, labs = new.collection.topics.source, (old, new)
    kafka = new.config.kafka
    workers: list[Worker] = []
    try:
        workers.append(new.start_worker())
        await asyncio.to_thread(workers[0].wait_ready)
        async with AsyncExitStack() as stack:
            senders = [
                await stack.enter_async_context(
                    Sender(lab.collection.spec, kafka.bootstrap, options=kafka.options)
                )
                for lab in labs
            ]
            both = list(zip(labs, senders, strict=True))
            # A device that reports under both specs counts once in each.
            await asyncio.gather(*(report(*one, seed=1) for one in both))
            await eventually(lambda: counted(workers[-1]) > 250)
            workers[-1].kill()
            workers.append(new.start_worker())
            await asyncio.gather(*(report(*one, seed=2) for one in both))
            frame = old.collection.spec.frame([0], times_ms=[START_MS], secret=b"another" * 3)
            async with new.producer() as producer:
                # A token outside of its partition, and frames of a spec that nobody accepts.
                for value, partition in ((frame, 2), (foreign(new), 0), (foreign(new), 2)):
                    await producer.send_and_wait(source, value, partition=partition)
        await asyncio.to_thread(workers[-1].wait_ready)
        of_old, of_new = await expected(old), await expected(new)
        assert of_old[0] > 150
        assert of_new[0] > 150
        assert (of_old[1], of_new[1]) == (1, 0)
        await new.close(START_MS + WINDOW_MS)
        await old.check_exact()
        await new.check_exact()
        states = [await old.heads(of=new), await new.heads()]
        for heads, lab, (repeated, misplaced) in zip(states, labs, (of_old, of_new), strict=True):
            assert sum(head.n for head in heads) == lab.ledger.n
            found = {r: sum(h.rejected.get(r, 0) for h in heads) for r in ("repeated", "partition")}
            assert found == {"repeated": repeated, "partition": misplaced}
            assert sum(head.late for head in heads) == 0
        # Each foreign frame was rejected by one of the states, once, and no report of either spec.
        every = [head.rejected.get("fingerprint", 0) for heads in states for head in heads]
        assert sum(every) == 2
        assert workers[-1].metrics("ldpstream_rejected_total", reason="repeated") > 0
        assert workers[-1].metrics("ldpstream_problems") == 0
        assert workers[-1].metrics("ldpstream_accepted_problems") == 0
        copies = await new.records(new.collection.topics.rejected)
        assert {dict(copy.headers)["reason"] for copy in copies} == {
            b"repeated",
            b"partition",
            b"fingerprint",
        }
        assert workers[-1].terminate() == 0
        assert workers[-1].errors() == ""
    finally:
        for worker in workers:
            worker.kill()


@on_one_broker  # nothing here depends on the broker
async def test_commands_send_tokens_to_their_partitions(lab: Lab, tmp_path: Path) -> None:
    spec, rule = lab.collection.spec, lab.collection.spec.one_report
    assert rule is not None
    times = [START_MS, START_MS + 1, *range(START_MS + WINDOW_MS, START_MS + 90_000, WINDOW_MS)]
    lines = "".join(f"{time_ms},3\n" for time_ms in times).encode()
    ledger = ("--ledger", str(tmp_path / "ledger"), "--budget", "20", "--times", "--replay")
    for expected_reports in (9, 0):
        done = await asyncio.to_thread(
            spawn, "send", "-c", str(lab.file), *ledger, "trips", stdin=lines
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(f"{expected_reports} reports in ".encode())
    arguments = ("--rate", "300", "--seconds", "1", "--batch", "10")
    done = await asyncio.to_thread(spawn, "simulate", "-c", str(lab.file), *arguments, "trips")
    assert done.returncode == 0, done.stderr
    records = await lab.records(lab.collection.topics.source)
    assert {record.partition for record in records} == {0, 1, 2}
    tokens: list[bytes] = []
    for record in records:
        frame = decode_frame(
            record.value or b"", fingerprint=spec.fingerprint, report_bytes=spec.report_bytes
        )
        found = spec.split(frame.payload)[1]
        assert (rule.partition(found) == record.partition).all()
        tokens += map(bytes, found)
    assert len(tokens) == len(set(tokens)) == 9 + int(done.stdout.split()[0])


async def gateway_topics(lab: Lab) -> tuple[list[str], set[str]]:
    """Return the problems of a gateway with the lab's file, and the topics that it writes to."""
    config = load_config(lab.file)
    admin = clients.admin(config.kafka.bootstrap, config.kafka.options)
    await admin.start()
    try:
        topics = SourceTopics(admin, list(config.collections.values()))
        await topics.refresh()
        return topics.problems, topics.writable
    finally:
        await admin.close()


@on_one_broker
def test_commands_and_gateways_refuse_a_topic_of_too_few_partitions(lab: Lab, tmp_path: Path):
    ledger = tmp_path / "ledger"
    send = ("send", "-c", str(lab.file), "--ledger", str(ledger), "--budget", "20", "trips")
    assert invoke(*send, stdin="3\n").exit_code == 0
    text, spent = lab.file.read_text(), invoke("ledger", str(ledger)).stdout
    topic = lab.collection.topics.source
    expected = (
        f"topic {topic} has 3 partitions, but one_report sends to "
        "collection.trips.partitions, 5: make it the topic's"
    )
    lab.file.write_text(text.replace("partitions = 3", "partitions = 5"))
    for command in (send, ("simulate", "-c", str(lab.file), "trips")):
        assert refused(invoke(*command, stdin="3\n"), code=1) == expected
    assert invoke("ledger", str(ledger)).stdout == spent
    problems, there = asyncio.run(gateway_topics(lab))
    assert (problems, there) == ([expected], set())
    # A topic may have more: devices of an accepted spec go on with fewer.
    lab.file.write_text(text.replace("partitions = 3", "partitions = 2"))
    assert invoke(*send, stdin="3\n").exit_code == 0
    assert asyncio.run(gateway_topics(lab)) == ([], {topic})

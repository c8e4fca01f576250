"""The commands that talk to a broker: check, send, close and reset."""

import asyncio
from pathlib import Path

import numpy as np
import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from ldpstream.agents.broker import clients
from ldpstream.agents.broker.metadata import describe
from ldpstream.agents.broker.topic_settings import unwise_settings
from ldpstream.agents.state.close_orders import decode_control
from ldpstream.mechanisms.wire.frame import decode_frame
from tests.broker.conftest import on_kafka, on_one_broker
from tests.broker.values import value_lines
from tests.lab import Lab
from tests.processes import PATIENCE_SECONDS
from tests.stream.cli import invoke, refused, spawn

pytestmark = pytest.mark.broker


async def existing(lab: Lab) -> set[str]:
    client = clients.admin(lab.broker.bootstrap, lab.broker.options)
    await client.start()
    try:
        return set(await describe(client, lab.collection.topics.names()))
    finally:
        await client.close()


@on_one_broker
def test_check_says_what_a_worker_would_create_and_creates_nothing(lab: Lab):
    result = invoke("check", "-c", str(lab.file))
    assert (result.exit_code, result.stderr) == (0, "")
    assert f"{lab.broker.bootstrap}: 1 broker\n" in result.stdout
    topics = lab.collection.topics
    assert f"{topics.source}: missing; a worker creates it, 4 partitions\n" in result.stdout
    assert f"{topics.control}: missing; a worker creates it, 1 partition\n" in result.stdout
    assert result.stdout.endswith("ok\n")
    assert asyncio.run(existing(lab)) == set()


@on_kafka
def test_check_refuses_another_number_of_partitions(lab: Lab):
    assert invoke("send", "-c", str(lab.file), "trips", stdin="1\n").exit_code == 0
    result = invoke("check", "-c", str(lab.file))
    assert (result.exit_code, result.stderr) == (0, "")
    assert f"{lab.collection.topics.source}: 4 partitions\n" in result.stdout
    lab.file.write_text(lab.file.read_text().replace("partitions = 4", "partitions = 5"))
    said = refused(invoke("check", "-c", str(lab.file)), code=1)
    assert said.startswith(f"topic {lab.collection.topics.source} has 4 partitions, but ")


def test_check_refuses_what_this_broker_cannot_do(lab: Lab):
    text = lab.file.read_text().replace("[kafka]", "[kafka]\nreplication_factor = 3")
    lab.file.write_text(text)
    said = refused(invoke("check", "-c", str(lab.file)), code=1)
    assert said == "kafka.replication_factor: expected at most 1 broker, got 3"
    if lab.broker.kind == "embedded":
        lab.file.write_text(text.replace("enable_idempotence = false", "").replace("= 3", "= 1"))
        said = refused(invoke("check", "-c", str(lab.file)), code=1)
        assert said.endswith("needs kafka.enable_idempotence = false")


@on_one_broker
@pytest.mark.parametrize("batch", [1, 64])
def test_send_spreads_frames_without_keys_over_all_partitions(lab: Lab, batch: int):
    values = value_lines(1_000)
    command = ["send", "-c", str(lab.file), "--times", "--replay", "--batch", str(batch), "trips"]
    result = invoke(*command, stdin=values)
    messages = -(-1_000 // batch)
    assert result.exit_code == 0, result.stderr
    assert result.stdout == f"1,000 reports in {messages:,} messages acknowledged\n"
    records = asyncio.run(lab.records(lab.collection.topics.source))
    assert len(records) == messages
    assert {record.key for record in records} == {None}
    counts = np.bincount([record.partition for record in records], minlength=4)
    assert counts.max() - counts.min() <= 1
    spec = lab.collection.spec
    sent: dict[int, int] = {}
    for record in records:
        assert record.value is not None
        frame = decode_frame(record.value, fingerprint=spec.fingerprint, report_bytes=1)
        assert frame.counts.sum() <= batch
        for time_ms, count in zip(frame.times_ms.tolist(), frame.counts.tolist(), strict=True):
            sent[time_ms] = sent.get(time_ms, 0) + count
    times = [int(line.split(",")[0]) for line in values.splitlines()]
    assert sent == {time_ms: times.count(time_ms) for time_ms in set(times)}


@on_one_broker
def test_a_bad_line_ends_send_and_says_what_was_sent_before(lab: Lab, tmp_path: Path):
    values = tmp_path / "values.csv"
    values.write_text("3\n" * 100_000 + "12\n")
    result = invoke("send", "-c", str(lab.file), "trips", str(values))
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1] == (
        f"{values}: line 100001: expected an integer in 0..11: --clamp moves numbers to the "
        "nearest end of the domain; "
        "before that 100,000 reports in 100 messages acknowledged"
    )


@on_kafka
def test_close_orders_with_the_current_offsets(lab: Lab):
    said = refused(
        invoke("close", "-c", str(lab.file), "--until", "1970-01-01T00:00:00Z", "trips"), code=1
    )
    assert said.endswith("does not exist: start a worker first, which creates it")
    values = value_lines(300)
    send = ["send", "-c", str(lab.file), "--times", "--replay", "--batch", "100", "trips"]
    assert invoke(*send, stdin=values).exit_code == 0
    # On the embedded broker the end that ListOffsets answers would be wrong here.
    result = invoke("close", "-c", str(lab.file), "--until", "2010-10-14T00:00:00Z", "trips")
    assert (result.exit_code, result.stderr) == (0, "")
    (order,) = asyncio.run(lab.records(lab.collection.topics.control))
    control = decode_control(order.value)
    assert control.until_ms == 1_287_014_400_000
    assert sorted(control.ends) == [0, 1, 2, 3]
    assert sorted(control.ends.values()) == [0, 1, 1, 1]


@on_one_broker
@pytest.mark.parametrize(
    ("window", "expiring"),
    [
        ('idle = "off", retention = "36500d"', False),
        ('idle = "off", retention = "7d"', True),
    ],
)
def test_closing_ahead_of_the_clock_warns(lab: Lab, window: str, expiring: bool):
    file = lab.file
    file.write_text(file.read_text().replace('grace = "0s", idle = "off"', window))
    assert invoke("send", "-c", str(file), "trips", stdin="1\n").exit_code == 0
    close = ["close", "-c", str(file), "--until", "2060-01-01T00:00:00Z", "trips"]
    if expiring:
        for answer in ("", "n\n"):
            result = invoke(*close, stdin=answer)
            assert result.exit_code == 1
            assert result.stderr.startswith("Close trips until 2060-01-01T00:00:00Z? This is")
            assert "nothing was changed" in result.stderr
        assert asyncio.run(lab.records(lab.collection.topics.control)) == []
    result = invoke(*close, *(["--yes"] if expiring else []))
    assert result.exit_code == 0
    said = "this is ahead of the clock: all reports until 2060-01-01T00:00:00Z will be late"
    expire = ", and windows that ended more than 7d before then expire" if expiring else ""
    assert result.stderr == f"{said}{expire}\n"


async def _member(lab: Lab) -> AIOKafkaConsumer:
    consumer = AIOKafkaConsumer(
        lab.collection.topics.source,
        bootstrap_servers=lab.broker.bootstrap,
        group_id=lab.config.worker.id,
    )
    await consumer.start()
    return consumer


@on_kafka  # the embedded broker does not tell which members of a group are there
async def test_reset_waits_for_workers_to_stop_and_deletes_state_and_orders(lab: Lab):
    command = ["reset", "-c", str(lab.file), "trips"]
    topics = lab.collection.topics
    sent = await asyncio.to_thread(spawn, "send", "-c", str(lab.file), "trips", stdin=b"1\n")
    assert sent.returncode == 0, sent.stderr
    consumer = await _member(lab)
    result = await asyncio.to_thread(spawn, *command, "--yes")
    await consumer.stop()
    assert result.returncode == 1
    assert b"has 1 running; stop all workers first" in result.stderr
    assert await existing(lab) == set(topics.names())
    result = await asyncio.to_thread(spawn, *command, stdin=b"n\n")
    assert result.returncode == 1
    assert result.stderr.endswith(b"nothing was changed\n")
    assert await existing(lab) == set(topics.names())
    result = await asyncio.to_thread(spawn, *command, stdin=b"y\n")
    assert result.returncode == 0, result.stderr
    assert await existing(lab) == set(topics.names()) - {topics.changelog, topics.control}
    result = await asyncio.to_thread(spawn, *command, "--yes")
    assert (result.returncode, result.stdout) == (0, b"trips had no state\n")


@on_kafka  # the embedded one shows no settings
async def test_check_compares_windows_and_timestamps_with_what_is_kept(lab: Lab) -> None:
    topics = lab.collection.topics
    other = lab.changed("other.toml", ('size = "10s"', 'size = "5s"'))
    check = ["check", "-c", str(other.file)]
    with lab.worker() as worker:
        said = refused(await asyncio.to_thread(invoke, *check), code=1)
        assert said.startswith(f"collection trips: the state in {topics.changelog} has ")
        assert "window.size = 10s, here 5s and window.hop = 10s, here 5s, and 1 worker" in said
        same = await asyncio.to_thread(invoke, "check", "-c", str(lab.file))
        assert (same.exit_code, "note: the state" in same.stdout) == (0, False)
        assert f"{topics.source}: note: senders set its timestamps" in same.stdout
        assert "warning" not in same.stdout
        assert worker.terminate() == 0
    async with lab.admin() as admin:
        for topic, kept, policy in (
            (topics.changelog, "CreateTime", "compact"),
            (topics.source, "LogAppendTime", "delete"),
        ):
            settings = {"message.timestamp.type": kept, "cleanup.policy": policy}
            await admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, settings)])
        async with asyncio.timeout(PATIENCE_SECONDS):  # a broker applies some time after it answers
            while "senders" in str(await unwise_settings(admin, lab.collection, {topics.source})):  # noqa: ASYNC110 (no event)
                await asyncio.sleep(0.05)
    alone = await asyncio.to_thread(invoke, *check)
    assert (alone.exit_code, alone.stderr) == (0, "")
    assert "trips: note: the state in " in alone.stdout
    assert "another spec" not in alone.stdout
    spec = lab.collection.spec.fingerprint.hex()
    changed = lab.changed("changed.toml", ("epsilon = 1.0", "epsilon = 0.5"))
    said = await asyncio.to_thread(invoke, "check", "-c", str(changed.file))
    assert f"the state in {topics.changelog} is of another spec, {spec}: " in said.stdout
    assert "senders set" not in alone.stdout
    assert f"{topics.changelog}: warning: message.timestamp.type=CreateTime" in alone.stdout

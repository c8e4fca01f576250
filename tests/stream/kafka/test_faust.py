"""Parts of Faust that a worker replaces: its threads, commits, fetches and channels."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import faust
import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.cluster import ClusterMetadata
from aiokafka.protocol.metadata import MetadataResponse_v0
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread
from faust.types import TP

from ldpstream.agents.engine.patches.batch_channel import BatchChannel
from ldpstream.agents.engine.patches.even_assignor import EvenAssignor
from ldpstream.agents.engine.patches.silent_partitions import silence
from ldpstream.agents.engine.patches.worker_app import QuietThread, WorkerApp
from ldpstream.agents.engine.source import Batch
from tests.stream.engines import make_group


def test_a_consumer_thread_that_crashes_prints_nothing(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
):
    thread = QuietThread.__new__(QuietThread)
    with caplog.at_level(logging.DEBUG, logger="ldpstream"):
        thread.on_crash("{0!r} crashed: {1!r}", "Consumer", ConnectionError("cut"))
    assert capsys.readouterr() == ("", "")
    assert "crashed: ConnectionError('cut')" in caplog.text


async def test_a_commit_that_is_not_answered_is_given_up(monkeypatch: pytest.MonkeyPatch):
    """The call ends in the consumer's thread too, which runs at most two at a time."""
    ours, ended = TopicPartition("trips", 0), asyncio.Event()

    async def commit(_: object) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    calls: set[asyncio.Task[Any]] = set()

    async def call_thread(function: Callable[..., Any], *arguments: Any) -> Any:
        calls.add(call := asyncio.create_task(function(*arguments)))
        return await asyncio.shield(call)

    monkeypatch.setattr("ldpstream.agents.engine.patches.consumer_group._CALL_SECONDS", 0.01)
    coordinator = SimpleNamespace(_rejoin_needed_fut=asyncio.Future())
    consumer = SimpleNamespace(assignment=lambda: {ours}, commit=commit, _coordinator=coordinator)
    group = make_group(consumer, call_thread)
    assert not await group.commit({ours: 7})
    async with asyncio.timeout(30):
        await ended.wait()
        await asyncio.gather(*calls, return_exceptions=True)


async def test_a_consumer_thread_that_has_ended_commits_nothing():
    """A worker may be stopped while its broker is away."""
    ours, loop = TopicPartition("trips", 0), asyncio.new_event_loop()
    loop.close()

    async def call_thread(_: Callable[..., Any], *__: object) -> None:
        loop.call_soon_threadsafe(loop.stop)

    consumer = SimpleNamespace(assignment=lambda: {ours})
    assert not await make_group(consumer, call_thread, thread_loop=loop).commit({ours: 7})


async def test_a_users_app_that_restores_its_tables_does_not_leave_yet():
    """Faust seeks in them, and ends the app if they are no longer assigned."""
    left: list[object] = []

    async def call_thread(function: Callable[..., Any], *arguments: Any) -> Any:
        return await function(*arguments)

    async def revoke(_: object) -> None:
        left.append("stopped")

    consumer = SimpleNamespace(
        assignment=lambda: {TopicPartition("trips", 0)},
        unsubscribe=lambda: left.append("unsubscribed"),
    )
    app = SimpleNamespace(
        conf=SimpleNamespace(consumer_group_instance_id=None),
        rebalancing=True,
        on_rebalance_start=lambda: None,
    )
    group = make_group(consumer, call_thread, app=app)
    app.consumer.on_partitions_revoked = revoke
    assert not await group.leave()
    assert left == []
    app.rebalancing = False
    assert await group.leave()
    assert left == ["stopped", "unsubscribed"]


async def test_silencing_partitions_is_repeated_until_it_succeeds():
    """The consumer's thread may be busy; unsilenced fetches would fill a queue without end."""
    ours = frozenset({TopicPartition("trips", 0), TopicPartition("trips", 1)})
    calls: list[frozenset[TopicPartition]] = []
    silenced = asyncio.Event()

    async def call_thread(_: Callable[..., Any], __: object, partitions: Any) -> bool:
        calls.append(partitions)
        if len(calls) < 3:
            raise TimeoutError
        silenced.set()
        return True

    consumer = SimpleNamespace(assignment=lambda: ours)
    make_group(consumer, call_thread).silence(ours)
    async with asyncio.timeout(30):
        await silenced.wait()
    assert calls == [ours] * 3


async def test_a_silent_partition_fetches_nothing_and_looks_to_faust_as_if_it_did():
    one, other = TopicPartition("trips", 0), TopicPartition("orders", 0)
    paused: list[TopicPartition] = []
    states = {p: SimpleNamespace(timestamp=None, highwater=None) for p in (one, other)}
    subscription = SimpleNamespace(assignment=SimpleNamespace(state_value=states.__getitem__))
    consumer = SimpleNamespace(
        assignment=lambda: states.keys(),
        pause=paused.append,
        _subscription=SimpleNamespace(subscription=subscription),
        _fetcher=SimpleNamespace(_records={one: b"", other: b""}),
    )
    # Faust's own objects must not reach the client.
    assert await silence(cast("AIOKafkaConsumer", consumer), {TP("trips", 0)})
    assert [(p, type(p)) for p in paused] == [(one, TopicPartition)]
    assert consumer._fetcher._records == {other: b""}
    assert states[one].highwater == 0
    assert states[other].timestamp is None
    # Faust's own check, a day after the start.
    subscription.assignment.active = True
    known = SimpleNamespace(_fetcher=SimpleNamespace(_subscriptions=consumer._subscription))
    thread = SimpleNamespace(
        _ensure_consumer=lambda: known,
        time_started=0.0,
        tp_fetch_request_timeout_secs=300.0,
        log=logging.getLogger("faust"),
    )
    check = partial(AIOKafkaConsumerThread._verify_aiokafka_event_path, thread, 86_400.0)
    assert not check(TP("trips", 0))
    assert check(TP("orders", 0))


async def test_a_channel_keeps_its_batches_when_flow_resumes():
    app = faust.App("channel", store="memory://")
    channel = BatchChannel(app)
    batches = [Batch(partition=0, start=at, stop=at + 1, end=9) for at in range(3)]
    # Before anybody reads it, while it flows, and while its flow is suspended.
    channel.send_batch(batches[0])
    stream = app.stream(channel)
    queue = stream.channel.queue
    channel.send_batch(batches[1])
    app.flow_control.suspend()
    channel.send_batch(batches[2])
    app.flow_control.resume()
    assert not channel.empty()
    assert [queue.get_nowait() for _ in range(3)] == batches
    assert channel.empty()


def _assigned(app: WorkerApp, cluster: ClusterMetadata) -> dict[str, list[int]]:
    assignor = EvenAssignor(app)
    found = assignor.assign(cluster, {"one": assignor.metadata({"city.reports"})})
    return dict(found["one"].assignment)


def _of(partitions: int) -> ClusterMetadata:
    cluster = ClusterMetadata()
    known = [(0, number, 1, [1], [1]) for number in range(partitions)]
    cluster.update_metadata(
        MetadataResponse_v0([(1, "127.0.0.1", 9092)], [(0, "city.reports", known)])
    )
    return cluster


@pytest.mark.parametrize(
    ("cluster", "many"),
    [(ClusterMetadata(), 4), (_of(4), 4), (_of(8), 8)],
    ids=["unknown", "known", "added"],
)
def test_a_leader_without_metadata_assigns_the_configured_partitions(
    cluster: ClusterMetadata, many: int
) -> None:
    """Metadata may fail to load while the group goes on; nobody would own anything then."""
    app = WorkerApp("group", broker="kafka://127.0.0.1:9092", store="memory://")
    app.partitions = Counter({"city.reports": 4})
    assert _assigned(app, cluster) == {"city.reports": [*range(many)]}

"""A pipeline: orders that it reads, what it publishes and commits, and how it stops."""

import asyncio
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import faust
import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaConnectionError
from aiokafka.structs import OffsetAndMetadata

from ldpstream.agents.broker.clients import stop_client
from ldpstream.agents.broker.refusals import Complaints
from ldpstream.agents.config import read_config
from ldpstream.agents.engine.flushing import Services
from ldpstream.agents.engine.gauges import track
from ldpstream.agents.engine.intake import BatchQueue
from ldpstream.agents.engine.isolation import end_tasks, isolate_errors
from ldpstream.agents.engine.metrics import Metrics
from ldpstream.agents.engine.patches.consumer_group import FaustGroup
from ldpstream.agents.engine.periodic_tasks import Group, OffsetCommitter
from ldpstream.agents.engine.pipeline import Pipeline
from ldpstream.agents.engine.publisher import Publisher
from ldpstream.agents.state.close_orders import Control, encode_control
from ldpstream.agents.state.encoding import encode_head, encode_key, state_prefix
from ldpstream.agents.state.records import HEAD, Head, Key
from ldpstream.agents.worker import faust_settings
from tests.processes import eventually
from tests.stream.engines import Same, make_engine, make_group
from tests.stream.serving import CITY, RIDES

ORDER = Control(until_ms=60_000, ends={0: 3})


class Consumer:
    """Gives the records of the topics once."""

    def __init__(self, found: dict[TopicPartition, list[Any]]) -> None:
        self.found = found

    def assign(self, _: object) -> None: ...

    async def seek_to_beginning(self, *_: object) -> None: ...

    async def getmany(self, **_: object) -> dict[TopicPartition, list[Any]]:
        await asyncio.sleep(0)
        found, self.found = self.found, {}
        return found


def make_pipeline() -> Pipeline:
    tables = {"city": CITY, "rides": RIDES}
    config = read_config({"collection": tables}, base=Path(), environment={})
    group = SimpleNamespace(silence=lambda _: None)
    channels = dict.fromkeys(tables, cast("BatchQueue", None))
    pipeline = Pipeline(config, group=cast("Group", group), channels=channels, metrics=Metrics())
    track(pipeline, pipeline.metrics)
    for engine in pipeline.collections.values():
        for replica in engine.replicas:
            replica.read([], position=0, end=0)
    return pipeline


def obey(pipeline: Pipeline, values: dict[str, list[bytes | None]]) -> "asyncio.Task[None]":
    """Let a pipeline read these messages from control topics."""
    found = {
        TopicPartition(topic, 0): [
            SimpleNamespace(topic=topic, offset=at, value=value) for at, value in enumerate(given)
        ]
        for topic, given in values.items()
    }
    return asyncio.create_task(pipeline._read_orders(cast("AIOKafkaConsumer", Consumer(found))))


async def test_malformed_orders_are_counted_logged_once_and_skipped(
    caplog: pytest.LogCaptureFixture,
) -> None:
    pipeline = make_pipeline()
    bad = [b"[" * 1_000, b"{", None, b"\xff", b"9" * 3_000_000]
    values: list[bytes | None] = [*bad, encode_control(ORDER)]
    topics = [engine.config.topics.control for engine in pipeline.collections.values()]
    run = obey(pipeline, {topics[0]: values, topics[1]: values[-1:]})
    await eventually(lambda: all(engine._controls for engine in pipeline.collections.values()))
    run.cancel()
    for engine in pipeline.collections.values():
        assert engine._controls == [ORDER]
        assert not engine.problems
    (said,) = caplog.messages
    assert said.startswith(f"topic {topics[0]}, offset 0: not an order to close panes")
    exposed = pipeline.metrics.exposition()[0].decode()
    assert 'ldpstream_refused_orders_total{collection="city"} 5.0' in exposed
    assert 'ldpstream_refused_orders_total{collection="rides"} 0.0' in exposed


async def test_an_unexpected_error_in_one_collection_leaves_the_other_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    pipeline = make_pipeline()
    city, rides = pipeline.collections.values()
    monkeypatch.setattr(city, "apply_control", fail)
    run = obey(pipeline, {e.config.topics.control: [encode_control(ORDER)] for e in (city, rides)})
    await eventually(lambda: city.stopped and rides._controls == [ORDER])
    assert (rides.stopped, pipeline.failed, run.done()) == (False, False, False)
    run.cancel()
    monkeypatch.setattr(city, "assign", fail)
    monkeypatch.setattr(city, "_problem", "")
    pipeline.assigned([])
    assert (city.stopped, rides.stopped, pipeline.failed) == (True, False, False)
    monkeypatch.setattr(city, "_problem", "")
    monkeypatch.setattr(city, "revoke", fail)
    await pipeline.revoked()
    assert (city.stopped, rides.stopped, pipeline.failed) == (True, False, False)


async def test_a_failed_task_that_all_depend_on_stops_all_and_asks_for_a_restart() -> None:
    async def end() -> None:
        raise ZeroDivisionError

    pipeline = make_pipeline()
    engines = pipeline.collections.values()
    pipeline._spawn(end, pipeline._report_unread_orders)
    await eventually(lambda: all(engine.problems for engine in engines))
    # Counting needs no orders, and after a restart the task may fail again.
    assert not any(engine.stopped for engine in engines)
    assert not pipeline.failed
    pipeline._spawn(end, pipeline._fail)
    await eventually(lambda: pipeline.failed)
    assert all(engine.stopped for engine in engines)


@pytest.mark.parametrize(
    ("options", "instance", "session_ms"),
    [({}, None, 6_000), ({}, "worker-2", 30_000), ({"session_timeout_ms": 45_000}, None, 45_000)],
)
def test_the_session_of_a_group_is_that_of_its_app(
    options: dict[str, int], instance: str | None, session_ms: int
) -> None:
    app = faust.App("app", **faust_settings("localhost:1", options, instance=instance))
    assert FaustGroup(app).session_ms == session_ms


async def test_a_pipeline_that_is_stopped_while_it_starts_ends_both(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A user's app stops it while the task that starts it still waits for the broker."""
    pipeline, asked = make_pipeline(), asyncio.Event()

    async def admin() -> None:
        asked.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(pipeline._connections, "admin", admin)
    starting = asyncio.create_task(pipeline.start())
    async with asyncio.timeout(30):
        await asked.wait()
        await pipeline.stop()
        await asyncio.wait([starting], timeout=5)
        assert starting.cancelled()
        asked.clear()
        await pipeline.start()
    assert not asked.is_set()


async def test_a_task_ends_that_loses_a_cancellation() -> None:
    lost = 0

    async def work() -> None:
        nonlocal lost
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            lost += 1
        await asyncio.Event().wait()

    working = asyncio.create_task(work())
    await asyncio.sleep(0)
    async with asyncio.timeout(30):
        await end_tasks([working])
    assert (lost, working.cancelled()) == (1, True)


async def test_whoever_waits_for_a_client_to_stop_can_be_cancelled() -> None:
    """Not so the client's stop: aiokafka cancels that itself while the broker is away."""

    async def cancel_itself() -> None:
        task = asyncio.current_task()
        task.cancel()
        await asyncio.sleep(0)

    async def refuse() -> None:
        raise KafkaConnectionError

    await stop_client(cancel_itself)
    await stop_client(refuse)
    waiting = asyncio.create_task(stop_client(asyncio.Event().wait))
    await asyncio.sleep(0.01)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


class News(asyncio.Event):
    """Counts how often it is looked at."""

    looks = 0

    def is_set(self) -> bool:
        self.looks += 1
        return super().is_set()


def start(
    first: object, *, every_seconds: float = math.inf, stopped: bool = False
) -> tuple[News, asyncio.Task[None]]:
    """Start a publisher without services: it can publish nothing. Return its news and task."""
    news = News()
    topics = SimpleNamespace(estimates="trips.estimates")
    config = SimpleNamespace(publish_every_seconds=every_seconds, name="trips", topics=topics)
    engine: Any = SimpleNamespace(
        config=config, first=first, stopped=stopped, news=news, complaints=Complaints()
    )
    publisher = Publisher(engine, cast("Services", None))
    return news, asyncio.create_task(publisher.run())


@pytest.mark.parametrize("first", [None, object()], ids=["owned elsewhere", "stopped"])
async def test_a_publisher_that_has_nothing_to_publish_waits_for_the_next_head(first: object):
    news, running = start(first, every_seconds=0.001, stopped=first is not None)
    # Another worker's head has won, and its documents are due.
    news.set()
    await asyncio.sleep(0.2)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert 1 <= news.looks <= 3


async def test_with_open_windows_off_a_publisher_publishes_finals_alone():
    looked: list[str] = []
    news, running = start(SimpleNamespace(publications=lambda: looked.append("finals")))
    for _ in range(4):
        news.set()
        await asyncio.sleep(0.05)
    assert not running.done()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert looked


@pytest.mark.parametrize("steps", range(6))
async def test_a_publisher_ends_even_if_cancelled_as_news_arrives(steps: int):
    news, running = start(None)
    await asyncio.sleep(0.01)
    news.set()
    for _ in range(steps):
        await asyncio.sleep(0)
    running.cancel()
    done, _ = await asyncio.wait([running], timeout=5)
    assert done


class Commits:
    """Accepts commits, or refuses them."""

    def __init__(self) -> None:
        self.takes = True
        self.offsets: dict[TopicPartition, int] = {}

    async def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> bool:
        if self.takes:
            self.offsets |= {at: commit.offset for at, commit in offsets.items()}
        return self.takes

    def silence(self, partitions: object) -> None: ...


async def test_offsets_that_could_not_be_committed_are_committed_later() -> None:
    """The next flush may be long in coming, and until then the group would seem to lag."""
    stream, engine = Commits(), make_engine()
    progress = OffsetCommitter(stream, [engine])
    sources = [TopicPartition("city.reports", partition) for partition in range(2)]
    progress.assigned = frozenset(sources)

    stream.takes = False
    engine.replicas[0].head, engine.replicas[1].head = Head(next=5), Head(next=5)
    await progress.commit()
    engine.replicas[1].head = Head(next=6)
    stream.takes = True
    await progress.commit()
    assert stream.offsets == {sources[0]: 5, sources[1]: 6}
    stream.offsets.clear()
    await progress.commit()
    assert stream.offsets == {}


async def test_an_internal_error_of_one_collection_does_not_keep_others_from_committing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream, odd, well = Commits(), make_engine(), make_engine()
    monkeypatch.setattr(odd, "replicas", None)
    progress = OffsetCommitter(stream, [odd, well])
    well.replicas[0].head = Head(next=5)
    at = TopicPartition("city.reports", 0)
    progress.assigned = frozenset({at})
    await progress.commit()
    assert stream.offsets == {at: 5}
    assert (odd.stopped, well.stopped) == (True, False)


async def test_offsets_that_an_owner_could_not_commit_are_committed_by_the_next() -> None:
    """The next message may be long in coming, and until then the group would seem to lag."""
    stream, engine = Commits(), make_engine()
    progress = OffsetCommitter(stream, [engine])
    engine.replicas[0].head, engine.replicas[1].head = Head(next=5), None
    # The second partition belongs to another collection.
    at = TopicPartition("city.reports", 0)
    progress.assigned = frozenset({at, at._replace(topic="others")})
    await progress.commit()
    assert stream.offsets == {}
    engine.replicas[1].head = Head(next=6)
    await progress.commit()
    assert stream.offsets == {at: 5}


async def test_offsets_of_another_topic_of_this_name_are_not_committed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The group would seem to have read offsets that the new topic does not have yet."""
    monkeypatch.setattr(Same, "topic_id", lambda *_: bytes(16))
    key = encode_key(state_prefix(make_engine().context), Key(HEAD, 7, 1))
    head = Head(epoch=7, seq=1, next=1_000, source=b"other topic's id")
    stream, engine = Commits(), make_engine(read=[(key, encode_head(head))])
    progress = OffsetCommitter(stream, [engine])
    progress.assigned = frozenset({TopicPartition("city.reports", 0)})
    engine.assign([0])
    await progress.commit()
    with isolate_errors(engine.fail):
        engine.tick()
    assert engine.stopped
    await progress.commit()
    await engine.revoke()
    await progress.commit()
    assert stream.offsets == {}


async def test_a_partition_that_the_client_has_lost_is_committed_later() -> None:
    """The client loses it before the worker knows, and may be given it again."""
    kept, lost = (TopicPartition("city.reports", partition) for partition in range(2))
    assigned, committed = {kept, lost}, dict[TopicPartition, int]()

    async def commit(offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        committed.update({at: commit.offset for at, commit in offsets.items()})

    async def call_thread(function: Callable[..., Any], *arguments: Any) -> Any:
        return await function(*arguments)

    coordinator = SimpleNamespace(_rejoin_needed_fut=asyncio.Future())
    consumer = SimpleNamespace(assignment=lambda: assigned, commit=commit, _coordinator=coordinator)
    group = make_group(consumer, call_thread)
    engine = make_engine()
    progress = OffsetCommitter(group, [engine])
    progress.assigned = frozenset({kept, lost})
    engine.replicas[0].head, engine.replicas[1].head = Head(next=5), Head(next=6)
    assigned.remove(lost)
    await progress.commit()
    assigned.add(lost)
    await progress.commit()
    assert committed == {kept: 5, lost: 6}


async def test_a_task_ends_that_is_cancelled_as_the_client_answers() -> None:
    """A pipeline that stops waits for it."""
    answer = asyncio.get_running_loop().create_future()

    async def call_thread(*_: object) -> object:
        return await answer

    async def ask_again() -> None:
        while True:
            await group.refusal()
            await asyncio.sleep(0)

    group = make_group(object(), call_thread)
    asking = asyncio.create_task(ask_again())
    await asyncio.sleep(0.01)
    answer.set_result(None)
    # Of a task of its own for the call, the end is known only in the next step.
    for _ in range(2):
        asking.cancel()
        await asyncio.wait([asking], timeout=0)
    await asyncio.wait([asking], timeout=5)
    assert asking.cancelled()

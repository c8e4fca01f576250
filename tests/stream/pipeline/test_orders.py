"""The control topics of two collections: bad orders are counted, good ones are obeyed."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import faust
import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition

from ldpstream.agents.config import read_config
from ldpstream.agents.engine.gauges import track
from ldpstream.agents.engine.intake import BatchQueue
from ldpstream.agents.engine.metrics import Metrics
from ldpstream.agents.engine.patches.consumer_group import FaustGroup
from ldpstream.agents.engine.periodic_tasks import Group
from ldpstream.agents.engine.pipeline import Pipeline
from ldpstream.agents.state.close_orders import Control, encode_control
from ldpstream.agents.worker import faust_settings
from tests.processes import eventually
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

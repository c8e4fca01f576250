"""The control topics of two collections: one is flooded, each is counted, both are obeyed."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition

from ldpstream.agents.config import read_config
from ldpstream.agents.metrics import Metrics
from ldpstream.agents.partition.clock import Control
from ldpstream.agents.partition.control import encode_control
from ldpstream.agents.pipeline.pipeline import Pipeline
from ldpstream.agents.pipeline.progress import Group
from ldpstream.agents.reading.intake import Channel
from ldpstream.agents.reading.orders import ControlReader
from tests.processes import eventually
from tests.stream.serving import CITY, RIDES

ORDER = Control(until_ms=60_000, ends={0: 3})


class Consumer:
    """Gives what is on the topics, once."""

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
    channels = dict.fromkeys(tables, cast("Channel", None))
    pipeline = Pipeline(config, group=cast("Group", group), channels=channels, metrics=Metrics())
    pipeline.metrics.track(pipeline)
    for engine in pipeline.collections.values():
        for replica in engine.replicas:
            replica.read([], position=0, end=0)
    return pipeline


async def test_what_is_no_order_is_counted_said_once_and_passed_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    pipeline = make_pipeline()
    bad = [b"[" * 1_000, b"{", None, b"\xff", b"9" * 3_000_000]
    values = [*bad, encode_control(ORDER)]
    topics = [engine.config.topics.control for engine in pipeline.collections.values()]
    records = [SimpleNamespace(offset=at, value=value) for at, value in enumerate(values)]
    found = {TopicPartition(topics[0], 0): records, TopicPartition(topics[1], 0): records[-1:]}
    reader = ControlReader(
        cast("AIOKafkaConsumer", Consumer(found)),
        topics,
        on_order=pipeline._order,
        on_bad=pipeline._bad_order,
        on_error=lambda error: pytest.fail(repr(error)),
    )
    run = asyncio.create_task(reader.run())
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


async def test_one_collections_unexpected_error_leaves_the_other_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    pipeline = make_pipeline()
    city, rides = pipeline.collections.values()
    for method, call in (
        ("order", lambda: pipeline._order(city.config.topics.control, ORDER)),
        ("assign", lambda: pipeline.assigned([])),
    ):
        monkeypatch.setattr(city, method, fail)
        monkeypatch.setattr(city, "_problems", [])
        call()
        assert (city.stopped, rides.stopped, pipeline.failed) == (True, False, False)
    monkeypatch.setattr(city, "_problems", [])
    monkeypatch.setattr(city, "revoke", fail)
    await pipeline.revoked()
    assert (city.stopped, rides.stopped, pipeline.failed) == (True, False, False)


async def test_what_all_collections_depend_on_stops_them_all_and_asks_for_a_restart() -> None:
    async def end(error: Exception) -> None:
        raise error

    pipeline = make_pipeline()
    engines = pipeline.collections.values()
    pipeline._tasks.spawn(end(ZeroDivisionError()), pipeline._orders_ended)
    await eventually(lambda: all(engine.problems for engine in engines))
    # Counting needs no orders, and a restart may end here again.
    assert not any(engine.stopped for engine in engines)
    assert not pipeline.failed
    pipeline._spawn(end(ZeroDivisionError()))
    await eventually(lambda: pipeline.failed)
    assert all(engine.stopped for engine in engines)

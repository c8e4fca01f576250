"""What `attach` adds to a user's own app, and what it refuses."""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
import faust
import prometheus_client
import pytest
from aiokafka.errors import NodeNotReadyError

from ldpstream.agents.config import read_config
from ldpstream.agents.engine.metrics import Metrics
from ldpstream.agents.engine.windowed_table import NotReadyError
from ldpstream.agents.web import HttpUnavailableError
from ldpstream.agents.worker import _connect, attach
from tests.ports import free_ports
from tests.stream.serving import CITY

CONFIG = read_config({"collection": {"city": CITY}}, base=Path(), environment={})


def make_app(name: str) -> faust.App:
    return faust.App(name, store="memory://")


def add_agent(app: faust.App, *topics: str) -> Any:
    """Give an app an agent of the user's own on some topics, and return it."""

    async def mine(stream: faust.Stream[bytes]) -> None:
        async for _ in stream:
            pass

    return app.agent(app.topic(*topics))(mine)


def attached(app: faust.App) -> Any:
    return attach(app, CONFIG, metrics=Metrics(registry=prometheus_client.CollectorRegistry()))


async def test_another_agent_on_a_collections_topic_is_refused() -> None:
    app = make_app("own")
    add_agent(app, "orders", CONFIG.collections["city"].topics.source)
    with pytest.raises(ValueError, match=r"agent .*mine reads city.reports, the topic of .* city"):
        attached(app)


async def test_an_agent_that_is_added_later_is_refused_at_the_start() -> None:
    app = make_app("later")
    attached(app)
    (start,) = app._app_tasks
    add_agent(app, CONFIG.collections["city"].topics.source)
    with pytest.raises(ValueError, match=r"pipeline.windows\('city'\)"):
        await start()


async def test_other_agents_and_the_collections_own_are_accepted() -> None:
    app = make_app("others")
    mine = add_agent(app, "orders")
    pipeline = attached(app)
    assert sorted(app.agents) == ["ldpstream.city", mine.name]
    table = pipeline.windows("city")
    with pytest.raises(NotReadyError):
        len(table)
    with pytest.raises(KeyError, match="expected one of city, got town"):
        pipeline.windows("town")


async def test_the_page_is_served_from_the_start_of_the_app_to_its_end() -> None:
    (port,) = free_ports(1)
    tables = {"collection": {"city": CITY}, "worker": {"http": f"127.0.0.1:{port}"}}
    app = make_app("served")
    metrics = Metrics(registry=prometheus_client.CollectorRegistry())
    attach(app, read_config(tables, base=Path(), environment={}), metrics=metrics, http=True)
    _, answer = app._app_tasks
    serving = asyncio.create_task(answer())
    async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:
        while True:
            with suppress(aiohttp.ClientConnectorError):
                async with session.get("/metrics") as got:
                    assert "ldpstream_build_info" in await got.text()
                    break
            await asyncio.sleep(0.01)
        serving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await serving
        with pytest.raises(aiohttp.ClientConnectorError):
            await session.get("/metrics")


def test_an_address_without_a_token_is_refused_at_once() -> None:
    tables = {"collection": {"city": CITY}, "worker": {"http": "0.0.0.0:6066"}}
    config = read_config(tables, base=Path(), environment={})
    with pytest.raises(HttpUnavailableError, match=r"worker\.token: expected a token"):
        attach(make_app("open"), config, http=True)


async def test_nominal_budgets_are_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    attached(make_app("meant"))
    assert not caplog.messages
    tables = {"collection": {"city": {**CITY, "epsilon": 20.0}}}
    attach(make_app("nominal"), read_config(tables, base=Path(), environment={}))
    (said,) = caplog.messages
    assert said.startswith("collection.city: warning: its least budget is 20")


async def test_a_worker_subscribes_without_a_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(_: object) -> None:
        raise NodeNotReadyError

    monkeypatch.setattr(faust.topics.Topic, "maybe_declare", refuse)
    app = make_app("worker")
    _connect(app, CONFIG, Metrics(), declares=False)
    assert set(await app.topics._update_indices()) == {CONFIG.collections["city"].topics.source}
    app = make_app("own")
    attached(app)
    with pytest.raises(NodeNotReadyError):
        await app.topics._update_indices()

"""A worker that does not own partition 0 of a collection publishes nothing of it, and rests."""

import asyncio
import math
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ldpstream.agents.pipeline.flushing import Services
from ldpstream.agents.pipeline.publisher import Publisher


class News(asyncio.Event):
    """Counts how often somebody looks."""

    looks = 0

    def is_set(self) -> bool:
        self.looks += 1
        return super().is_set()


@pytest.mark.parametrize("first", [None, object()], ids=["owned elsewhere", "stopped"])
async def test_a_publisher_that_has_nothing_to_publish_waits_for_the_next_head(first: object):
    news = News()
    config = SimpleNamespace(publish_every_seconds=0.001, name="trips")
    engine: Any = SimpleNamespace(config=config, first=first, stopped=first is not None, news=news)

    # Publishing anything would need a service.
    publisher = Publisher(engine, cast("Services", None))
    running = asyncio.create_task(publisher.run())
    # Another worker's head has won, and its documents are due.
    news.set()
    await asyncio.sleep(0.2)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert 1 <= news.looks <= 3


async def test_a_publisher_of_closed_windows_alone_publishes_finals_alone():
    news, looked = News(), []
    config = SimpleNamespace(publish_every_seconds=math.inf, name="trips")
    first = SimpleNamespace(publications=lambda: looked.append("finals"))
    engine: Any = SimpleNamespace(config=config, first=first, stopped=False, news=news)

    # Publishing a document of an open window would need a service.
    publisher = Publisher(engine, cast("Services", None))
    running = asyncio.create_task(publisher.run())
    for _ in range(4):
        news.set()
        await asyncio.sleep(0.05)
    assert not running.done()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert looked


@pytest.mark.parametrize("steps", range(6))
async def test_a_publisher_ends_also_where_it_is_cancelled_as_news_come(steps: int):
    news = News()
    config = SimpleNamespace(publish_every_seconds=math.inf, name="trips")
    engine: Any = SimpleNamespace(config=config, first=None, stopped=False, news=news)
    running = asyncio.create_task(Publisher(engine, cast("Services", None)).run())
    await asyncio.sleep(0.01)
    news.set()
    for _ in range(steps):
        await asyncio.sleep(0)
    running.cancel()
    done, _ = await asyncio.wait([running], timeout=5)
    assert done

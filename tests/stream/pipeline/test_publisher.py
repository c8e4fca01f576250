"""The publisher of a collection: when it waits, what it publishes, and how it ends."""

import asyncio
import math
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ldpstream.agents.broker.refusals import Complaints
from ldpstream.agents.engine.flushing import Services
from ldpstream.agents.engine.publisher import Publisher


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

"""What Faust would print by itself is left to the worker, which says it in one line."""

import asyncio
import logging
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import faust
import pytest
from aiokafka import TopicPartition

from ldpstream.agents.faust_parts import FaustStream, _CommittedThread


def test_a_consumer_thread_that_crashes_prints_nothing(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
):
    thread = _CommittedThread.__new__(_CommittedThread)
    with caplog.at_level(logging.DEBUG, logger="ldpstream"):
        thread.on_crash("{0!r} crashed: {1!r}", "Consumer", ConnectionError("cut"))
    assert capsys.readouterr() == ("", "")
    assert "crashed: ConnectionError('cut')" in caplog.text


async def test_a_commit_that_is_not_answered_is_given_up(monkeypatch: pytest.MonkeyPatch):
    """In the consumer's thread too, which calls no more than two functions at a time."""
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

    monkeypatch.setattr("ldpstream.agents.faust_parts._CALL_SECONDS", 0.01)
    consumer = SimpleNamespace(assignment=lambda: {ours}, commit=commit)
    own = SimpleNamespace(_thread=SimpleNamespace(_consumer=consumer, call_thread=call_thread))
    stream = FaustStream(cast("faust.App", SimpleNamespace(consumer=own)))
    assert not await stream.commit({ours: 7})
    async with asyncio.timeout(30):
        await ended.wait()
        await asyncio.gather(*calls, return_exceptions=True)


async def test_a_consumer_thread_that_has_ended_commits_nothing():
    """As in a worker that is told to end while its broker is away."""
    ours, loop = TopicPartition("trips", 0), asyncio.new_event_loop()
    loop.close()

    async def call_thread(_: Callable[..., Any], *__: object) -> None:
        loop.call_soon_threadsafe(loop.stop)

    consumer = SimpleNamespace(assignment=lambda: {ours})
    thread = SimpleNamespace(_consumer=consumer, call_thread=call_thread, thread_loop=loop)
    app = SimpleNamespace(consumer=SimpleNamespace(_thread=thread))
    assert not await FaustStream(cast("faust.App", app)).commit({ours: 7})


async def test_partitions_are_held_all_at_once():
    """Faust looks at every partition that it has, each time that it is asked."""
    ours = frozenset(TopicPartition("trips", partition) for partition in range(1_000))
    held: list[set[tuple[str, int]]] = []
    paused: list[frozenset[TopicPartition]] = []

    async def call_thread(_: Callable[..., Any], __: object, partitions: Any) -> None:
        paused.append(partitions)

    consumer = SimpleNamespace(assignment=lambda: ours)
    thread = SimpleNamespace(_consumer=consumer, call_thread=call_thread)
    own = SimpleNamespace(_thread=thread, pause_partitions=held.append)
    stream = FaustStream(cast("faust.App", SimpleNamespace(consumer=own)))
    stream.hold(TopicPartition("others", 0))
    for partition in ours:
        stream.hold(partition)
    await asyncio.sleep(0.01)
    assert held == [{tuple(partition) for partition in ours}]
    assert paused == [ours]

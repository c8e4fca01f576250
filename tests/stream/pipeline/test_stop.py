"""A pipeline that stops: it waits for its tasks and clients, not for what they wait for."""

import asyncio

import pytest
from aiokafka.errors import KafkaConnectionError

from ldpstream.agents.broker.clients import stop_client
from ldpstream.agents.engine.isolation import end_tasks
from tests.stream.pipeline.test_orders import make_pipeline


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
        assert task is not None
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

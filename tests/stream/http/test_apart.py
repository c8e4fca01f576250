"""Costly answers come from a process of their own."""

import asyncio
import gc
import os
import pickle
import signal
import threading
import time
from typing import Any

import pytest

from ldpstream.agents.web import computation as computing
from ldpstream.agents.web import worker_process as apart
from ldpstream.agents.web.certificates import Proof
from ldpstream.agents.web.computation import CHEAP_BYTES, ComputeQueues
from ldpstream.agents.web.worker_process import AbortedError, AnswerProcess
from tests.processes import PATIENCE_SECONDS
from tests.stream.asking import CITY_PATH, Client, ask
from tests.stream.serving import Pipeline

pytestmark = pytest.mark.slow
COSTLY_BYTES = CHEAP_BYTES + 1
COSTLY = f"{CITY_PATH}?top=60&range=0..0,0..0&range=0..1,0..1"


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Make every answer costly, and return the ids of processes as they are started."""
    found: list[int] = []
    start = apart.subprocess.Popen

    def note(*arguments: object, **options: object) -> object:
        process = start(*arguments, **options)
        found.append(process.pid)
        return process

    monkeypatch.setattr(computing, "CHEAP_BYTES", 0)
    monkeypatch.setattr(apart.subprocess, "Popen", note)
    return found


def runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


async def until_gone(process: int) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while runs(process):  # noqa: ASYNC110 (a process sets no event)
            await asyncio.sleep(0.01)


async def test_the_process_gives_the_same_answer_and_ends_when_it_is_idle(
    client: Client, started: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    apart_ = await ask(client, COSTLY)
    assert await ask(client, COSTLY + "&confidence=0.9") != apart_
    assert len(started) == 1
    assert os.getpriority(os.PRIO_PROCESS, started[0]) > os.getpriority(os.PRIO_PROCESS, 0)
    # What the collection publishes is computed in a thread, however large.
    await ask(client, CITY_PATH)
    assert len(started) == 1
    monkeypatch.setattr(computing, "_IDLE_SECONDS", 0.01)
    assert await ask(client, COSTLY) == apart_
    await until_gone(started[0])
    monkeypatch.setattr(computing, "CHEAP_BYTES", 1 << 40)
    assert await ask(client, COSTLY) == apart_


async def test_a_process_that_is_killed_costs_one_answer(
    client: Client, started: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await ask(client, COSTLY)
    os.kill(started[0], signal.SIGSTOP)
    waiting = asyncio.create_task(ask(client, COSTLY, 503))
    # By now the job is sent to the process, which is stopped.
    await asyncio.sleep(0.2)
    os.kill(started[0], signal.SIGKILL)
    reason = "its process was ended by signal 9, Killed"
    assert (await waiting)["error"] == f"the computation was aborted ({reason}): ask for less"
    assert await ask(client, COSTLY) == first
    assert len(started) == 2


async def test_the_process_ends_with_the_application(client: Client, started: list[int]) -> None:
    await ask(client, COSTLY)
    await client.close()
    await until_gone(started[0])
    assert len(started) == 1


async def test_a_cancelled_request_leaves_its_turn_to_its_thread(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    queues, config = ComputeQueues(), pipeline.collections["city"].config
    begun, running = threading.Semaphore(0), threading.Semaphore(0)
    failing = [True, False]

    def body(*_: object, **__: object) -> bytes:
        begun.release()
        running.acquire()
        if failing.pop(0):
            raise AbortedError("nobody is told")
        return b""

    async def compute() -> None:
        async with queues.turn(COSTLY_BYTES, 0) as turn:
            await turn(config, Proof, frozenset())

    monkeypatch.setattr(AnswerProcess, "body", body)
    first = asyncio.create_task(compute())
    await asyncio.to_thread(begun.acquire)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    second = asyncio.create_task(compute())
    await asyncio.sleep(0.1)
    together = begun.acquire(blocking=False)
    running.release(2)
    await second
    assert not together
    await queues.close()
    gc.collect()
    assert caplog.text == ""


def test_the_time_that_it_takes_to_hand_over_a_job_counts(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    process, config = AnswerProcess(), pipeline.collections["city"].config
    process.body(Proof(), config)
    dump = pickle.dump

    def slow(*arguments: Any, **options: Any) -> None:
        time.sleep(1.0)
        dump(*arguments, **options)

    monkeypatch.setattr(apart.pickle, "dump", slow)
    with pytest.raises(AbortedError, match=r"it takes longer than 1 s"):
        process.body(Proof(), config, limit_seconds=1.0)

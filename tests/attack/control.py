"""One poisoned message on a topic of one collection stops nothing, even after a restart."""

import asyncio
import json
import time
import tomllib
import urllib.request
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaProducer

from tests.attack.stand import COLLECTION, Attack, Outcome, Stand
from tests.processes import PATIENCE_SECONDS, Worker
from tests.unreadable import send_unreadable

_NAMES = ("honest", "poisoned")
_REPORTS = 20
_NOTICED_SECONDS = 3.0

Poison = Callable[[AIOKafkaProducer, Mapping[str, str]], Awaitable[None]]
"""Writes with a plain producer, given the topics of the poisoned collection by their kind."""


async def _brackets(producer: AIOKafkaProducer, topics: Mapping[str, str]) -> None:
    await producer.send_and_wait(topics["control"], b"[" * 1_000, partition=0)


def _unreadable(kind: str) -> Poison:
    """Return what writes a record that no client can parse."""

    async def write(producer: AIOKafkaProducer, topics: Mapping[str, str]) -> None:
        await send_unreadable(producer, topics[kind])

    return write


def _attack(poison: Poison) -> Callable[[Stand], Awaitable[Outcome]]:
    """Return an attack on a running worker and, but for the short form of some, on the next one."""

    async def run(stand: Stand) -> Outcome:
        file = stand.configure(dict.fromkeys(_NAMES, COLLECTION))
        config = tomllib.loads(file.read_text())
        with stand.serving("worker", "-c", str(file)) as worker:
            if stopped := await _send(stand, file, worker, total=_REPORTS):
                raise AssertionError(f"not counted before the attack: {stopped}")
            await _write(stand, config, poison)
            await asyncio.sleep(_NOTICED_SECONDS)
            running = await _send(stand, file, worker, total=2 * _REPORTS)
            if stand.short and poison is not _brackets:
                return Outcome(not running, f"running: {_stopped(running)}")
            await asyncio.to_thread(worker.terminate)
        try:
            with stand.serving("worker", "-c", str(file)) as worker:
                restarted = await _send(stand, file, worker, total=3 * _REPORTS)
                obeyed = not restarted and await _close(stand, file, worker)
        except AssertionError as error:
            if "did not become ready" not in str(error):
                raise
            restarted, obeyed = ["the worker"], False
        figure = f"running: {_stopped(running)}; restarted: {_stopped(restarted)}"
        return Outcome(obeyed and not running, figure + ("; closes" if obeyed else ""))

    return run


def _stopped(names: list[str]) -> str:
    return f"{' and '.join(names)} stopped" if names else "all count"


async def _write(stand: Stand, config: Mapping[str, Any], poison: Poison) -> None:
    source = config["collection"]["poisoned"]["topic"]
    topics = {
        "source": source,
        "control": f"{source}.control",
        "changelog": f"{config['worker']['id']}-poisoned-changelog",
    }
    producer = AIOKafkaProducer(bootstrap_servers=stand.broker.bootstrap)
    await producer.start()
    try:
        await poison(producer, topics)
    finally:
        await producer.stop()


async def _send(stand: Stand, file: Path, worker: Worker, *, total: int) -> list[str]:
    """Send reports to all collections; return those that have not counted this many in all."""
    values = "".join(f"{number % 12}\n" for number in range(_REPORTS)).encode()
    for name in _NAMES:
        await _run(stand, "send", name, "-c", str(file), stdin=values)
    left, deadline = list(_NAMES), time.monotonic() + PATIENCE_SECONDS
    while left and time.monotonic() < deadline:
        if worker.process.poll() is not None:
            return [*left, "the worker"]
        found = {name: await _get(worker, f"{name}/status") for name in left}
        left = [name for name in left if found[name]["counted"] != total]
        if left and all(found[name]["problems"] for name in left):
            break
        await asyncio.sleep(0.2)
    return left


async def _close(stand: Stand, file: Path, worker: Worker) -> bool:
    """Order the poisoned collection to close: what comes after the poison is read."""
    until = str((int(time.time()) + 120) * 1_000)
    await _run(stand, "close", "poisoned", "--until", until, "--yes", "-c", str(file))
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        windows = (await _get(worker, "poisoned/windows?all=true"))["windows"]
        if windows and all(window["final"] for window in windows):
            return True
        await asyncio.sleep(0.2)
    return False


async def _run(stand: Stand, *arguments: str, stdin: bytes = b"") -> None:
    ran = await asyncio.to_thread(stand.run, *arguments, stdin=stdin)
    if ran.returncode:
        raise AssertionError(ran.stderr.decode())


async def _get(worker: Worker, path: str) -> Any:
    def get() -> Any:
        url = f"{worker.url}/api/collections/{path}"
        with urllib.request.urlopen(url, timeout=PATIENCE_SECONDS) as answer:
            return json.loads(answer.read())

    return await asyncio.to_thread(get)


ATTACKS = (
    Attack(
        "control-brackets",
        "1,000 brackets on a control topic stop nothing, and the next order is obeyed",
        _attack(_brackets),
    ),
    *(
        Attack(
            f"control-unreadable-{kind}",
            f"a record with a header that is not text, on a {kind} topic, stops nothing",
            _attack(_unreadable(kind)),
        )
        for kind in ("source", "control", "changelog")
    ),
)

"""How soon another worker counts the partitions of a killed one.

    python -m benchmarks.resilience.killed
    python -m benchmarks.resilience.killed --kills 10 --partitions 12 --rate 50

Two workers without an `instance` share one collection on Apache Kafka, while single reports arrive
in all partitions in turn. Every few seconds one of the two, in turn, is killed (SIGKILL), and
another one started once the partitions are counted again. For each partition that the killed worker
owned, the time is shown from the kill to the broker's timestamp of the first head that counts a
report which arrived after the kill: mostly the session timeout, 6 s. In the end every report must
have been counted once; exits with 1 otherwise.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from aiokafka import AIOKafkaProducer
from rich.console import Console
from rich.table import Table
from tests.brokers import broker
from tests.lab import Lab
from tests.processes import Worker, eventually

from benchmarks.resilience.progress import winning_heads
from benchmarks.state.many import await_counted, seconds_until, send_singles

_BEFORE_SECONDS = 3.0
_LOAD_SECONDS = 20.0


@dataclass(frozen=True)
class Kill:
    """One kill: its time, the partitions owned, and the partition, offset and time of reports."""

    at: float
    partitions: frozenset[int]
    sent: list[tuple[int, int, float]]


def main() -> None:
    parser = argparse.ArgumentParser(description="Time how soon a killed worker is replaced.")
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--partitions", type=int, default=12)
    parser.add_argument("--rate", type=float, default=50.0, help="single reports a second")
    given = parser.parse_args()
    with broker("kafka") as running, tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        lab = Lab(running, Path(folder), partitions=given.partitions)
        sys.exit(asyncio.run(_measure(lab, given, stack)))


async def _measure(lab: Lab, given: argparse.Namespace, stack: ExitStack) -> int:
    workers = [await asyncio.to_thread(_start, lab, stack) for _ in range(2)]
    kills: list[Kill] = []
    async with lab.producer() as producer:
        for number in range(given.kills):
            await eventually(lambda: all(map(_owned, workers)), what="both own partitions")
            victim, survivor = workers[number % 2], workers[1 - number % 2]
            kills.append(await _kill(lab, producer, victim, rate=given.rate))
            sent = sum(len(kill.sent) for kill in kills)
            await await_counted(survivor, sent)
            workers[number % 2] = await asyncio.to_thread(_start, lab, stack)
    counted = int(workers[0].get("/api/collections/trips/status")["counted"])
    heads = await winning_heads(lab)
    table = Table("kill", "partitions", "first", "median", "last", title_justify="left")
    table.title = "s from the kill of a worker until its partitions are counted again"
    for number, kill in enumerate(kills, 1):
        took = sorted(
            arrived - kill.at + seconds_until(heads, partition, offset, arrived)
            for partition, offset, arrived in _first_after(kill)
        )
        shown = (took[0], took[len(took) // 2], took[-1])
        table.add_row(f"{number}", f"{len(took)}", *(f"{seconds:.2f}" for seconds in shown))
    console = Console(width=100)
    console.print(table)
    console.print(f"{sent:,} reports sent, {counted:,} counted")
    return int(counted != sent)


def _start(lab: Lab, stack: ExitStack) -> Worker:
    worker = lab.start_worker()
    stack.callback(worker.kill)
    worker.wait_ready()
    return worker


async def _kill(lab: Lab, producer: AIOKafkaProducer, victim: Worker, *, rate: float) -> Kill:
    """Kill a worker while reports arrive."""
    number = int(rate * (_BEFORE_SECONDS + _LOAD_SECONDS))
    sending = asyncio.create_task(send_singles(lab, producer, number=number, rate=rate))
    await asyncio.sleep(_BEFORE_SECONDS)
    partitions, at = _owned(victim), time.time()
    victim.kill()
    return Kill(at, partitions, await sending)


def _owned(worker: Worker) -> frozenset[int]:
    """Return the partitions that a worker owns."""
    shown = worker.get("/api/collections/trips/status")["partitions"]
    return frozenset(number for number, one in enumerate(shown) if one["owned"])


def _first_after(kill: Kill) -> list[tuple[int, int, float]]:
    """Return, for each partition of the killed worker, the first report after the kill."""
    found: dict[int, tuple[int, int, float]] = {}
    for one in sorted(kill.sent, key=lambda sent: sent[2]):
        partition, _, arrived = one
        if partition in kill.partitions and arrived > kill.at:
            found.setdefault(partition, one)
    return [*found.values()]


if __name__ == "__main__":
    main()

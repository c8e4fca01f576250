"""Reports a second from topic to statistic, beside a bare consumer and a plain Faust agent.

    python -m benchmarks.throughput --broker kafka

In one run, on one machine that also runs the broker: a bare aiokafka `getmany` loop that drops what
it gets, a Faust agent that does `table[key] += 1`, and the worker, whose counts are durable in the
changelog before they are counted here. Each reads a topic that was written before it started. The
clock runs from the first fetch to the last message; for the worker from the moment at which its
first counts are durable to the moment at which all are. The plain agent, the slowest by far, is
measured over fewer messages.
"""

import argparse
import asyncio
import multiprocessing
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import faust
import numpy as np
from aiokafka import TopicPartition
from faust.types import StreamT
from rich.console import Console
from rich.table import Table
from tests.brokers import KINDS, Broker, broker
from tests.lab import START_MS, Lab

PARTITIONS = 4
POLL_SECONDS = 0.02
PLAIN_MESSAGES = 50_000


@dataclass(frozen=True)
class Measured:
    """How fast one reader was on one topic."""

    reader: str
    reports_a_message: int
    messages_a_second: float

    @property
    def reports_a_second(self) -> float:
        """Return its speed in reports."""
        return self.messages_a_second * self.reports_a_message


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description="Measure reports a second.")
    parser.add_argument("--broker", choices=KINDS, default="embedded")
    parser.add_argument("--singles", type=int, default=1_000_000, help="messages of one report")
    parser.add_argument("--frames", type=int, default=300_000, help="messages of 1,000 reports")
    given = parser.parse_args()
    measured: list[Measured] = []
    with broker(given.broker) as running:
        for messages, reports in ((given.singles, 1), (given.frames, 1_000)):
            with tempfile.TemporaryDirectory() as folder:
                lab = Lab(running, Path(folder), partitions=PARTITIONS)
                asyncio.run(_fill(lab, messages, reports))
                measured.append(Measured("getmany", reports, asyncio.run(_bare(lab, messages))))
                few = min(messages, PLAIN_MESSAGES)
                rate = _plain_agent(running, lab.collection.topics.source, few, folder)
                measured.append(Measured("Faust table[key] += 1", reports, rate))
                rate = _worker(lab, messages * reports) / reports
                measured.append(Measured("ldpstream worker", reports, rate))
    _show(given.broker, measured)


async def _fill(lab: Lab, messages: int, reports: int) -> None:
    """Write the topic; frames are drawn from 64 different ones."""
    spec = lab.collection.spec
    times_ms = np.full(reports, START_MS)
    frames = [spec.frame_reports(lab.reports(reports), times_ms=times_ms) for _ in range(64)]
    await lab.create(lab.collection.topics.source, partitions=PARTITIONS)
    async with lab.producer(linger_ms=5) as producer:
        for number in range(messages):
            await producer.send(
                lab.collection.topics.source, frames[number % 64], partition=number % PARTITIONS
            )
        await producer.flush()


async def _bare(lab: Lab, messages: int) -> float:
    async with lab.reader() as reader:
        partitions = [TopicPartition(lab.collection.topics.source, p) for p in range(PARTITIONS)]
        reader.assign(partitions)
        await reader.seek_to_beginning(*partitions)
        seen, begun = 0, time.perf_counter()
        while seen < messages:
            found = await reader.getmany(timeout_ms=1000, max_records=5_000)
            seen += sum(map(len, found.values()))
        return messages / (time.perf_counter() - begun)


def _plain_agent(running: Broker, topic: str, messages: int, folder: str) -> float:
    """Run a Faust app of one agent and one table in a process of its own."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(
        target=_count_with_faust, args=(running.bootstrap, topic, messages, folder, sender)
    )
    process.start()
    try:
        if not receiver.poll(300):
            raise TimeoutError("the plain Faust agent did not finish")
        return float(receiver.recv())
    finally:
        process.kill()
        process.join()


def _count_with_faust(
    bootstrap: str, topic: str, messages: int, folder: str, sender: Connection
) -> None:
    asyncio.run(_agent(bootstrap, topic, messages, folder, sender.send))


async def _agent(
    bootstrap: str, topic: str, messages: int, folder: str, done: Callable[[float], None]
) -> None:
    app = faust.App(
        f"plain-{topic}",
        broker=f"kafka://{bootstrap}",
        store="memory://",
        datadir=folder,
        web_enabled=False,
        topic_partitions=PARTITIONS,
        consumer_auto_offset_reset="earliest",
        broker_session_timeout=6,
        broker_heartbeat_interval=1,
        topic_disable_leader=True,
    )
    table = app.Table("counts", default=int, partitions=PARTITIONS)
    source = app.topic(
        topic, key_type=bytes, value_type=bytes, key_serializer="raw", value_serializer="raw"
    )

    async def count(stream: StreamT[bytes]) -> None:
        seen, begun = 0, 0.0
        async for value in stream:
            begun = begun or time.perf_counter()
            table[str(value[-1])] += 1
            seen += 1
            if seen == messages:
                done(messages / (time.perf_counter() - begun))

    app.agent(source, name="plain")(count)
    await app.start()
    await asyncio.Event().wait()


def _worker(lab: Lab, reports: int) -> float:
    """Return the reports that a worker makes durable in a second."""
    with lab.worker() as worker:
        first: tuple[float, int] | None = None
        while True:
            windows = worker.get("/api/collections/trips/windows?all=true")["windows"]
            now, n = time.perf_counter(), sum(window["n"] for window in windows)
            if n and first is None:
                first = now, n
            if n == reports:
                break
            time.sleep(POLL_SECONDS)
    if first is None or first[1] == reports:
        raise RuntimeError("counted within one look: measure over more messages")
    return (reports - first[1]) / (now - first[0])


def _show(kind: str, measured: list[Measured]) -> None:
    table = Table(
        title_justify="left",
        title=f"From topic to statistic, {PARTITIONS} partitions, {kind} broker",
    )
    for column in ("reports a message", "reader", "messages/s", "reports/s", "of getmany"):
        table.add_column(column, justify="left" if column == "reader" else "right")
    bare = {m.reports_a_message: m for m in measured if m.reader == "getmany"}
    for m in measured:
        table.add_row(
            f"{m.reports_a_message:,}",
            m.reader,
            f"{m.messages_a_second:,.0f}",
            f"{m.reports_a_second:,.0f}",
            f"{m.messages_a_second / bare[m.reports_a_message].messages_a_second:.3f}",
        )
    Console().print(table)


if __name__ == "__main__":
    main()

"""A device, or the gateway of many: one process that sends the messages of one collection in time.

    python -m tests.crash.faults.device '{"file": ..., "name": ..., ...}'

It sends what its journal does not have yet and exits with 0 once all before `until` has been
acknowledged, with 3 as soon as the broker refuses or loses anything: whoever started it starts it
again, and it goes on. What it had sent without an acknowledgement it sends once more.
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError
from aiokafka.structs import RecordMetadata

from ldpstream.agents.broker import clients
from ldpstream.agents.config import Config, load_config
from tests.crash.faults.journal import ENTRY, Journal, crc
from tests.crash.faults.stream import Maker, Message, Pace

Sent = asyncio.Future[RecordMetadata]
IN_FLIGHT = 500
TROUBLE = 3


@dataclass(frozen=True, kw_only=True)
class Order:
    """What a device is started with; `until` is the number after the last message."""

    file: str
    name: str
    journal: str
    reports: int
    seed: int
    until: int
    first: int
    begun_ms: int
    rate: float
    transactions: bool

    def command(self) -> list[str]:
        """Return the command that runs it."""
        return [sys.executable, "-m", "tests.crash.faults.device", json.dumps(asdict(self))]


class Device:
    """Sends, and writes down what has been acknowledged."""

    def __init__(self, order: Order, config: Config) -> None:
        collection = config.collections[order.name]
        pace = Pace(order.first, order.begun_ms, order.rate)
        self._maker = Maker.of(collection, order.reports, order.seed, pace)
        self._pace = pace
        self._topic = collection.topics.source
        journal = Journal(Path(order.journal))
        journal.mend()
        done = np.zeros(order.until, dtype=bool)
        numbers = journal.read()["number"]
        done[numbers[numbers < order.until]] = True
        self._missing: list[int] = np.flatnonzero(~done).tolist()
        self._file = os.open(order.journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._transactions = order.transactions and self._maker.plan.transaction > 0
        self._producer = self._connect(config)

    def _connect(self, config: Config) -> AIOKafkaProducer:
        bootstrap, options = config.kafka.bootstrap, {**config.kafka.options, "linger_ms": 20}
        if self._transactions:
            return AIOKafkaProducer(
                bootstrap_servers=bootstrap.split(","),
                transactional_id=f"device-{self._topic}",
                transaction_timeout_ms=10_000,
            )
        if not self._maker.plan.idempotent:
            options["enable_idempotence"] = False
        return clients.producer(bootstrap, options)

    async def run(self) -> None:
        """Send everything that is missing.

        Raises:
            KafkaError: for the first message that is refused or lost.
        """
        await self._producer.start()
        try:
            if self._transactions:
                await self._in_transactions()
            else:
                await self._one_by_one()
        finally:
            async with asyncio.timeout(5):
                await self._producer.stop()

    async def _one_by_one(self) -> None:
        room = asyncio.Semaphore(IN_FLIGHT)
        async with asyncio.TaskGroup() as group:
            for number in self._missing:
                await self._wait(number)
                await room.acquire()
                message = self._maker.message(number)
                sent = await self._send(message)
                group.create_task(self._acknowledged(number, message, sent, room))

    async def _acknowledged(
        self, number: int, message: Message, sent: Sent, room: asyncio.Semaphore
    ) -> None:
        self._note([_entry(number, message, (await sent).offset)])
        room.release()

    async def _in_transactions(self) -> None:
        for numbers in self._transactions_of_missing():
            await self._wait(numbers[0])
            rng = np.random.default_rng([self._maker.seed, 3, numbers[0]])
            if rng.random() < 0.2:
                await self._transaction(numbers, commit=False)
            await self._transaction(numbers, commit=True)

    def _transactions_of_missing(self) -> Iterator[list[int]]:
        size = self._maker.plan.transaction
        for at in range(0, len(self._missing), size):
            yield self._missing[at : at + size]

    async def _transaction(self, numbers: list[int], *, commit: bool) -> None:
        await self._producer.begin_transaction()
        messages = [self._maker.message(number) for number in numbers]
        sent = [await self._send(message) for message in messages]
        offsets = [(await one).offset for one in sent]
        await (
            self._producer.commit_transaction() if commit else self._producer.abort_transaction()
        )
        self._note(
            [
                _entry(number if commit else -1, message, offset)
                for number, message, offset in zip(numbers, messages, offsets, strict=True)
            ]
        )

    async def _send(self, message: Message) -> Sent:
        sent: Sent = await self._producer.send(
            self._topic,
            message.value,
            partition=message.partition,
            # A message has a key or a value.
            key=b"" if message.value is None else None,
        )
        return sent

    async def _wait(self, number: int) -> None:
        ahead_ms = self._pace.due_ms(number) - time.time_ns() // 1_000_000
        # A device that is behind yields too, so that its acknowledgements come in.
        await asyncio.sleep(max(0, ahead_ms / 1000))

    def _note(self, entries: list[tuple[int, int, int, int, int]]) -> None:
        os.write(self._file, np.array(entries, dtype=ENTRY).tobytes())


def _entry(number: int, message: Message, offset: int) -> tuple[int, int, int, int, int]:
    return number, message.partition, int(number < 0), offset, crc(message.value)


async def _run(order: Order, config: Config) -> int:
    try:
        await Device(order, config).run()
    except* (KafkaError, TimeoutError) as group:
        trouble: BaseException = group
        while isinstance(trouble, BaseExceptionGroup):
            trouble = trouble.exceptions[0]
        print(order.name, repr(trouble), file=sys.stderr, flush=True)
    else:
        return 0
    return TROUBLE


def main() -> None:
    order = Order(**json.loads(sys.argv[1]))
    code = asyncio.run(_run(order, load_config(order.file, environment={})))
    sys.stdout.flush()
    os._exit(code)


if __name__ == "__main__":
    main()

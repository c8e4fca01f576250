"""Devices that keep sending while something else happens."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from aiokafka import AIOKafkaProducer

from tests.lab import START_MS, Lab
from tests.ledger import WINDOW_MS

_STEP_SECONDS = 0.02
_FRAMES_A_WINDOW = 150
GARBAGE = b"no frame"


class Flow:
    """Devices that send in turn, to all partitions, at rising event times.

    A device is the lab by whose configuration it reports; put another one in its place to move it.
    With `garbage`, every tenth message of a device is followed by one that is not a frame.
    """

    def __init__(
        self, producer: AIOKafkaProducer, devices: Sequence[Lab], *, garbage: bool = False
    ) -> None:
        self.devices = list(devices)
        self.garbage = 0
        self.partitions = devices[0].collection.partitions
        self._producer = producer
        self._with_garbage = garbage
        self._sent = 0

    @property
    def end_ms(self) -> int:
        """After the event times of all that was sent."""
        return START_MS + (self._sent // _FRAMES_A_WINDOW + 1) * WINDOW_MS

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Send for the length of a block; everything has been acknowledged at its end."""
        stop = asyncio.Event()
        task = asyncio.create_task(self._run(stop))
        try:
            yield
        finally:
            stop.set()
            await task
            await self._producer.flush()

    async def _run(self, stop: asyncio.Event) -> None:
        for number in itertools.count():
            if stop.is_set():
                return
            lab = self.devices[number % len(self.devices)]
            first_ms = START_MS + self._sent // _FRAMES_A_WINDOW * WINDOW_MS
            partition = number // len(self.devices) % self.partitions
            topic = lab.collection.topics.source
            value = lab.frame(10, first_ms=first_ms, last_ms=first_ms + WINDOW_MS - 1)
            await self._producer.send(topic, value, partition=partition)
            self._sent += 1
            if self._with_garbage and number % 10 == 0:
                await self._producer.send(topic, GARBAGE, partition=partition)
                self.garbage += 1
            await asyncio.sleep(_STEP_SECONDS)

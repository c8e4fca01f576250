"""The simulated devices, and what they sent: where they are, privatized; a few misbehave."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
from aiokafka import AIOKafkaProducer
from aiokafka.structs import RecordMetadata
from numpy.typing import NDArray

from ldpstream.agents.demo.city import City, Population
from ldpstream.agents.demo.setting import COLLECTION, EPSILON, PARTITIONS, demo_tables
from ldpstream.agents.kafka.record_time import record_time_ms
from ldpstream.mechanisms.base.times import cut
from ldpstream.mechanisms.wire.spec import CollectionSpec

_PEOPLE: Final = 50_000
_GATEWAY_REPORTS: Final = 500
_SINGLE_SHARE: Final = 0.02
"""Share of the reports that devices send without a gateway, one per message."""
TICK_SECONDS: Final = 0.1
_CITY_HOURS_A_SECOND: Final = 0.2
_MOVING_A_SECOND: Final = 0.15
_TROUBLE_AFTER_SECONDS: Final = 3.0
_TROUBLE_EVERY_SECONDS: Final = 0.5
_OFFLINE_MS: Final = 120_000
_CLOCK_AHEAD_MS: Final = 3_600_000


@dataclass
class SentReports:
    """Reports acknowledged by the broker, by what the worker should do with them.

    `truth` has, by a window's start in epoch ms, the visits of each place in reports that arrive in
    time: int64 `(places,)`. `ends` are the next offsets of the source's partitions.
    """

    places: int
    window_ms: int
    counted: int = 0
    late: int = 0
    rejected: int = 0
    truth: dict[int, NDArray[np.int64]] = field(default_factory=dict)
    ends: dict[int, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """All reports; a message that is not a frame counts as one."""
        return self.counted + self.late + self.rejected

    def visit(self, visits: NDArray[np.int64], time_ms: int) -> None:
        """Add reports in time: place numbers, int64 `(n,)`, all with one event time."""
        start_ms = time_ms - time_ms % self.window_ms
        counts = np.bincount(visits, minlength=self.places)
        self.truth[start_ms] = self.truth.get(start_ms, np.zeros(self.places, np.int64)) + counts
        self.counted += len(visits)

    def add_late(self, reports: int) -> None:
        """Add reports whose windows have closed."""
        self.late += reports

    def add_rejected(self) -> None:
        """Add a message that cannot be counted."""
        self.rejected += 1

    def landed(self, partition: int, offset: int) -> None:
        """Note that the broker has stored a message at this offset."""
        self.ends[partition] = max(self.ends.get(partition, 0), offset + 1)

    def shares(self, start_ms: int) -> NDArray[np.float64] | None:
        """Return the true shares of a window, float64 `(places,)`; None where it has no visits."""
        counts = self.truth.get(start_ms)
        return None if counts is None else counts / counts.sum()

    def n(self, start_ms: int) -> int:
        """Return how many reports of a window should be counted."""
        counts = self.truth.get(start_ms)
        return 0 if counts is None else int(counts.sum())

    def newest(self, count: int) -> list[int]:
        """Return the starts of the newest windows, oldest first."""
        return sorted(self.truth)[-count:]


class Devices:
    """All devices of the city; `sent` holds what they sent, once the broker has it."""

    def __init__(
        self,
        city: City,
        spec: CollectionSpec,
        producer: AIOKafkaProducer,
        sent: SentReports,
        *,
        seed: int,
        rate: int,
    ) -> None:
        self._city = city
        self._spec = spec
        self._outdated = _outdated_spec(city)
        self._producer = producer
        self._sent = sent
        self._people = Population(city, people=_PEOPLE, seed=seed)
        self._rng = np.random.default_rng([seed, 2])
        self._rate = rate
        self._turn = 0
        self._troubles = 0
        self._pending: set[asyncio.Task[None]] = set()

    @property
    def hour(self) -> float:
        """The hour of the day in the city."""
        return self._people.hour

    async def run(self, stop: asyncio.Event) -> None:
        """Report `rate` visits per second until stopped, then wait until the broker has them all.

        Raises:
            KafkaError: where the broker has refused a message.
        """
        begun = last = time.monotonic()
        trouble = begun + _TROUBLE_AFTER_SECONDS
        while not stop.is_set():
            await asyncio.sleep(TICK_SECONDS)
            now = time.monotonic()
            # After a pause of the whole machine, do not catch up with a burst.
            elapsed = min(now - last, 5 * TICK_SECONDS)
            last = now
            self._people.advance(
                hours=_CITY_HOURS_A_SECOND * elapsed, moving=_MOVING_A_SECOND * elapsed
            )
            await self._report(round(self._rate * elapsed))
            if now >= trouble:
                trouble += _TROUBLE_EVERY_SECONDS
                await self._misbehave()
            self._raise_failures()
        while self._pending:
            await asyncio.wait(set(self._pending))
            self._raise_failures()

    async def _report(self, n: int) -> None:
        """Let n people report where they are: most through gateways, some by themselves."""
        alone = self._rng.binomial(n, _SINGLE_SHARE)
        sizes = [1] * alone
        sizes += [_GATEWAY_REPORTS] * ((n - alone) // _GATEWAY_REPORTS)
        sizes += [(n - alone) % _GATEWAY_REPORTS]
        for size in sizes:
            if size:
                await self._visit(self._people.report(size))

    async def _visit(self, places: NDArray[np.int64]) -> None:
        now_ms = _now_ms()
        frame = self._frame(self._spec, places, now_ms)
        time_ms = cut(now_ms, self._spec.precision_ms)
        await self._send(frame, lambda: self._sent.visit(places, time_ms))

    async def _misbehave(self) -> None:
        """Send the next kind of message that a worker must not count."""
        kinds = (self._offline, self._undecodable, self._outdated_device, self._clock_ahead)
        await kinds[self._troubles % len(kinds)]()
        self._troubles += 1

    async def _offline(self) -> None:
        """Send reports that a phone kept while offline: their windows have closed."""
        places = self._people.report(5)
        frame = self._frame(self._spec, places, _now_ms() - _OFFLINE_MS)
        await self._send(frame, lambda: self._sent.add_late(len(places)))

    async def _undecodable(self) -> None:
        """Send a message that is not a frame."""
        await self._send(b"not a frame", self._sent.add_rejected)

    async def _outdated_device(self) -> None:
        """Send a report under an older configuration."""
        frame = self._frame(self._outdated, self._people.report(1), _now_ms())
        await self._send(frame, self._sent.add_rejected)

    async def _clock_ahead(self) -> None:
        """Send a report of a device whose clock is an hour ahead."""
        frame = self._frame(self._spec, self._people.report(1), _now_ms() + _CLOCK_AHEAD_MS)
        await self._send(frame, self._sent.add_rejected)

    def _frame(self, spec: CollectionSpec, places: NDArray[np.int64], time_ms: int) -> bytes:
        labels = [self._city.places[place] for place in places]
        return spec.frame(labels, times_ms=np.full(len(labels), time_ms))

    async def _send(self, message: bytes, landed: Callable[[], None]) -> None:
        partition, self._turn = self._turn, (self._turn + 1) % PARTITIONS
        timestamp_ms = record_time_ms(_now_ms(), precision_ms=self._spec.precision_ms)
        sent = await self._producer.send(
            self._spec.topic, message, partition=partition, timestamp_ms=timestamp_ms
        )
        task = asyncio.create_task(self._wait(sent, partition, landed))
        self._pending.add(task)

    async def _wait(
        self, sent: "asyncio.Future[RecordMetadata]", partition: int, landed: Callable[[], None]
    ) -> None:
        stored = await sent
        self._sent.landed(partition, stored.offset)
        landed()

    def _raise_failures(self) -> None:
        done = {task for task in self._pending if task.done()}
        self._pending -= done
        for task in done:
            task.result()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _outdated_spec(city: City) -> CollectionSpec:
    """Return the spec of a device that was never updated: its epsilon differs."""
    table = demo_tables(city, bootstrap="", port=0)["collection"][COLLECTION]
    return CollectionSpec.from_mapping(COLLECTION, {**table, "epsilon": EPSILON / 2}, base=Path())

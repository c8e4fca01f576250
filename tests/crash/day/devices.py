"""Devices that send all day, a few of them what no worker counts, and what they have sent."""

import asyncio
import random
import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from aiokafka import AIOKafkaProducer
from numpy.typing import NDArray

from ldpstream.agents.config import CollectionConfig
from ldpstream.mechanisms.wire.spec import CollectionSpec

REFUSED_SHARE = 0.01
_EVERY_SECONDS = 0.25
_REST_SECONDS = 9.0
"""Longer than `idle`: a partition that is idle must not close what is still unread."""
_REPORTS = 5


@dataclass
class Sent:
    """What was sent to one collection: reports by spec, and messages that no state counts."""

    reports: dict[bytes, list[tuple[NDArray[np.int64], NDArray[np.int64]]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    """By fingerprint: arrays of times (ms) and of reports."""
    refused: int = 0

    def n(self, fingerprint: bytes) -> int:
        return sum(len(times) for times, _ in self.reports[fingerprint])

    def by_window(self, fingerprint: bytes, size_ms: int) -> Counter[int]:
        """Return the number of reports by the start of their window (ms)."""
        found: Counter[int] = Counter()
        for times, _ in self.reports[fingerprint]:
            found.update((times // size_ms * size_ms).tolist())
        return found


class Devices:
    """Send to every partition four times a second; each message is acknowledged.

    One message in a hundred is no frame, and one a frame of another spec. Partitions in `old` get
    nothing else, from devices that nobody has updated. Those of `trips` fall silent in turn.
    """

    def __init__(self, collections: Mapping[str, CollectionConfig], *, seed: int) -> None:
        self.current = dict(collections)
        """What devices send, by name; may change under way."""
        self.partitions = {name: one.partitions for name, one in collections.items()}
        self.old: frozenset[tuple[str, int]] = frozenset()
        self.sent = {name: Sent() for name in collections}
        self.reported: defaultdict[tuple[str, str, int], list[float]] = defaultdict(list)
        """When reports were sent, by collection, fingerprint and partition (clock `time.time`)."""
        self._foreign = {name: _foreign(one.spec) for name, one in collections.items()}
        self._rng, self._numbers = random.Random(seed), np.random.default_rng(seed)
        self._over = asyncio.Event()
        self._began = time.monotonic()
        self._task: asyncio.Task[None] | None = None

    def start(self, producer: AIOKafkaProducer) -> None:
        """Send with a producer from now on."""
        self._over = asyncio.Event()
        self._task = asyncio.create_task(self._run(producer))

    async def stop(self) -> None:
        """Stop; all that was sent has been acknowledged."""
        self._over.set()
        if self._task is not None:
            await self._task

    async def _run(self, producer: AIOKafkaProducer) -> None:
        while not self._over.is_set():
            began = time.monotonic()
            await self._round(producer)
            await asyncio.sleep(max(0.0, began + _EVERY_SECONDS - time.monotonic()))

    async def _round(self, producer: AIOKafkaProducer) -> None:
        waiting = []
        for name in list(self.current):
            for partition in range(self.partitions[name]):
                if self._rests(name, partition):
                    continue
                for message in self._messages(name, partition):
                    topic = self.current[name].topics.source
                    waiting.append(await producer.send(topic, message, partition=partition))
        await asyncio.gather(*waiting)

    def _rests(self, name: str, partition: int) -> bool:
        turn = int((time.monotonic() - self._began) / _REST_SECONDS)
        return name == "trips" and turn % (1 + self.partitions[name]) == partition

    def _messages(self, name: str, partition: int) -> list[bytes]:
        sent, chance = self.sent[name], self._rng.random
        bad = [b"old device"] if chance() < REFUSED_SHARE else []
        bad += [self._foreign[name]] if chance() < REFUSED_SHARE else []
        if (name, partition) in self.old:
            bad = bad or [b"old device"]
            sent.refused += len(bad)
            return bad
        sent.refused += len(bad)
        spec = self.current[name].spec
        possible = spec.mechanism.possible_reports()
        reports = possible[self._numbers.integers(0, len(possible), _REPORTS)]
        self.reported[name, spec.fingerprint.hex(), partition].append(time.time())
        now_ms = time.time_ns() // 1_000_000
        times = np.sort(self._numbers.integers(now_ms - 50, now_ms + 1, _REPORTS))
        sent.reports[spec.fingerprint].append((times, reports))
        return [*bad, spec.frame_reports(reports, times_ms=times)]


def _foreign(spec: CollectionSpec) -> bytes:
    """Return a frame of a spec that no worker accepts."""
    mapping = {"mechanism": "binary", "epsilon": [3.0, 3.0], "domain": {"size": 2}}
    other = CollectionSpec.from_mapping(spec.name, mapping, base=Path())
    return other.frame([1], times_ms=np.array([1_700_000_000_000]))

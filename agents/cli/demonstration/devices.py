"""Simulated devices: they report a crowd's values at a steady rate; a few misbehave on purpose."""

import asyncio
import itertools
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldpstream.agents.broker.record_time import now_ms
from ldpstream.agents.cli.demonstration.visits import (
    COLLECTION,
    EPSILON,
    PLACES,
    SentReports,
    demo_tables,
)
from ldpstream.agents.device import Sender
from ldpstream.mechanisms.domains.attributes import Attributes
from ldpstream.mechanisms.exact.entropy import SystemEntropy
from ldpstream.mechanisms.wire.one_report import TOKEN_BYTES
from ldpstream.mechanisms.wire.spec import CollectionSpec

PERIOD_SECONDS: Final = 600.0
"""After this time the crowd is where it started."""
_STRAYS: Final = 0.1
"""Share of values that are uniform over the domain."""
_TICK_SECONDS: Final = 0.1
_MISTAKES_AFTER_SECONDS: Final = 3.0
_MISTAKE_EVERY_SECONDS: Final = 0.5
_OFFLINE_MS: Final = 120_000
_CLOCK_AHEAD_MS: Final = 3_600_000
_OFFLINE_REPORTS: Final = 5


class Crowd:
    """Draws values of a domain of this shape, numbered in row-major order; all from a seed."""

    def __init__(self, shape: tuple[int, ...], *, seed: int) -> None:
        self._shape = shape
        self._rng = np.random.default_rng(seed)

    def draw(self, n: int, *, seconds: float) -> NDArray[np.int64]:
        """Return the values of n people at a time: int64 of shape `(n,)`."""
        columns = []
        strays = self._rng.random(n) < _STRAYS
        for axis, size in enumerate(self._shape):
            phase = 2 * np.pi * seconds / PERIOD_SECONDS + axis
            centre = size * (0.5 + 0.3 * np.sin(phase))
            near = np.floor(self._rng.normal(centre, size / 8, n))
            anywhere = self._rng.integers(size, size=n)
            columns.append(np.where(strays, anywhere, np.clip(near, 0, size - 1)))
        flat = np.ravel_multi_index(tuple(c.astype(np.int64) for c in columns), self._shape)
        return flat.astype(np.int64)


class CrowdOfRecords:
    """The same for records: a crowd per attribute; one attribute is drawn and reported."""

    def __init__(self, domain: Attributes, *, seed: int) -> None:
        self._domain = domain
        domains = domain.given.values()
        self._crowds = [
            Crowd(attribute_domain.shape, seed=seed + j)
            for j, attribute_domain in enumerate(domains)
        ]

    def draw(self, n: int, *, seconds: float) -> NDArray[np.int64]:
        """Return the values of n people at a time, each of one random attribute: int64 `(n,)`."""
        values = [crowd.draw(n, seconds=seconds) for crowd in self._crowds]
        return self._domain.drawn(values, SystemEntropy())


async def report_crowd(
    sender: Sender,
    crowd: Crowd | CrowdOfRecords,
    stop: asyncio.Event,
    *,
    rate: int,
    batch: int,
    acknowledged: Callable[[NDArray[np.int64], int], None],
) -> None:
    """Report `rate` values of a crowd per second until `stop` is set.

    `acknowledged` is called with values and their time (epoch ms) once the broker has all of them.

    Raises:
        KafkaError: where some may not have arrived.
    """
    last, due = time.monotonic(), 0.0
    while not stop.is_set():
        await asyncio.sleep(_TICK_SECONDS)
        now = time.monotonic()
        # After a pause of the broker or the machine, do not catch up with a burst.
        due += rate * min(now - last, 5 * _TICK_SECONDS)
        last = now
        values = crowd.draw(int(due), seconds=time.time())
        due -= len(values)
        time_ms = now_ms()
        await _send(sender, values, batch, time_ms)
        acknowledged(values, time_ms)


async def _send(sender: Sender, values: NDArray[np.int64], batch: int, time_ms: int) -> None:
    """Send values as messages of at most `batch` reports, and wait until the broker has them."""
    spec = sender.spec
    reports = spec.mechanism.privatize(values)
    # Each value comes from a different device, so each gets a new token.
    words = SystemEntropy().words(len(values))
    tokens = None if spec.one_report is None else words.view(np.uint8).reshape(-1, TOKEN_BYTES)
    times_ms = np.full(len(values), time_ms, dtype=np.int64)
    messages = [slice(start, start + batch) for start in range(0, len(values), batch)]
    await asyncio.gather(
        *(
            sender.send_reports(
                reports[message],
                times_ms=times_ms[message],
                tokens=None if tokens is None else tokens[message],
            )
            for message in messages
        )
    )


async def make_mistakes(sender: Sender, sent: SentReports, stop: asyncio.Event) -> None:
    """Send, from the third second on, what the worker must not count, until `stop` is set.

    In turn: reports that a phone kept while it was offline, whose windows have closed; a message
    that is not a frame; a report of a device that has an older configuration; one of a device whose
    clock is an hour ahead.

    Raises:
        KafkaError: where one may not have arrived.
    """
    tables = demo_tables(bootstrap="", port=0)["collection"][COLLECTION]
    outdated = CollectionSpec.from_mapping(
        COLLECTION, {**tables, "epsilon": EPSILON / 2}, base=Path()
    )
    await _pause(stop, _MISTAKES_AFTER_SECONDS)
    for number in itertools.count():
        if stop.is_set():
            return
        match number % 4:
            case 0:
                await sender.produce(_frame(sender.spec, _OFFLINE_REPORTS, -_OFFLINE_MS))
                sent.late += _OFFLINE_REPORTS
            case 1:
                await sender.produce(b"not a frame")
                sent.rejected += 1
            case 2:
                await sender.produce(_frame(outdated, 1, 0))
                sent.rejected += 1
            case _:
                await sender.produce(_frame(sender.spec, 1, _CLOCK_AHEAD_MS))
                sent.rejected += 1
        await _pause(stop, _MISTAKE_EVERY_SECONDS)


async def _pause(stop: asyncio.Event, seconds: float) -> None:
    """Wait this long, or until `stop` is set."""
    with suppress(TimeoutError):
        await asyncio.wait_for(stop.wait(), seconds)


def _frame(spec: CollectionSpec, reports: int, offset_ms: int) -> bytes:
    return spec.frame([PLACES[0]] * reports, times_ms=[now_ms() + offset_ms] * reports)

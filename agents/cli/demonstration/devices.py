"""Simulated devices: they report a crowd's values at a steady rate.

They report visits by place, and a report discloses the district. What was sent is the truth that
estimates are compared with.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldpstream.agents.broker.record_time import now_ms
from ldpstream.agents.cli.terminal.labels import label_text
from ldpstream.agents.config import Config, read_config
from ldpstream.agents.device import Sender
from ldpstream.agents.document.entries import ValueEstimate
from ldpstream.agents.document.model import EstimateDocument
from ldpstream.mechanisms.base.times import parse_time
from ldpstream.mechanisms.domains.attributes import Attributes
from ldpstream.mechanisms.exact.entropy import SystemEntropy
from ldpstream.mechanisms.wire.one_report import TOKEN_BYTES

COLLECTION: Final = "visits"
EPSILON: Final = 1.0
PARTITIONS: Final = 4
WINDOW_MS: Final = 5_000
_DISTRICTS: Final = (
    "old-town", "harbour", "university", "hill", "station", "riverside", "gardens", "mills",
    "northgate", "market", "orchard", "docks",
)  # fmt: skip
_PLACES: Final = (
    "square", "bakery", "school", "park", "library", "clinic", "gym", "cinema", "cafe", "bank",
    "hotel", "museum", "pool", "theatre", "court", "depot", "studio", "workshop", "bridge", "tower",
)  # fmt: skip
# Blocks of 5 to 20 places, since the size of a block decides how well its places are hidden.
BLOCKS: Final = tuple(
    tuple(f"{district}/{place}" for place in _PLACES[: 5 + 5 * number % 16])
    for number, district in enumerate(_DISTRICTS)
)
PLACES: Final = tuple(place for block in BLOCKS for place in block)

PERIOD_SECONDS: Final = 600.0
"""After this time the crowd is where it started."""
_STRAYS: Final = 0.1
"""Share of values that are uniform over the domain."""
_TICK_SECONDS: Final = 0.1


def demo_config(*, bootstrap: str, port: int) -> Config:
    """Return the configuration; `port` 0 takes any free one.

    Environment variables do not override its broker.
    """
    tables = {
        "kafka": {"bootstrap": bootstrap, "enable_idempotence": False},
        "worker": {"id": "ldpstream-demo", "http": f"127.0.0.1:{port}"},
        "collection": {
            COLLECTION: {
                "mechanism": "block-hadamard",
                "epsilon": EPSILON,
                "domain": {"values": list(PLACES), "blocks": [list(block) for block in BLOCKS]},
                "partitions": PARTITIONS,
                "window": {
                    "size": f"{WINDOW_MS}ms",
                    "grace": "1s",
                    "future": "1s",
                    "retention": "1d",
                },
                "publish": {"every": "1s", "top": 10},
            }
        },
    }
    return read_config(tables, base=Path(), environment={})


@dataclass
class SentReports:
    """Reports acknowledged by the broker.

    `truth` has, by a window's start in epoch ms, the visits of each place: int64 `(places,)`.
    """

    places: Sequence[str]
    window_ms: int
    total: int = 0
    truth: dict[int, NDArray[np.int64]] = field(default_factory=dict)

    def visit(self, visits: NDArray[np.int64], time_ms: int) -> None:
        """Add reports: place numbers, int64 `(n,)`, all with one event time."""
        if visits.size:
            start_ms = time_ms - time_ms % self.window_ms
            counts = np.bincount(visits, minlength=len(self.places))
            self.truth[start_ms] = self.truth.get(start_ms, 0) + counts
            self.total += len(visits)

    def newest(self, count: int) -> list[int]:
        """Return the starts of the newest windows, oldest first."""
        return sorted(self.truth)[-count:]


@dataclass(frozen=True)
class TruthComparison:
    """One listed value: its estimate, and its true share so far, None if unknown."""

    entry: ValueEstimate
    truth: float | None

    @property
    def name(self) -> str:
        """The value's label as text."""
        return label_text(self.entry.value)

    @property
    def inside(self) -> bool | None:
        """Whether the truth is inside the bounds; None if any of them is unknown."""
        low, high = self.entry.low, self.entry.high
        if self.truth is None or low is None or high is None:
            return None
        return low <= self.truth <= high


def compare(document: EstimateDocument, sent: SentReports) -> list[TruthComparison]:
    """Return the document's values, largest first, each with its true share in the same window."""
    if document.window is None:
        return []
    entries = sorted(document.distribution, key=lambda entry: -(entry.share or 0.0))
    counts = sent.truth.get(parse_time(document.window.start))
    if counts is None:
        return [TruthComparison(entry, None) for entry in entries]
    shares = dict(zip(sent.places, (counts / counts.sum()).tolist(), strict=True))
    return [TruthComparison(entry, shares[label_text(entry.value)]) for entry in entries]


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

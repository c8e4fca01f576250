"""Simulated devices: they report a crowd's values at a steady rate.

They report where rides begin, when, and what they are for. What was sent is the truth that
estimates are compared with.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

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
from ldpstream.mechanisms.domains.base import Domain
from ldpstream.mechanisms.exact.entropy import SystemEntropy
from ldpstream.mechanisms.wire.one_report import TOKEN_BYTES

WINDOW_MS: Final = 60_000
_WINDOW: Final = {"size": f"{WINDOW_MS}ms", "grace": "1s", "future": "1s", "retention": "1d"}
COLLECTIONS: Final[Mapping[str, Mapping[str, Any]]] = {
    # A map: a report discloses its district of 6 x 6 places, and protects the place in it.
    "places": {
        "title": "Where rides begin",
        "mechanism": "block-hadamard",
        "epsilon": 1.0,
        "domain": {"grid": [18, 24], "blocks": [6, 6]},
        "publish": {"every": "1s", "top": 10, "ranges": {"centre": [[6, 11], [6, 17]]}},
    },
    "starts": {
        "title": "When rides begin",
        "unit": "h",
        "mechanism": "tree",
        "workload": "levels",
        "epsilon": 1.0,
        "domain": {"interval": [0.0, 24.0], "bins": 96},
        "publish": {"every": "1s", "top": 10, "quantiles": [0.1, 0.5, 0.9]},
    },
    # Four causes are sensitive; whoever has another one mostly says so.
    "causes": {
        "title": "What rides are for",
        "mechanism": "groups",
        "epsilon": 1.0,
        "sensitive": ["hospital", "therapy", "court", "shelter"],
        "domain": {
            "values": [
                *("hospital", "therapy"),
                *("work", "school", "shopping", "friends", "sport", "culture", "errand", "airport"),
                *("court", "shelter"),
            ]
        },
        "publish": {"every": "1s", "top": 12},
    },
}
"""Tables of the configuration by name, without what the collections have in common."""

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
            name: {**table, "partitions": 2, "window": _WINDOW}
            for name, table in COLLECTIONS.items()
        },
    }
    return read_config(tables, base=Path(), environment={})


@dataclass
class SentReports:
    """Reports of a collection that the broker has acknowledged.

    `truth` has, by a window's start in epoch ms, how often each value of the domain was reported:
    int64 `(k,)`.
    """

    domain: Domain
    window_ms: int
    total: int = 0
    truth: dict[int, NDArray[np.int64]] = field(default_factory=dict)

    @cached_property
    def labels(self) -> list[str]:
        """The labels of all values as text."""
        return [label_text(label) for label in self.domain.labels(np.arange(self.domain.size))]

    def add(self, values: NDArray[np.int64], time_ms: int) -> None:
        """Add reports: numbers of values, int64 `(n,)`, all with one event time."""
        if values.size:
            start_ms = time_ms - time_ms % self.window_ms
            counts = np.bincount(values, minlength=self.domain.size)
            self.truth[start_ms] = self.truth.get(start_ms, 0) + counts
            self.total += len(values)

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
    shares = dict(zip(sent.labels, (counts / counts.sum()).tolist(), strict=True))
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

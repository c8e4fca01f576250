"""The demonstration's collection: visits in a city by place; the district is disclosed."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from ldpstream.agents.client import Client, EstimateRequest
from ldpstream.agents.config import Config, read_config
from ldpstream.agents.demo.city import City
from ldpstream.agents.document import EstimateDocument
from ldpstream.agents.document.answers import WindowState
from ldpstream.mechanisms.base.times import parse_time

COLLECTION: Final = "visits"
EPSILON: Final = 1.0
PARTITIONS: Final = 4
WINDOW_MS: Final = 5_000
GRACE_MS: Final = 1_000
TOP: Final = 10


def demo_tables(city: City, *, bootstrap: str, port: int) -> dict[str, Any]:
    """Return the configuration as TOML tables; `port` 0 takes any free one."""
    return {
        "kafka": {"bootstrap": bootstrap, "enable_idempotence": False},
        "worker": {"id": "ldpstream-demo", "http": f"127.0.0.1:{port}"},
        "collection": {
            COLLECTION: {
                "mechanism": "block-hadamard",
                "epsilon": EPSILON,
                "domain": {"values": list(city.places), "blocks": city.blocks()},
                "partitions": PARTITIONS,
                "window": {
                    "size": f"{WINDOW_MS}ms",
                    "grace": f"{GRACE_MS}ms",
                    "future": f"{GRACE_MS}ms",
                    "retention": "1d",
                },
                "publish": {"every": "1s", "top": TOP},
            }
        },
    }


def demo_config(city: City, *, bootstrap: str, port: int) -> Config:
    """Return the configuration; environment variables do not override its broker."""
    tables = demo_tables(city, bootstrap=bootstrap, port=port)
    return read_config(tables, base=Path(), environment={})


async def ask_windows(worker: Client, *, last: int) -> dict[int, WindowState]:
    """Return the newest windows that hold counted reports, by their start in epoch ms."""
    windows = await worker.newest(COLLECTION, last)
    return {parse_time(one.window.start): one for one in windows if one.n}


async def ask_estimate(
    worker: Client, window: WindowState, *, top: int | Literal["all"] = TOP
) -> EstimateDocument:
    """Return the document of a window with its `top` places, or all."""
    span = window.window
    return await worker.estimate(
        COLLECTION, EstimateRequest(start=span.start, end=span.end, top=top)
    )


async def ask_newest(worker: Client, *, enough: int) -> EstimateDocument | None:
    """Return the document of the newest window with enough reports, or else of the newest."""
    windows = list((await ask_windows(worker, last=3)).values())
    known = [one for one in windows if one.n >= enough] or windows
    return await ask_estimate(worker, known[-1]) if known else None


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

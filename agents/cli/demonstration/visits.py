"""The demonstration's collection, visits by place, and what its devices sent.

A report discloses the district. What was sent is the truth that estimates are compared with.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ldpstream.agents.cli.terminal.labels import label_text
from ldpstream.agents.config import Config, read_config
from ldpstream.agents.document.entries import ValueEstimate
from ldpstream.agents.document.model import EstimateDocument
from ldpstream.mechanisms.base.times import parse_time

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


def demo_tables(*, bootstrap: str, port: int) -> dict[str, Any]:
    """Return the configuration as TOML tables; `port` 0 takes any free one."""
    return {
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


def demo_config(*, bootstrap: str, port: int) -> Config:
    """Return the configuration; environment variables do not override its broker."""
    return read_config(demo_tables(bootstrap=bootstrap, port=port), base=Path(), environment={})


@dataclass
class SentReports:
    """Reports acknowledged by the broker, by what the worker should do with them.

    `truth` has, by a window's start in epoch ms, the visits of each place in reports that arrive in
    time: int64 `(places,)`. A message that is not a frame counts as one report.
    """

    places: Sequence[str]
    window_ms: int
    counted: int = 0
    late: int = 0
    rejected: int = 0
    truth: dict[int, NDArray[np.int64]] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """All reports."""
        return self.counted + self.late + self.rejected

    def visit(self, visits: NDArray[np.int64], time_ms: int) -> None:
        """Add reports in time: place numbers, int64 `(n,)`, all with one event time."""
        if visits.size:
            start_ms = time_ms - time_ms % self.window_ms
            counts = np.bincount(visits, minlength=len(self.places))
            self.truth[start_ms] = self.truth.get(start_ms, 0) + counts
            self.counted += len(visits)

    def n(self, start_ms: int) -> int:
        """Return how many reports of a window should be counted."""
        return int(self.truth[start_ms].sum()) if start_ms in self.truth else 0

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

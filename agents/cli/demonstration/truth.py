"""What the demonstration's devices sent: the truth that estimates are compared with."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ldpstream.agents.cli.terminal.labels import label_text
from ldpstream.agents.document.entries import ValueEstimate
from ldpstream.agents.document.model import EstimateDocument
from ldpstream.mechanisms.base.times import parse_time


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

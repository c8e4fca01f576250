"""What the simulated devices sent: the truth that only the demonstration knows."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


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

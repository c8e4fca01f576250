"""The counts that a pipeline has to reach, report for report."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ldpstream.agents.config import CollectionConfig

WINDOW_MS = 10_000


@dataclass
class Ledger:
    """What was sent and has to be counted: `windows[start_ms]` is the statistic of a window."""

    config: CollectionConfig
    windows: dict[int, NDArray[np.int64]] = field(default_factory=dict)

    def add(self, reports: NDArray[np.int64], times_ms: NDArray[np.int64]) -> None:
        mechanism = self.config.spec.mechanism
        size_ms = self.config.window.size_ms
        starts = times_ms // size_ms * size_ms
        for start in np.unique(starts).tolist():
            statistic = self.windows.setdefault(start, mechanism.empty())
            mechanism.accumulate(statistic, reports[starts == start])

    @property
    def n(self) -> int:
        return int(sum(statistic.sum() for statistic in self.windows.values()))

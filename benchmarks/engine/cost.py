"""What a reader took, and keeping processes on one core each."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

BROKER_CORE = 0
"""The broker's; what is measured runs on the other one."""
MEASURED_CORE = 1


@dataclass(frozen=True)
class Cost:
    """What one reader took for this many reports."""

    reader: str
    reports_a_message: int
    reports: int
    cpu_seconds: float
    seconds: float
    reread: float = 0.0
    """The share of the messages that the worker read from the source in place of packed ones."""

    @property
    def of_a_core(self) -> float:
        """Reports a second of processor time."""
        return self.reports / self.cpu_seconds

    @property
    def elapsed(self) -> float:
        """Reports a second of elapsed time, whatever else the machine did."""
        return self.reports / self.seconds


def best(costs: Sequence[Cost]) -> Cost:
    """Return the cheapest of several measurements: whatever disturbs makes them dearer."""
    return min(costs, key=lambda cost: cost.cpu_seconds)


@contextmanager
def on_core(core: int) -> Iterator[None]:
    """Let what is started in a `with` block run on this core alone, where there are several."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core} if core in before else before)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)

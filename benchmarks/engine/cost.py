"""The cost of reading a topic, and pinning processes to cores."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

BROKER_CORE = 0
"""The broker's core; measured processes run on the other one."""
MEASURED_CORE = 1


@dataclass(frozen=True)
class Cost:
    """What one reader used for this many reports."""

    reader: str
    reports_a_message: int
    reports: int
    cpu_seconds: float
    seconds: float

    @property
    def of_a_core(self) -> float:
        """Reports a second of processor time."""
        return self.reports / self.cpu_seconds


def best(costs: Sequence[Cost]) -> Cost:
    """Return the cheapest of several measurements: disturbances only add to the cost."""
    return min(costs, key=lambda cost: cost.cpu_seconds)


@contextmanager
def on_core(core: int) -> Iterator[None]:
    """Pin processes started in the `with` block to this core, if there are several cores."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core} if core in before else before)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)

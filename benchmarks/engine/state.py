"""Changelog bytes, memory and recovery: short runs of the commands that measure each at length."""

import argparse
import asyncio
from dataclasses import dataclass

from tests.brokers import Broker

from benchmarks.state import memory, recovery

MIB = memory.MIB
CASES = (
    ("reports", 1.0, 1, 1_000),
    ("reports", 20.0, 1, 1_000),
    ("open windows", 2.0, 100, 1_000),
    ("open windows", 2.0, 1_000, 1_000),
    ("domain", 2.0, 1, 43_750),
)
"""The varied quantity, millions of reports, windows, values."""
BACKLOG = 1_000_000
"""The number of reports sent at a time."""


@dataclass(frozen=True)
class Used:
    """What a worker used in one case."""

    case: memory.Case
    taken: memory.Taken


def measure(running: Broker) -> list[Used]:
    """Run a worker through every case."""
    found = []
    for what, millions, windows, values in CASES:
        case = memory.Case(what, int(millions * 1e6), windows, values)
        found.append(Used(case, asyncio.run(memory.measure(running, case, BACKLOG))))
    return found


def recover(running: Broker, *, panes: int, values: int) -> list[str]:
    """Return a row of `python -m benchmarks.state.recovery`, columns as in its table."""
    given = argparse.Namespace(values=values, partitions=1, flushes=1, closed=False)
    return recovery.measure(running, panes, given)

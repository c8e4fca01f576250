"""The parts of a run, each with a broker of its own, so that each can run in a process of its own.

The broker runs on one core and the measured process on the other; with two workers it has both.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tests.brokers import Broker, broker

from benchmarks.engine import latency, speed, state, workers
from benchmarks.engine.cost import BROKER_CORE, Cost, on_core
from benchmarks.engine.latency import Latency
from benchmarks.engine.state import Used
from benchmarks.engine.workers import Many, Together


@contextmanager
def _beside(kind: str) -> Iterator[Broker]:
    """Run a broker on its core for the length of a `with` block."""
    with on_core(BROKER_CORE):
        running = broker(kind)
        started = running.__enter__()
    try:
        yield started
    finally:
        running.__exit__(None, None, None)


def by_size(kind: str, plan: speed.Plan, size: int) -> list[Cost]:
    """Return the cost of frames of one size for every reader."""
    with _beside(kind) as running:
        return speed.measure(running, plan, size)


def latencies(kind: str, seconds: float, windows: int) -> list[Latency]:
    """Return the latencies of reports and windows until they are published."""
    with _beside(kind) as running:
        return latency.measure(running, seconds=seconds, windows=windows)


def memory(kind: str) -> list[Used]:
    """Return a worker's memory and changelog bytes."""
    with _beside(kind) as running:
        return state.measure(running)


def recovery(kind: str, panes: int, values: int) -> Sequence[str]:
    """Return the cost of reading state back."""
    with _beside(kind) as running:
        return state.recover(running, panes=panes, values=values)


def two_workers(kind: str, reports: int) -> list[Together]:
    """Return the throughput of one worker and of two; the broker has both cores."""
    with broker(kind) as running:
        return workers.share(running, reports=reports)


def many_partitions(kind: str, partitions: int, seconds: float) -> Many:
    """Return the cost of a worker that owns many partitions."""
    with _beside(kind) as running:
        return workers.many(running, partitions=partitions, seconds=seconds)

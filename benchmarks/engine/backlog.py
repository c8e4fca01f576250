"""The processor time of a worker for a backlog that becomes readable when the worker is ready.

The backlog is written in one transaction while the worker waits, and the clock starts with its
commit: neither starting up nor writing counts. The idle load is measured before, and subtracted;
what the worker still does for some seconds after the last report counts.
"""

import asyncio
import time
import urllib.request
from collections.abc import Callable

from tests.lab import Lab
from tests.processes import Worker

from benchmarks.engine.cost import MEASURED_CORE, Cost, on_core
from benchmarks.engine.topic import fill

_QUIET_SECONDS = 3.0
_POLL_SECONDS = 0.1
_PATIENCE_SECONDS = 300.0


def worker(lab: Lab, reader: str, *, messages: int, size: int) -> Cost:
    """Return the cost of this many messages for a worker on one core."""
    with on_core(MEASURED_CORE):
        counting = lab.start_worker()
    try:
        return _measure(lab, counting, reader, messages, size)
    finally:
        counting.kill()


def _measure(lab: Lab, counting: Worker, reader: str, messages: int, size: int) -> Cost:
    counting.wait_ready()
    reports = messages * size
    # The topic exists, and is empty.
    asyncio.run(lab.create(lab.collection.topics.source, partitions=lab.collection.partitions))
    quiet = _cpu(counting)
    time.sleep(_QUIET_SECONDS)
    idle_cores = (_cpu(counting) - quiet) / _QUIET_SECONDS
    start: list[tuple[float, float]] = []
    asyncio.run(
        fill(
            lab,
            messages,
            size,
            transaction=True,
            # Before anything can be read: afterwards some of the work would already be done.
            before_commit=lambda: start.append((_cpu(counting), time.perf_counter())),
        )
    )
    ((cpu, begun),) = start
    until(lambda: counted(counting) >= reports, every_seconds=_POLL_SECONDS)
    seconds = time.perf_counter() - begun
    # Work that is left after the last report has been counted belongs to the cost.
    time.sleep(_QUIET_SECONDS)
    whole = time.perf_counter() - begun
    cpu_seconds = max(0.01, _cpu(counting) - cpu - idle_cores * whole)
    return Cost(reader, size, reports, cpu_seconds, seconds)


def _cpu(worker: Worker) -> float:
    return metric(worker.url, "process_cpu_seconds_total")


def counted(worker: Worker) -> float:
    """Return how many reports a worker has made durable."""
    return metric(worker.url, 'ldpstream_reports_total{collection="trips",result="counted"')


def until(done: Callable[[], bool], *, every_seconds: float) -> None:
    """Wait until a condition holds; raises TimeoutError."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not done():
        if time.monotonic() > deadline:
            raise TimeoutError("not done in time")
        time.sleep(every_seconds)


def metric(url: str, name: str) -> float:
    """Return the sum of a metric over its labels."""
    with urllib.request.urlopen(url + "/metrics", timeout=30) as answer:
        lines = answer.read().decode().splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith(name))

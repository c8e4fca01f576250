"""The processor time of a worker for a backlog that becomes readable when the worker is ready.

The backlog is written in one transaction while the processes wait, and the clock starts with its
commit: neither starting up nor writing counts. The idle load is measured before, and subtracted;
what the processes still do for some seconds after the last report counts.
"""

import asyncio
import time
from collections.abc import Sequence
from contextlib import ExitStack

from tests.lab import Lab
from tests.ports import free_ports
from tests.processes import Worker

from benchmarks.engine.cost import MEASURED_CORE, Cost, on_core
from benchmarks.engine.topic import fill
from benchmarks.speed.pack import counted, metric, until

_QUIET_SECONDS = 3.0
_POLL_SECONDS = 0.1


def worker(lab: Lab, reader: str, *, messages: int, size: int) -> Cost:
    """Return the cost of this many messages for a worker on one core."""
    with ExitStack() as stack:
        with on_core(MEASURED_CORE):
            counting = lab.start_worker()
        stack.callback(counting.kill)
        return _measure(lab, counting, [], reader, messages, size)


def through_pack(lab: Lab, reader: str, *, messages: int) -> Cost:
    """Return the cost of this many single reports for a packer and a worker that share one core.

    Both are idle for a while; then the whole backlog becomes readable at once.
    """
    (port,) = free_ports(1)
    with ExitStack() as stack:
        with on_core(MEASURED_CORE):
            counting = lab.start_worker()
            stack.callback(counting.kill)
            packing = lab.start_packer("--http", f"127.0.0.1:{port}")
            stack.callback(packing.kill)
        packing.wait_ready()
        return _measure(lab, counting, [f"http://127.0.0.1:{port}"], reader, messages, 1)


def _measure(
    lab: Lab, counting: Worker, others: Sequence[str], reader: str, messages: int, size: int
) -> Cost:
    counting.wait_ready()
    urls, reports = [counting.url, *others], messages * size
    # The topic exists, and is empty.
    asyncio.run(lab.create(lab.collection.topics.source, partitions=lab.collection.partitions))
    quiet = _cpu(urls)
    time.sleep(_QUIET_SECONDS)
    idle_cores = (_cpu(urls) - quiet) / _QUIET_SECONDS
    start: list[tuple[float, float]] = []
    asyncio.run(
        fill(
            lab,
            messages,
            size,
            transaction=True,
            # Before anything can be read: afterwards some of the work would already be done.
            before_commit=lambda: start.append((_cpu(urls), time.perf_counter())),
        )
    )
    ((cpu, begun),) = start
    until(lambda: counted(counting) >= reports, every_seconds=_POLL_SECONDS)
    seconds = time.perf_counter() - begun
    # Work that is left after the last report has been counted belongs to the cost.
    time.sleep(_QUIET_SECONDS)
    whole = time.perf_counter() - begun
    cpu_seconds = max(0.01, _cpu(urls) - cpu - idle_cores * whole)
    reread = metric(counting.url, "ldpstream_reread_offsets_total") / messages if others else 0.0
    return Cost(reader, size, reports, cpu_seconds, seconds, reread)


def _cpu(urls: Sequence[str]) -> float:
    return sum(metric(url, "process_cpu_seconds_total") for url in urls)

"""The largest cost of a message for a worker: `python -m benchmarks.speed.messages`.

Prints a table for messages that are made to be costly: how long the state machine blocks the
process for the message and for the flush, the peak of memory in use, and what is flushed.
"""

import gc
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ldpstream.agents.state.context import Context
from ldpstream.agents.state.partition import Partition
from ldpstream.agents.state.replica import Replica
from ldpstream.agents.state.windows import WindowSpec
from ldpstream.mechanisms.wire.spec import CollectionSpec

NOW_MS = 1_800_000_000_000
SECOND_MS = 1_000
DAY_MS = 86_400_000
RUNS = 65_535
DOMAINS = {1_000: {"size": 1_000}, 43_750: {"size": 43_750}, 1_000_000: {"size": 1_000_000}}


def make_context(values: int, *, grace_ms: int, one_report: bool = False) -> Context:
    """Return a collection of this many values with windows of a second."""
    mapping = {
        "mechanism": "randomized-response",
        "epsilon": 1.0,
        "domain": DOMAINS[values],
        "one_report": one_report,
        "partitions": 1,
        "window": {"size": "1s"},
    }
    spec = CollectionSpec.from_mapping("bench", mapping, base=Path())
    window = WindowSpec(size_ms=SECOND_MS, hop_ms=SECOND_MS, grace_ms=grace_ms)
    return Context(spec=spec, window=window, make_final=lambda _: b"")


def all_panes(context: Context) -> list[bytes]:
    """One message of 65,535 runs, each in a pane of its own."""
    times_ms = NOW_MS - SECOND_MS * np.arange(RUNS)
    tokens = None
    if context.spec.one_report is not None:
        tokens = np.random.default_rng(2).integers(0, 256, (RUNS, 8), dtype=np.uint8)
    return [context.spec.frame_reports(_any(context, RUNS), times_ms=times_ms, tokens=tokens)]


def with_tokens(context: Context) -> list[bytes]:
    """Two such messages with `one_report`: all reports of the second are duplicates."""
    return 2 * all_panes(context)


def one_pane(context: Context) -> list[bytes]:
    """One message of a megabyte in one run."""
    n = 1_000_000 // context.spec.mechanism.report_bytes
    return [context.spec.frame_reports(_any(context, n), times_ms=np.full(n, NOW_MS))]


def late(context: Context) -> list[bytes]:
    """One report, and then a message of 65,535 late runs."""
    begin = context.spec.frame_reports(_any(context, 1), times_ms=np.array([NOW_MS]))
    times_ms = NOW_MS - context.window.grace_ms - SECOND_MS * np.arange(2, RUNS + 2)
    return [begin, context.spec.frame_reports(_any(context, RUNS), times_ms=times_ms)]


def single_bytes(context: Context) -> list[bytes]:
    """5,000 messages of one byte."""
    del context
    return [b"x"] * 5_000


def junk(context: Context) -> list[bytes]:
    """100 messages of a megabyte."""
    del context
    return [bytes(1_000_000)] * 100


def _any(context: Context, n: int) -> np.ndarray:
    return np.random.default_rng(1).integers(0, context.spec.mechanism.size, n)


def measure(values: int, grace_ms: int, make: Callable[[Context], list[bytes]]) -> str:
    """Ingest and flush; return a line of the table."""
    context = make_context(values, grace_ms=grace_ms, one_report=make is with_tokens)
    messages = make(context)
    replica = Replica(context, 0)
    replica.read([], position=0, end=0)
    part = Partition.load(context, 0, [replica], epoch=1)
    assert part is not None
    gc.collect()
    started = time.perf_counter()
    part.ingest(list(enumerate(messages)), now_ms=NOW_MS)
    ingest_seconds = time.perf_counter() - started
    started = time.perf_counter()
    flush = part.flush()
    flush_seconds = time.perf_counter() - started
    assert flush is not None
    flushed = sum(len(key) + len(value) for key, value in flush.cells)
    copied = sum(len(copy.value) for copy in flush.copies)
    part = Partition.load(context, 0, [replica], epoch=1)
    assert part is not None
    del flush
    gc.collect()
    tracemalloc.start()
    part.ingest(list(enumerate(messages)), now_ms=NOW_MS)
    part.flush()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return (
        f"{make.__name__:<13} {len(messages):>8,} {sum(map(len, messages)) / 1e6:>6.1f} "
        f"{values:>10,} {grace_ms // SECOND_MS:>7,} {ingest_seconds * 1e3:>9,.0f} "
        f"{flush_seconds * 1e3:>8,.0f} {peak / 1e6:>8,.0f} {flushed / 1e6:>8.1f} "
        f"{copied / 1e6:>8.1f}"
    )


def main() -> None:
    print(
        f"{'messages':<13} {'number':>8} {'MB':>6} {'values':>10} {'grace s':>7} {'ingest ms':>9} "
        f"{'flush ms':>8} {'peak MB':>8} {'cells MB':>8} {'copies MB':>8}"
    )
    for values in DOMAINS:
        for grace_ms in (0, DAY_MS):
            print(measure(values, grace_ms, all_panes), flush=True)
        for make in (one_pane, late):
            print(measure(values, 0, make), flush=True)
    print(measure(1_000, DAY_MS, with_tokens), flush=True)
    for make in (single_bytes, junk):
        print(measure(1_000, 0, make), flush=True)


if __name__ == "__main__":
    main()

"""The cost of `one_report`, without a broker.

    python -m benchmarks.speed.one_report [--millions 1,10]

Prints a table: reports a second of CPU time from frames of 1,000 to counts, flushes included, with
and without the rule, while one window receives this many millions of reports, all from different
devices; then, with the rule, a token's bytes in the changelog, as sent and as compacted, and in the
owner's memory, and the seconds that the next owner takes to load the tokens.
"""

import argparse
import time
import tracemalloc
from pathlib import Path

import numpy as np
from tests.seeded import SeededEntropy
from tests.stream.harness import loaded

from ldpstream.agents.state.context import Context
from ldpstream.agents.state.encoding import decode_key, state_prefix
from ldpstream.agents.state.flushes import Settled
from ldpstream.agents.state.partition import Partition
from ldpstream.agents.state.replica import Replica
from ldpstream.agents.state.windows import WindowSpec
from ldpstream.mechanisms.wire.spec import CollectionSpec

NOW_MS = 1_800_000_000_000
HOUR_MS = 3_600_000
A_FRAME = 1_000
A_FLUSH = 100
"""Frames between two flushes."""


def make_context(*, one_report: bool) -> Context:
    """Return an hourly collection of 1,000 values on one partition."""
    mapping = {
        "mechanism": "block-hadamard",
        "epsilon": 1.0,
        "domain": {"size": 1_000, "blocks": 100},
        "one_report": one_report,
        "partitions": 1,
    }
    spec = CollectionSpec.from_mapping("bench", mapping, base=Path())
    window = WindowSpec(size_ms=HOUR_MS, hop_ms=HOUR_MS, grace_ms=3 * HOUR_MS)
    return Context(spec=spec, window=window, make_final=lambda _: b"")


def make_messages(context: Context, rng: np.random.Generator) -> list[bytes]:
    """Return the frames of one flush, every report from another device."""
    spec, n = context.spec, A_FRAME * A_FLUSH
    values = rng.integers(0, spec.mechanism.size, n)
    reports = spec.mechanism.privatize(values, entropy=SeededEntropy(1))
    times_ms = np.full(A_FRAME, NOW_MS - NOW_MS % HOUR_MS)
    rule = spec.one_report
    tokens = None if rule is None else rng.integers(0, 256, (n, 8), dtype=np.uint8)
    return [
        spec.frame_reports(
            reports[at : at + A_FRAME],
            times_ms=times_ms,
            tokens=None if tokens is None else tokens[at : at + A_FRAME],
        )
        for at in range(0, n, A_FRAME)
    ]


def fill(context: Context, millions: float) -> tuple[float, int, Replica, Partition]:
    """Fill a window; return CPU seconds, the token bytes sent, the replica and the partition."""
    replica, part = loaded(context)
    prefix, rng = state_prefix(context), np.random.default_rng(1)
    seconds, sent, offset, end = 0.0, 0, 0, 0
    for _ in range(round(millions * 1_000_000 / A_FRAME / A_FLUSH)):
        batch = list(enumerate(make_messages(context, rng), start=offset))
        offset += len(batch)
        begun = time.process_time()
        part.ingest(batch, now_ms=NOW_MS)
        flush = part.flush()
        seconds += time.process_time() - begun
        assert flush is not None
        records = [
            (end + at, key, value) for at, (key, value) in enumerate([*flush.cells, flush.head])
        ]
        end += len(records)
        replica.read(records, position=end, end=end)
        assert part.settle() is Settled.WON
        for _, key, value in records:
            found = decode_key(prefix, key)
            if found is not None and found.name.kind == "token":
                sent += len(key) + len(value)
    assert part.work.n == round(millions * 1_000_000)
    return seconds, sent, replica, part


def measure(millions: float) -> str:
    """Return a line of the table."""
    plain, *_ = fill(make_context(one_report=False), millions)
    context = make_context(one_report=True)
    seconds, sent, replica, _ = fill(context, millions)
    n = millions * 1_000_000
    tokens = [cell for name, cell in replica.cells.items() if name.kind == "token"]
    kept = sum(len(cell.key) + len(cell.value) for cell in tokens)
    tracemalloc.start()
    begun = time.process_time()
    part = Partition.load(context, 0, [replica], epoch=2)
    load_s = time.process_time() - begun
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert part is not None
    return (
        f"{millions:>9g} {n / plain / 1e6:>13.1f} {n / seconds / 1e6:>13.1f} {sent / n:>9.1f} "
        f"{kept / n:>9.1f} {held / n:>9.1f} {load_s:>7.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="What one_report costs.")
    parser.add_argument("--millions", default="0.1,1,10", help="reports in the window")
    print(
        f"{'millions':>9} {'M/s without':>13} {'M/s with':>13} {'B sent':>9} {'B stored':>9} "
        f"{'B memory':>9} {'load s':>7}"
    )
    for millions in parser.parse_args().millions.split(","):
        print(measure(float(millions)), flush=True)


if __name__ == "__main__":
    main()

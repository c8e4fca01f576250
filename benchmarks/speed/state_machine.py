"""Speed of the state machine, without a broker: `python -m benchmarks.speed.state_machine`.

Prints a table: reports a second from messages to counts, on one core, for frames of one report and
1,000; the time of a flush and of its evaluation by a replica, and the size of the state.
"""

import time
from pathlib import Path

import numpy as np
from tests.seeded import SeededEntropy
from tests.stream.harness import loaded

from ldpstream.agents.state.context import Context
from ldpstream.agents.state.windows import WindowSpec
from ldpstream.mechanisms.wire.spec import CollectionSpec

DOMAINS = {
    1_000: {"size": 1_000, "blocks": 100},
    43_750: {"grid": [125, 350], "blocks": [25, 35]},
}
BATCH = 500
NOW_MS = 1_800_000_000_000
MINUTE_MS = 60_000


def make_context(values: int) -> Context:
    """Return an hourly collection of this many values, in blocks."""
    mapping = {"mechanism": "block-hadamard", "epsilon": 1.0, "domain": DOMAINS[values]}
    spec = CollectionSpec.from_mapping("bench", mapping, base=Path())
    window = WindowSpec(size_ms=60 * MINUTE_MS, hop_ms=60 * MINUTE_MS, grace_ms=180 * MINUTE_MS)
    return Context(spec=spec, window=window, make_final=lambda _: b"")


def make_messages(context: Context, *, reports: int, messages: int, times: int) -> list[bytes]:
    """Frames whose reports carry at most this many different times, in seconds."""
    rng, spec = np.random.default_rng(1), context.spec
    values = rng.integers(0, spec.mechanism.size, reports * messages)
    symbols = spec.mechanism.privatize(values, entropy=SeededEntropy(1))
    times_ms = NOW_MS - 1000 * rng.integers(0, times, len(values))
    return [
        spec.frame_reports(symbols[at : at + reports], times_ms=times_ms[at : at + reports])
        for at in range(0, len(values), reports)
    ]


def measure(values: int, *, reports: int, times: int) -> str:
    """Ingest, flush and read back; return a line of the table."""
    context = make_context(values)
    messages = make_messages(context, reports=reports, messages=20 * BATCH, times=times)
    replica, part = loaded(context)
    started, offset = time.perf_counter(), 0
    for at in range(0, len(messages), BATCH):
        batch = list(enumerate(messages[at : at + BATCH], start=offset))
        part.ingest(batch, now_ms=NOW_MS)
        offset += len(batch)
    ingest_s = time.perf_counter() - started
    started = time.perf_counter()
    flush = part.flush()
    flush_s = time.perf_counter() - started
    assert flush is not None
    records = [(at, key, value) for at, (key, value) in enumerate([*flush.cells, flush.head])]
    started = time.perf_counter()
    replica.read(records, position=len(records), end=len(records))
    read_s = time.perf_counter() - started
    size = sum(len(key) + len(value) for _, key, value in records)
    return (
        f"{values:>7,} {reports:>7,} {times:>7,} {len(messages) / ingest_s:>12,.0f} "
        f"{reports * len(messages) / ingest_s:>12,.0f} {flush_s * 1e3:>9.2f} {read_s * 1e3:>9.2f} "
        f"{len(records):>8,} {size:>10,}"
    )


def main() -> None:
    print(
        f"{'values':>7} {'reports':>7} {'seconds':>7} {'messages/s':>12} {'reports/s':>12} "
        f"{'flush ms':>9} {'read ms':>9} {'records':>8} {'bytes':>10}"
    )
    for values in DOMAINS:
        for reports, times in ((1, 1), (1, 600), (1_000, 1), (1_000, 60), (1_000, 7_200)):
            print(measure(values, reports=reports, times=times), flush=True)


if __name__ == "__main__":
    main()

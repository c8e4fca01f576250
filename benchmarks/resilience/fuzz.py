"""A long fuzz through a broker and a worker: `python -m benchmarks.resilience.fuzz --broker kafka`.

Messages are malformed in every field, with valid ones among them. Metrics, heads and every single
copy are compared with what docs/wire.md prescribes for each message; any difference is a failure.

With `--records N` this many damaged records of every other format are decoded instead, without a
broker; it fails if a decoder raises anything but its own error.
"""

import argparse
import asyncio
import random
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table
from tests.brokers import KINDS, broker
from tests.fuzz.records import formats, fuzz_changelog
from tests.fuzz.stream import (
    OUTCOMES,
    WINDOW,
    Fuzzed,
    check_fuzz,
    metric_outcomes,
    nothing_sent,
    send_fuzz,
)
from tests.lab import Lab
from tests.processes import Worker


def main() -> None:
    parser = argparse.ArgumentParser(description="Fuzz a worker through a broker.")
    parser.add_argument("--broker", choices=KINDS, default="embedded")
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--big", type=int, default=50, help="messages of up to a megabyte")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--records", type=int, default=0, help="records of each other format")
    given = parser.parse_args()
    if given.records:
        _fuzz_records(given.records, seed=given.seed)
        return
    with broker(given.broker) as running, tempfile.TemporaryDirectory() as folder:
        lab = Lab(running, Path(folder), window=WINDOW)
        with lab.worker() as worker:
            begun = time.monotonic()
            fuzzed = asyncio.run(_fuzz(lab, worker, given))
            took_seconds = time.monotonic() - begun
            found = metric_outcomes(worker)
            if worker.terminate() or worker.errors():
                raise SystemExit("the worker complained")
    table = Table(title=f"{given.messages:,} messages, {given.broker}, {took_seconds:.0f} s")
    for column in ("outcome", "expected", "in /metrics"):
        table.add_column(column, justify="left" if column == "outcome" else "right")
    for outcome in OUTCOMES:
        table.add_row(outcome, f"{fuzzed.outcomes[outcome]:,}", f"{found[outcome]:,}")
    Console().print(table)


def _fuzz_records(each: int, *, seed: int) -> None:
    """Decode this many damaged records of each format and print how many were accepted."""
    table = Table("format", "records", "taken", "seconds", title="Damaged records")
    readers = {one.name: one.fuzz for one in formats()} | {"changelog": fuzz_changelog}
    for name, fuzz in readers.items():
        # A whole log costs as much as hundreds of single records.
        records = each // 20 if name == "changelog" else each
        begun = time.monotonic()
        taken = sum(fuzz(random.Random(f"{name} {seed} {number}")) for number in range(records))
        table.add_row(name, f"{records:,}", f"{taken:,}", f"{time.monotonic() - begun:.0f}")
    Console().print(table)


async def _fuzz(lab: Lab, worker: Worker, given: argparse.Namespace) -> Fuzzed:
    fuzzed = nothing_sent(lab)
    await send_fuzz(lab, fuzzed, given.messages, seed=given.seed, big=given.big)
    await check_fuzz(lab, worker, fuzzed, seconds=600)
    return fuzzed


if __name__ == "__main__":
    main()

"""Random faults while a stream is counted: recovery times, and whether all counts are exact.

    python -m benchmarks.resilience.faults --broker kafka --faults 100 --reports 5000000 --idle

Three workers count five collections while workers, devices, connections and the broker are killed,
stopped, cut and slowed, one fault after another and several at a time (docs/internals/faults.md).
Then every final window of every collection is compared with a recount of the source topics. Exits
with 1 on any difference; the folder with all logs is named and kept.
"""

import argparse
import asyncio
import logging
import math
import statistics
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table
from tests.crash.faults.result import Result, Settings
from tests.crash.faults.run import run

SECONDS_A_FAULT = 8.0


def main() -> None:
    parser = argparse.ArgumentParser(description="Disturb a stream, and compare all counts.")
    parser.add_argument("--broker", choices=("embedded", "kafka", "cluster"), default="kafka")
    parser.add_argument("--faults", type=int, default=100)
    parser.add_argument("--reports", type=int, default=5_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, help="of the stream; by default 8 per fault")
    parser.add_argument("--idle", action="store_true", help="in all collections")
    parser.add_argument("--verbose", action="store_true", help="say each fault as it happens")
    given = parser.parse_args()
    logging.basicConfig(level=logging.ERROR, format="%(message)s")
    # An unreachable broker is expected here.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    logging.getLogger("tests").setLevel(logging.INFO if given.verbose else logging.ERROR)
    settings = Settings(
        broker=given.broker,
        faults=given.faults,
        reports=given.reports,
        seed=given.seed,
        idle=given.idle,
        seconds=given.seconds or SECONDS_A_FAULT * given.faults,
    )
    folder = Path(tempfile.mkdtemp(prefix="ldpstream-faults-"))
    result = asyncio.run(run(settings, folder))
    show(result, Console(width=110))
    if not result.exact:
        print(f"seed {given.seed}: NOT exact; logs are in {folder}", file=sys.stderr)
        sys.exit(1)


def show(result: Result, console: Console) -> None:
    """Print the faults and their outcome."""
    settings = result.settings
    table = Table(
        title=f"{len(result.faults)} faults, {settings.broker} broker, seed {settings.seed}",
        title_justify="left",
    )
    table.add_column("fault")
    for column in ("times", "lasted, median s", "decided, median", "max", "ready, median", "max"):
        table.add_column(column, justify="right")
    for kind in sorted({fault.kind for fault in result.faults}):
        faults = [fault for fault in result.faults if fault.kind == kind]
        decided = [f.decided if f.decided is not None else math.inf for f in faults]
        ready = [fault.ready for fault in faults]
        table.add_row(
            kind,
            str(len(faults)),
            f"{statistics.median(f.lasted for f in faults):.1f}",
            *(f"{of(times):.1f}" for times in (decided, ready) for of in (statistics.median, max)),
        )
    console.print(table)
    table = Table(title="Compared with a recount of the source topics", title_justify="left")
    table.add_column("collection")
    for column in ("messages", "counted", "late", "rejected", "windows", "finals sent", "exact"):
        table.add_column(column, justify="right")
    for name, c in result.checked.items():
        numbers = (c.messages, c.counted, c.late, c.rejected, c.windows, c.published)
        table.add_row(name, *(f"{n:,}" for n in numbers), "no" if c.wrong else "yes")
    console.print(table)
    for name, figure in result.figures.items():
        console.print(f"{name}: {figure:,.0f}")
    for sentence in [*result.wrong, *result.differences][:40]:
        console.print(f"WRONG: {sentence}", style="red")
    console.print(f"exact: {'yes' if result.exact else 'no'}")


if __name__ == "__main__":
    main()

"""How long a trickle of reports waits while one worker reads a huge backlog.

    python -m benchmarks.resilience.fairness --broker kafka

Prints how long windows of the trickle wait for their finals (from the frame that closes them), how
long HTTP answers take, how fast the backlog shrinks, and the worker's peak memory: with no backlog,
with 5 M single reports, with frames of 1,000 reports, and with 1 M malformed messages, which are
counted, or counted and copied.
"""

import argparse
import asyncio
import tempfile
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from tests.brokers import KINDS, Broker, broker
from tests.fairness import Seen, decided, fill, trickle
from tests.lab import Lab

from benchmarks.state.lab import peak_bytes

QUIET_WINDOWS = 20


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure a trickle beside a backlog.")
    parser.add_argument("--broker", choices=KINDS, default="embedded")
    parser.add_argument("--reports", type=int, default=5_000_000, help="in single messages")
    parser.add_argument("--frames", type=int, default=100_000, help="of 1,000 reports")
    parser.add_argument("--junk", type=int, default=1_000_000, help="messages of one byte")
    given = parser.parse_args()
    table = Table(title_justify="left", title=f"A trickle beside a backlog, {given.broker}")
    for column in (
        *("backlog", "messages/s", "windows", "final s, median", "99%", "HTTP ms, median", "99%"),
        *("longest", "peak MB"),
    ):
        table.add_column(column, justify="left" if column == "backlog" else "right")
    with broker(given.broker) as running:
        for title, messages, reports, rejected in (
            ("none", 0, 1, "copy"),
            ("single reports", given.reports, 1, "copy"),
            ("frames of 1,000", given.frames, 1_000, "copy"),
            ("junk, counted", given.junk, 0, "count"),
            ("junk, copied", given.junk, 0, "copy"),
        ):
            if messages or not reports or title == "none":
                row = asyncio.run(_measure(running, messages, reports, rejected))
                table.add_row(f"{messages:,} {title}" if messages else title, *row)
                Console(stderr=True).print(title, *row)
    Console(width=120).print(table)


async def _measure(running: Broker, messages: int, reports: int, rejected: str) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        names, extra = ("city", "trips"), f'rejected = "{rejected}"'
        lab = Lab(running, Path(folder), names=names, partitions=4, extra=extra)
        total = messages * max(1, reports)
        if messages:
            await fill(lab, "city", messages, reports=reports)
        with lab.worker() as worker:
            begun, before = time.monotonic(), decided(worker, "city")
            seen = await trickle(
                lab,
                worker,
                slow="trips",
                fast="city",
                backlog=total,
                windows=None if messages else QUIET_WINDOWS,
            )
            took = time.monotonic() - begun
            peak = peak_bytes(worker.process.pid)
        speed = (total - before) / max(1, reports) / took
        return [f"{speed:,.0f}" if messages else "", *_numbers(seen), f"{peak / 1e6:,.0f}"]


def _numbers(seen: Seen) -> list[str]:
    finals, answers = np.array(seen.finals), 1e3 * np.array(seen.answers)
    return [
        f"{len(finals)}",
        f"{np.median(finals):.2f}",
        f"{np.quantile(finals, 0.99):.2f}",
        f"{np.median(answers):.0f}",
        f"{np.quantile(answers, 0.99):.0f}",
        f"{answers.max():.0f}",
    ]


if __name__ == "__main__":
    main()

"""Windows closed by idleness on Apache Kafka, while workers come and go and partitions are added.

    python -m benchmarks.resilience.idle --runs 10 --seconds 90

Windows of 20 s with `grace` and `idle` of 5 s; two workers, one of them restarted or killed every
`seconds` / 4; the source grows from 4 to 8 partitions under load. Every final is compared with what
was sent, and no report may be late. Exits with 1 if a run fails, and names its seed.
"""

import argparse
import asyncio
import logging
import sys
import tempfile
import time
from pathlib import Path

from tests.brokers import broker
from tests.configuring import collection
from tests.crash.idle import WINDOW, run
from tests.lab import Lab


def main() -> None:
    parser = argparse.ArgumentParser(description="Close windows by idleness under faults.")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=90.0, help="of each run")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    given = parser.parse_args()
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    body = collection(partitions=4, window=WINDOW, extra="", size="20s")
    failed = 0
    with broker("kafka") as running:
        for seed in range(given.first, given.first + given.runs):
            with tempfile.TemporaryDirectory() as folder:
                lab, began = (
                    Lab(running, Path(folder), collections={"trips": body}),
                    time.monotonic(),
                )
                try:
                    asyncio.run(run(lab, seconds=given.seconds, seed=seed, grown=8))
                    found = "every final equals the ledger, 0 late"
                except AssertionError as error:
                    found = f"FAILED: {error}"
                    failed += 1
            sent, seconds = lab.ledger, time.monotonic() - began
            print(
                f"seed {seed}: {sent.n:,} reports in {len(sent.windows)} windows, "
                f"{seconds:.0f} s: {found}",
                flush=True,
            )
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

"""The long form of the crash tests, as a command that prints what it did.

python -m tests.crash.run --broker kafka --times 10 --reports 500000
python -m tests.crash.run --broker kafka --frame 1 --reports 200000
python -m tests.crash.run --broker cluster --times 6     (three nodes, killed one after another)
python -m tests.crash.run --broker cluster --store rocksdb --times 3
"""

import argparse
import asyncio
import tempfile
import time
from pathlib import Path

from tests.brokers import KINDS, broker
from tests.crash.cluster import NODES, kafka_cluster
from tests.crash.nodes import run_with_nodes_killed
from tests.crash.scenario import run
from tests.lab import Lab


def main() -> None:
    parser = argparse.ArgumentParser(description="Kill or stop workers while a stream is counted.")
    parser.add_argument("--broker", choices=(*KINDS, "cluster"), default="embedded")
    parser.add_argument("--disturbance", choices=("kill", "stop"), default="kill")
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--reports", type=int, default=500_000)
    parser.add_argument("--frame", type=int, default=100, help="reports a message")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--store", choices=("memory", "rocksdb"), default="memory")
    given = parser.parse_args()
    if given.store == "rocksdb" and given.workers > 1:
        parser.error("--store rocksdb takes one worker: two cannot share a folder")
    if given.broker == "cluster":
        _kill_nodes(given)
        return
    with broker(given.broker) as running, tempfile.TemporaryDirectory() as folder:
        lab = Lab(running, Path(folder), store=given.store)
        begun = time.monotonic()
        sent = asyncio.run(
            run(
                lab,
                disturbance=given.disturbance,
                times=given.times,
                workers=given.workers,
                reports=given.reports,
                a_frame=given.frame,
                seed=given.seed,
            )
        )
        print(
            f"{given.broker}, {given.workers} worker(s), {given.times} x {given.disturbance}: "
            f"{lab.ledger.n} reports in {len(lab.ledger.windows)} windows counted exactly, "
            f"{sent.late} late, {sent.rejected} rejected, in {time.monotonic() - begun:.0f} s"
        )


def _kill_nodes(given: argparse.Namespace) -> None:
    with kafka_cluster() as cluster, tempfile.TemporaryDirectory() as folder:
        lab = Lab(cluster.broker, Path(folder), store=given.store)
        begun = time.monotonic()
        asyncio.run(
            run_with_nodes_killed(
                lab,
                cluster,
                times=given.times,
                reports=given.reports,
                a_frame=given.frame,
                seed=given.seed,
            )
        )
        took_seconds = time.monotonic() - begun
        print(
            f"{NODES} nodes, {given.times} x kill of one: "
            f"{lab.ledger.n} reports in {len(lab.ledger.windows)} windows counted exactly, "
            f"in {took_seconds:.0f} s"
        )


if __name__ == "__main__":
    main()

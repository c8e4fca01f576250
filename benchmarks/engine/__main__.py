"""The engine and its peers, in one run: `python -m benchmarks.engine`.

    python -m benchmarks.engine --page docs/performance.md

Parts (`--only` takes some of them, separated by commas): `speed` by frame size, also of bare
aiokafka and librdkafka, Faust and Quix; `latency` from send to published; `state`: changelog bytes,
recovery, memory; `workers`: two against one; `partitions`: a worker with many of them.

Each part runs in a process of its own with a broker of its own. One that fails, or takes more than
ten minutes, is reported as failed and the others go on. Every table is printed as soon as it is
complete, and with `--page` also written between a Markdown page's comments, so that nothing is
lost.

The broker runs on one core and the measured process on the other. Topics are written beforehand, in
a transaction that commits when the reader is ready (on Apache Kafka; the embedded broker has no
transactions, so there only `latency` runs). Each reader's best of `--repeat`
interleaved rounds counts, in processor seconds of its process, user and system: on a shared machine
elapsed time says more about the other users. Exits 1 if a part failed, or a target is missed or was
not measured. Quix and librdkafka live in an environment of their own, made by

    python -m venv /tmp/bench-quix && /tmp/bench-quix/bin/pip install quixstreams==3.28.1
"""

import argparse
import os
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from tests.brokers import KINDS

from benchmarks.apart import PartFailedError, apart
from benchmarks.engine import parts, show, speed
from benchmarks.engine.cost import Cost
from benchmarks.engine.tables import Report, markdown
from benchmarks.engine.targets import Target, targets

PARTS = ("speed", "latency", "state", "workers", "partitions")
SECTIONS = ("run", "speed", "day", "latency", "state", "recovery", "workers", "partitions")
"""Sections that a page has a place for; the targets are only printed."""
PART_SECONDS = 600.0
_VALUES = 1_000

Found = TypeVar("Found")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure the engine and its peers.")
    parser.add_argument("--broker", choices=KINDS, default="kafka")
    parser.add_argument("--only", default=",".join(PARTS), help="parts, separated by commas")
    parser.add_argument("--page", type=Path, help="a Markdown page to write the tables to")
    parser.add_argument("--reports", type=int, default=800_000, help="single reports")
    parser.add_argument("--peer-reports", type=int, default=20_000, help="for Faust and Quix")
    parser.add_argument("--repeat", type=int, default=2, help="interleaved rounds")
    parser.add_argument("--sizes", default=",".join(map(str, speed.SIZES)))
    parser.add_argument("--quix-python", default="/tmp/bench-quix/bin/python")
    parser.add_argument("--seconds", type=float, default=6.0, help="of a load, for latency")
    parser.add_argument("--windows", type=int, default=40, help="finals, for latency")
    parser.add_argument("--panes", type=int, default=1_000, help="open panes, for recovery")
    parser.add_argument("--partitions", default="100,1000", help="of one worker")
    given = parser.parse_args()
    given.only = given.only.split(",")
    if unknown := set(given.only) - set(PARTS):
        parser.error(f"--only: expected some of {', '.join(PARTS)}, got {', '.join(unknown)}")
    if given.broker != "kafka" and given.only != ["latency"]:
        parser.error("--broker embedded has no transactions: --only latency")
    return given


def main() -> None:
    given = _arguments()
    begun = time.monotonic()
    run = Run(given)
    for part in given.only:
        print(f"{part}, after {(time.monotonic() - begun) / 60:.1f} minutes", file=sys.stderr)
        getattr(run, part)()
    run.classify((time.monotonic() - begun) / 60)
    sys.exit(bool(run.failures) or not all(target.met for target in run.judged))


class Run:
    """One run: its parts by name, the failed ones, and the results for the targets."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.failures: list[str] = []
        self.judged: list[Target] = []
        self._given = given
        self._report = Report(given.page, SECTIONS)
        self._command = " ".join(["python -m benchmarks.engine", *sys.argv[1:]])
        self._began, self._load = datetime.now(UTC), os.getloadavg()[0]

    def speed(self) -> None:
        """Read frames of every size, and judge."""
        given, costs = self._given, list[Cost]()
        sizes = tuple(map(int, given.sizes.split(",")))
        plan = speed.Plan(given.reports, given.peer_reports, given.repeat, given.quix_python)
        for size in sizes:
            costs += self._try(parts.by_size, given.broker, plan, size) or []
            self._report.write("speed", markdown(show.costs(costs, plan, given.broker)))
        self._report.show("speed", show.costs(costs, plan, given.broker))
        self._report.show("day", show.day(costs))
        self.judged = targets(costs, sizes)

    def latency(self) -> None:
        """Measure the latency of published documents."""
        given = self._given
        if found := self._try(parts.latencies, given.broker, given.seconds, given.windows):
            self._report.show("latency", show.latencies(found))

    def state(self) -> None:
        """Measure memory, the changelog, and recovery."""
        given = self._given
        if found := self._try(parts.memory, given.broker):
            self._report.show("state", show.states(found))
        if row := self._try(parts.recovery, given.broker, given.panes, _VALUES):
            self._report.show("recovery", show.recovered([row], _VALUES))

    def workers(self) -> None:
        """Compare two workers with one."""
        if found := self._try(parts.two_workers, self._given.broker, self._given.reports):
            self._report.show("workers", show.shared(found))

    def partitions(self) -> None:
        """Measure a worker that owns many partitions."""
        given, found = self._given, []
        for size in map(int, given.partitions.split(",")):
            if many := self._try(parts.many_partitions, given.broker, size, 4 * given.seconds):
                found.append(many)
                self._report.write("partitions", markdown(show.many(found)))
        self._report.show("partitions", show.many(found))

    def classify(self, minutes: float) -> None:
        """Print the targets, the failed parts, and the conditions of the measurement."""
        if self.judged:
            self._report.show("targets", show.targets(self.judged))
        said = (
            f"`{self._command}`, {self._began:%Y-%m-%d %H:%M} UTC, {minutes:.0f} minutes, "
            f"{os.cpu_count()} cores, load {self._load:.1f} at the start and "
            f"{os.getloadavg()[0]:.1f} at the end, {self._given.broker} broker."
        )
        self._report.say("run", " ".join([said, *self.failures]))

    def _try(self, part: Callable[..., Found], *arguments: object) -> Found | None:
        try:
            return apart(part, *arguments, seconds=PART_SECONDS)
        except PartFailedError as error:
            self.failures.append(f"FAILED: {error}.")
            print(self.failures[-1], file=sys.stderr, flush=True)
            return None


if __name__ == "__main__":
    main()

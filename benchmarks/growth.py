"""How the cost of state grows: `python -m benchmarks.growth [--page FILE] [--plot FILE]`.

One thing is varied at a time: values, open windows, partitions, collections, or workers that hold
the state. Each point is a process of its own without a broker: the state machine counts the same
reports, its flushes are the changelog, and every worker reads it. *CPU* is the processor time of
counting, flushing and reading, *memory* what that adds, *changelog* its bytes, and *start* the
processor time of one worker that reads the changelog and loads its partitions. *Exponent* is the
largest of growth between two points: 0 is no growth, 1 is linear. `--plot` draws one
log-log plot for each, relative to its first point, with what linear growth would be; `--page`
writes the exponents between a Markdown page's comments.
"""

import argparse
import json
import math
import multiprocessing
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from tests.seeded import SeededEntropy

from benchmarks.engine.tables import Report, table
from benchmarks.state.cells import resident_bytes
from ldpstream.agents.state.context import Context
from ldpstream.agents.state.flushes import Settled
from ldpstream.agents.state.partition import Partition
from ldpstream.agents.state.replica import Replica
from ldpstream.agents.state.windows import WindowSpec
from ldpstream.mechanisms.wire.spec import CollectionSpec

FRAMES = 1_024
FRAME_REPORTS = 1_000
FLUSHED_FRAMES = 64
HOUR_MS = 3_600_000
START_MS = 1_287_000_000_000 // HOUR_MS * HOUR_MS
MEASURES = ("cpu_seconds", "memory_bytes", "changelog_bytes", "start_seconds")
_NAMES = ("CPU", "memory", "changelog", "start")


@dataclass(frozen=True)
class Setting:
    """What a point has."""

    values: int = 1_024
    windows: int = 4
    partitions: int = 4
    collections: int = 1
    workers: int = 1


VARIED: Mapping[str, Sequence[int]] = {
    "values": [256, 1_024, 4_096, 16_384, 65_536, 262_144],
    "windows": [1, 4, 16, 64, 256, 1_024],
    "partitions": [1, 4, 16, 64, 256],
    "collections": [1, 4, 16, 64],
    "workers": [1, 4, 16],
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure how the cost of state grows.")
    parser.add_argument("--json", type=Path, help="file for the points")
    parser.add_argument("--page", type=Path, help="Markdown page for the table of exponents")
    parser.add_argument("--plot", type=Path, help="SVG file for the plots")
    parser.add_argument("--points", type=Path, help="plot this JSON instead of measuring")
    parser.add_argument("--only", choices=VARIED, help="vary only this")
    given = parser.parse_args()
    points = (
        _measure_all(given.only) if given.points is None else json.loads(given.points.read_text())
    )
    if given.json is not None:
        given.json.write_text(json.dumps(points, indent=1))
    if given.page is not None:
        Report(given.page, ("growth",)).show("growth", _exponents(points))
    if given.plot is not None:
        plot(points, given.plot)


def _measure_all(only: str | None) -> dict[str, list[dict[str, Any]]]:
    """Measure all points, or those of one thing, and print them."""
    console = Console(width=100)
    points: dict[str, list[dict[str, Any]]] = {}
    for name in [only] if only else VARIED:
        points[name] = []
        made = Table(title=name, title_justify="left")
        for heading in (name, "CPU s", "memory MiB", "changelog MB", "start s"):
            made.add_column(heading, justify="right")
        for number in VARIED[name]:
            point = _in_process(replace(Setting(), **{name: number}))
            points[name].append({name: number, **point})
            cpu, memory, changelog, start = (point[measure] for measure in MEASURES)
            made.add_row(
                f"{number:,}", f"{cpu:.2f}", f"{memory / 2**20:.1f}", f"{changelog / 1e6:.2f}",
                f"{start:.3f}",
            )  # fmt: skip
        made.add_section()
        made.add_row("exponent", *(f"{_exponent(points[name], name, key):.2f}" for key in MEASURES))
        console.print(made)
    return points


def _exponent(points: Sequence[Mapping[str, float]], name: str, measure: str) -> float:
    """Return the largest exponent of growth between neighbours."""
    return max(
        math.log(max(after[measure], 1e-9) / max(before[measure], 1e-9))
        / math.log(after[name] / before[name])
        for before, after in pairwise(points)
    )


def _exponents(points: Mapping[str, Sequence[Mapping[str, float]]]) -> Table:
    rows = (
        (name, f"{own[-1][name]:,}", *(f"{_exponent(own, name, key):.2f}" for key in MEASURES))
        for name, own in points.items()
    )
    title = "The largest exponent of growth between two points, each four times the one before"
    return table(title, ("varied", "up to", *_NAMES), rows)


def plot(points: Mapping[str, Sequence[Mapping[str, float]]], file: Path) -> None:
    """Draw each measure relative to its first point, both axes logarithmic, one plot for each."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.2 * len(points), 3.0), layout="constrained")
    all_axes = figure.subplots(1, len(points), squeeze=False)[0]
    for axes, (name, own) in zip(all_axes, points.items(), strict=True):
        numbers = [point[name] for point in own]
        for measure, label in zip(MEASURES, _NAMES, strict=True):
            first = own[0][measure]
            axes.loglog(numbers, [point[measure] / first for point in own], "o-", label=label)
        linear = [number / numbers[0] for number in numbers]
        axes.loglog(numbers, linear, "--", color="gray", label="linear")
        axes.set_xlabel(name)
    all_axes[0].set_ylabel("times the first point")
    all_axes[-1].legend()
    # Without a date and with fixed names the same points make the same file.
    with rc_context({"svg.hashsalt": "growth", "svg.fonttype": "none"}):
        figure.savefig(file, metadata={"Date": None})


def _in_process(setting: Setting) -> dict[str, float]:
    """Measure in a fresh process, whose memory holds nothing else."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(setting, sender))
    process.start()
    sender.close()
    point: dict[str, float] = receiver.recv()
    process.join()
    return point | asdict(setting)


def _send(setting: Setting, sender: Connection) -> None:
    sender.send(measure(setting))


def measure(setting: Setting) -> dict[str, float]:
    """Count all frames, and return what that took."""
    collections = [_make_context(f"c{number}", setting) for number in range(setting.collections)]
    frames = list(_frames(collections, setting))
    owners = [Owner(context, setting) for context in collections]
    before, begun = resident_bytes(), time.process_time()
    for first in range(0, len(frames), FLUSHED_FRAMES):
        for collection, partition, frame in frames[first : first + FLUSHED_FRAMES]:
            owners[collection].count(partition, frame)
        for owner in owners:
            owner.flush()
    cpu_seconds = time.process_time() - begun
    memory = resident_bytes() - before
    assert sum(owner.reports for owner in owners) == FRAMES * FRAME_REPORTS
    begun = time.process_time()
    for owner in owners:
        owner.restart()
    return {
        "cpu_seconds": cpu_seconds,
        "memory_bytes": memory,
        "changelog_bytes": sum(owner.written_bytes for owner in owners),
        "start_seconds": time.process_time() - begun,
    }


def _make_context(name: str, setting: Setting) -> Context:
    mapping = {
        "mechanism": "randomized-response",
        "epsilon": 4.0,
        "domain": {"size": setting.values},
        "partitions": setting.partitions,
    }
    spec = CollectionSpec.from_mapping(name, mapping, base=Path())
    window = WindowSpec(size_ms=HOUR_MS, hop_ms=HOUR_MS, grace_ms=1 << 40, retention_ms=1 << 40)
    return Context(spec=spec, window=window, make_final=lambda _: b"")


def _frames(collections: Sequence[Context], setting: Setting) -> Iterator[tuple[int, int, bytes]]:
    """Yield frames by collection and partition, the same reports in whatever order."""
    rng = np.random.default_rng(1)
    for number in range(FRAMES):
        spec = collections[number % setting.collections].spec
        values = rng.integers(0, setting.values, FRAME_REPORTS)
        reports = spec.mechanism.privatize(values, entropy=SeededEntropy(number))
        times_ms = np.full(FRAME_REPORTS, START_MS + number % setting.windows * HOUR_MS)
        partition = number // setting.collections % setting.partitions
        yield (
            number % setting.collections,
            partition,
            spec.frame_reports(reports, times_ms=times_ms),
        )


class Owner:
    """The owner of all partitions of a collection, and all workers' replicas."""

    def __init__(self, context: Context, setting: Setting) -> None:
        self._context = context
        self._workers = [
            [Replica(context, partition) for partition in range(setting.partitions)]
            for _ in range(setting.workers)
        ]
        self._logs: list[list[tuple[int, bytes, bytes | None]]] = [
            [] for _ in range(setting.partitions)
        ]
        self._owned: dict[int, Partition] = {}
        self._now_ms = START_MS + setting.windows * HOUR_MS
        self.written_bytes = 0
        for replicas in self._workers:
            for replica in replicas:
                replica.read([], position=0, end=0)
        # The other partitions cannot be loaded before partition 0 says how many there are.
        own = self._load(0)
        own.clock(
            replicas=self._workers[0], controls=(), known_partitions=setting.partitions, now_ms=0
        )
        self.flush()

    def _load(self, number: int) -> Partition:
        if number not in self._owned:
            partition = Partition.load(self._context, number, self._workers[0], epoch=number + 1)
            assert partition is not None
            self._owned[number] = partition
        return self._owned[number]

    def count(self, number: int, frame: bytes) -> None:
        """Count a frame."""
        partition = self._load(number)
        partition.ingest([(partition.next, frame)], now_ms=self._now_ms)

    def flush(self) -> None:
        """Write what has changed, and let every worker read it."""
        for number, partition in self._owned.items():
            flush = partition.flush()
            if flush is None:
                continue
            log = self._logs[number]
            start = len(log)
            log += [
                (start + place, key, value)
                for place, (key, value) in enumerate([*flush.cells, flush.head])
            ]
            self.written_bytes += sum(len(key) + len(value or b"") for _, key, value in log[start:])
            for replicas in self._workers:
                replicas[number].read(log[start:], position=len(log), end=len(log))
            assert partition.settle() is Settled.WON

    def restart(self) -> None:
        """Read all changelogs again, and load the partitions."""
        replicas = [Replica(self._context, number) for number in range(len(self._logs))]
        for replica, log in zip(replicas, self._logs, strict=True):
            replica.read(log, position=len(log), end=len(log))
        for number in self._owned:
            assert Partition.load(self._context, number, replicas, epoch=1 << 20) is not None

    @property
    def reports(self) -> int:
        """The number of reports counted."""
        heads = [replica.head for replica in self._workers[0]]
        return sum(head.n for head in heads if head is not None)


if __name__ == "__main__":
    main()

"""Reports a second by frame size: bare consumers, the worker, and stream engines."""

import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.brokers import Broker
from tests.lab import Lab

from benchmarks.engine import backlog
from benchmarks.engine.cost import MEASURED_CORE, Cost, best, on_core
from benchmarks.engine.getmany import bare_consumer
from benchmarks.engine.topic import PARTITIONS

SIZES = (1, 100, 1_000)
WORKER = "worker"
FAUST, QUIX, LIBRDKAFKA = "Faust table", "Quix tumbling count", "librdkafka"
_QUIX = Path(__file__).with_name("quix_counts.py")
_LIBRDKAFKA = Path(__file__).with_name("librdkafka.py")
_PEER_SECONDS = 300.0


@dataclass(frozen=True)
class Plan:
    """How much is measured, and how often; `quix` is a Python that has Quix Streams, if any."""

    reports: int
    peer_reports: int
    repeat: int
    quix: str = ""

    def messages(self, size: int) -> int:
        """Return the number of messages: total reports grow as sqrt(size), as frames are faster."""
        return max(200, round(self.reports / math.sqrt(size)))


def measure(running: Broker, plan: Plan, size: int) -> list[Cost]:
    """Return every reader's best at one frame size; peers that failed are left out."""
    found: dict[str, list[Cost]] = {}
    for number in range(plan.repeat):
        print(f"frames of {size:,}, round {number + 1}", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory() as folder:
            for cost in _round(running, plan, size, Path(folder)):
                found.setdefault(cost.reader, []).append(cost)
    return [best(costs) for costs in found.values()]


def _round(running: Broker, plan: Plan, size: int, folder: Path) -> list[Cost]:
    """Measure every reader once, one after the other, on one topic."""
    messages = plan.messages(size)
    lab = Lab(running, folder, partitions=PARTITIONS)
    topic = lab.collection.topics.source
    costs = [backlog.worker(lab, WORKER, messages=messages, size=size)]
    with on_core(MEASURED_CORE):
        costs.append(bare_consumer(running, topic, messages, size=size))
        if size in {1, 1_000}:
            few = min(messages, max(1, plan.peer_reports // size))
            costs += _faust(running, topic, few, size, folder)
            if plan.quix:
                costs += _quix(plan.quix, running, topic, few, size, folder)
        if plan.quix:
            costs += _librdkafka(plan.quix, running, topic, messages, size)
    for cost in costs:
        said = f"  {cost.reader}: {cost.of_a_core:,.0f} reports/s of a core in {cost.seconds:.1f} s"
        print(said, file=sys.stderr, flush=True)
    return costs


def _faust(running: Broker, topic: str, messages: int, size: int, folder: Path) -> list[Cost]:
    program = [sys.executable, "-m", "benchmarks.engine.faust_table"]
    arguments = [running.bootstrap, topic, str(PARTITIONS), str(messages), str(folder)]
    return _peer(FAUST, program + arguments, messages, size)


def _quix(
    python: str, running: Broker, topic: str, messages: int, size: int, folder: Path
) -> list[Cost]:
    arguments = [running.bootstrap, topic, str(messages), str(folder / "quix")]
    return _peer(QUIX, [python, str(_QUIX), *arguments], messages, size)


def _librdkafka(python: str, running: Broker, topic: str, messages: int, size: int) -> list[Cost]:
    arguments = [running.bootstrap, topic, str(PARTITIONS), str(messages)]
    return _peer(LIBRDKAFKA, [python, str(_LIBRDKAFKA), *arguments], messages, size)


def _peer(reader: str, command: Sequence[str], messages: int, size: int) -> list[Cost]:
    """Run another engine, whose last line of output is its cost; return None if it failed."""
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=_PEER_SECONDS)
        took = json.loads(ended.stdout.strip().splitlines()[-1])
    except (OSError, subprocess.TimeoutExpired, ValueError, IndexError) as error:
        print(f"  {reader} did not count {messages} messages: {error}", file=sys.stderr, flush=True)
        return []
    return [Cost(reader, size, messages * size, took["cpu_seconds"], took["seconds"])]

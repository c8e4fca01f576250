"""A fleet of devices with ledgers on disk, from values to published finals, some killed.

    python -m benchmarks.resilience.fleet --broker kafka --devices 20000 --windows 60

Each device spreads its budget over the windows of a period and sends by `Sender.send_once`, one
message a report; half of them change their value in every window, 30% come when 40% of the windows
are over and have other shares. Each process runs thousands of devices. Processes are killed with
SIGKILL and restarted until at least `--killed` of all devices had a report in their ledger that was
not marked as sent: in turns at a random moment of their work, and as soon as the broker has
acknowledged a report that its ledger has not marked. Windows are of event time, replayed. At the
end

- nobody has spent more than the budget: by the ledgers, and by the topic, whose tokens are
  attributed with the devices' secrets;
- no device has two different reports in a window, and the final of each window has counted every
  device that takes part in it once, including those whose report was sent again;
- the truth lies within the finals' bounds as often as they say: for respondents, active devices
  and the population, of each value over all windows (Bonferroni over the values, at 0.1%).

Exit status 1 if one of these does not hold.
"""

import argparse
import asyncio
import random
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr
from tests.brokers import KINDS, Broker, broker
from tests.lab import Lab
from tests.processes import Worker

from benchmarks.resilience.fleet_devices import NAME, SIZE, Fleet
from benchmarks.resilience.fleet_process import Process
from benchmarks.resilience.fleet_topic import Topic, bounds, shares_of, wait_for_finals

Floats = NDArray[np.float64]

WINDOW_MS: Final = 10_000
CONFIDENCE: Final = 0.95
ESTIMANDS: Final = ("respondents", "active", "population")
_KILL_EVERY: Final = 2


def body(reports: int, windows: int) -> str:
    """Return the table of the collection: `reports` of every `windows` windows."""
    size = f"{WINDOW_MS // 1000}s"
    return f"""mechanism = "block-hadamard"
epsilon = 2.0
domain = {{ size = {SIZE} }}
precision = "1s"
one_report = true
minimum = 1
partitions = 4
estimand = "active"
window = {{ size = "{size}", grace = "{size}", idle = "off" }}
spread = {{ reports = {reports}, horizon = "{windows * WINDOW_MS // 1000}s" }}
publish = {{ every = "5s", top = {SIZE} }}
"""


@dataclass
class Run:
    """What came of it."""

    participants: list[int] = field(default_factory=list)
    kills: int = 0
    at_arrival: int = 0
    interrupted: int = 0
    problems: list[str] = field(default_factory=list)

    def windows(
        self, fleet: Fleet, processes: Sequence[Process], *, killed: float, rng: random.Random
    ) -> None:
        """Run all devices through the windows, and kill processes until enough devices were hit."""
        lasted = 1.0
        for window in range(fleet.windows):
            enough = self.at_arrival > 0 and self.interrupted >= killed * fleet.devices
            victim = rng.choice(processes) if window % _KILL_EVERY and not enough else None
            dies = victim is not None and self.kills % 2 == 1
            began, answered = time.monotonic(), None
            for process in processes:
                process.tell(f"{window} die" if dies and process is victim else f"{window}")
            if victim is not None:
                after_seconds = None if dies else rng.uniform(0.0, lasted)
                answered = self._strike(victim, after_seconds)
                if answered is None:
                    victim.tell(f"{window} again")
            others = processes if answered is None else [p for p in processes if p is not victim]
            found = [process.answer() for process in others]
            found += [] if answered is None else [answered]
            if victim is None:
                lasted = time.monotonic() - began
            self.interrupted += sum(one["interrupted"] for one in found)
            self.participants.append(sum(one["part"] for one in found))
        if self.interrupted < killed * fleet.devices:
            self.problems.append(
                f"{self.interrupted} devices killed between ledger and acknowledgement"
            )
        if not self.at_arrival:
            self.problems.append("no device killed between the broker's answer and its mark")

    def _strike(self, victim: Process, after_seconds: float | None) -> dict[str, int] | None:
        """Kill a process after some time, or (None) let it die at an acknowledgement; restart it.

        If it had nothing to send, let it live and return its answer.
        """
        if after_seconds is None:
            answered = victim.answer_or_death()
            if answered is not None:
                return answered
            self.at_arrival += 1
        else:
            time.sleep(after_seconds)
        self.kills += 1
        victim.kill()
        victim.start()
        return None

    def check_budgets(self, fleet: Fleet, topic: Topic, spent: Floats) -> None:
        """Check what devices have spent, by their ledgers and by their reports on the topic."""
        spec, spread = fleet.collection.spec, fleet.collection.spread
        assert spread is not None
        budget = float(spread.budget(spec))
        if spent.max() > budget:
            self.problems.append(f"a ledger has spent {spent.max()} of {budget}")
        if topic.strangers or topic.different:
            self.problems.append(
                f"{topic.strangers} tokens of nobody, {topic.different} windows of two reports"
            )
        if topic.copies < self.at_arrival:
            self.problems.append(
                f"{topic.copies} copies after {self.at_arrival} kills between arrival and mark"
            )
        periods = np.add.reduceat(topic.there, range(0, fleet.windows, spread.windows), axis=1)
        loss = float(int(periods.max()) * spec.mechanism.policy.largest_loss())
        if loss > budget:
            self.problems.append(f"a device's reports of a period lose {loss} of {budget}")
        if topic.there.sum(axis=0).tolist() != self.participants:
            self.problems.append("the topic does not have one report of each that takes part")

    def check_bounds(
        self, fleet: Fleet, lab: Lab, worker: Worker, topic: Topic, *, level: float
    ) -> dict[str, Floats]:
        """Return how often bounds of each value hold the truth, `(k,)`, by estimand."""
        starts = [fleet.window_start_ms(window) for window in range(fleet.windows)]
        finals = wait_for_finals(lab, worker, starts)
        numbers = [one["n"] for one in finals]
        if numbers != self.participants:
            self.problems.append("finals do not count each device that takes part once")
        inside: dict[str, list[NDArray[np.bool_]]] = {estimand: [] for estimand in ESTIMANDS}
        for window, start in enumerate(starts):
            values, active = fleet.values(window), fleet.active(window)
            truths = {
                "respondents": shares_of(values[topic.there[:, window]]),
                "active": shares_of(values[active]),
                "population": fleet.population(window),
            }
            for estimand, truth in truths.items():
                asked = f"start={start}&end={start + WINDOW_MS}&estimand={estimand}&top=all"
                document = finals[window]
                if estimand != document["estimand"]:
                    document = worker.get(f"/api/collections/{NAME}/estimate?{asked}")
                low, high = bounds(document)
                inside[estimand].append((low <= truth) & (truth <= high))
        covered = {estimand: np.mean(rows, axis=0) for estimand, rows in inside.items()}
        for estimand, shares in covered.items():
            times = np.round(shares * fleet.windows)
            if (bdtr(times, fleet.windows, CONFIDENCE) < level / (SIZE * len(covered))).any():
                self.problems.append(f"{estimand}: bounds cover {shares.round(3).tolist()}")
        return covered


def run(
    running: Broker,
    folder: Path,
    *,
    devices: int,
    windows: int,
    period: int,
    reports: int,
    processes: int,
    killed: float,
    seed: int,
    level: float = 0.001,
) -> Run:
    """Run the fleet, print the outcome, and return it.

    `level` is the probability that correct bounds are called wrong.
    """
    began, found = time.monotonic(), Run()
    lab = Lab(running, folder, collections={NAME: body(reports, period)})
    horizon_ms = period * WINDOW_MS
    start_ms = 1_287_000_000_000 // horizon_ms * horizon_ms
    ledgers = folder / "ledgers"
    ledgers.mkdir()
    fleet = Fleet(str(lab.file), str(ledgers), devices, windows, start_ms, seed)
    fleet.write(folder / "fleet.json")
    edges = np.linspace(0, devices, processes + 1).astype(int).tolist()
    with lab.worker() as worker:
        parts = [Process(folder / "fleet.json", first, end) for first, end in pairwise(edges)]
        try:
            found.windows(fleet, parts, killed=killed, rng=random.Random(seed))
            files = [folder / f"{part.first}.npz" for part in parts]
            for part, file in zip(parts, files, strict=True):
                part.tell(f"end {file}")
            for part in parts:
                part.answer()
        finally:
            for part in parts:
                part.kill()
        ends = [np.load(file) for file in files]
        tokens = np.concatenate([one["tokens"] for one in ends])
        spent = np.concatenate([one["spent"] for one in ends])
        topic = Topic.read(lab, tokens)
        found.check_budgets(fleet, topic, spent)
        asyncio.run(lab.close(fleet.window_start_ms(windows)))
        covered = found.check_bounds(fleet, lab, worker, topic, level=level)
    spread = fleet.collection.spread
    assert spread is not None, "`body` configures it"
    budget = float(spread.budget(fleet.collection.spec))
    print(
        f"{devices:,} devices, {windows} windows, {reports} of {period} each, "
        f"{sum(found.participants):,} reports in {topic.messages:,} messages "
        f"({topic.copies} copies), {processes} processes\n"
        f"{found.kills} kills, {found.at_arrival} of them between the broker's answer and the "
        f"ledger's mark; {found.interrupted} devices had written a report and not marked it\n"
        f"largest spent {spent.max():g} of the budget of {budget:g}"
    )
    for estimand, shares in covered.items():
        print(f"{estimand}: covered {shares.mean():.3f}, by value {shares.round(3).tolist()}")
    for problem in found.problems:
        print(f"problem: {problem}")
    print(f"{time.monotonic() - began:,.0f} s", flush=True)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.resilience.fleet", description=__doc__
    )
    parser.add_argument("--broker", choices=KINDS, default="kafka")
    parser.add_argument("--devices", type=int, default=20_000)
    parser.add_argument("--windows", type=int, default=60)
    parser.add_argument("--period", type=int, default=20, help="windows of a period")
    parser.add_argument("--reports", type=int, default=2, help="that the budget allows in one")
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--killed", type=float, default=0.05, help="the least part of the devices")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", help="for ledgers, such as /dev/shm; by default /tmp")
    given = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with broker(given.broker) as running, tempfile.TemporaryDirectory(dir=given.folder) as folder:
        asked = {name: one for name, one in vars(given).items() if name not in ("broker", "folder")}
        found = run(running, Path(folder), **asked)
    return 1 if found.problems else 0


if __name__ == "__main__":
    sys.exit(main())

"""Variances of groups through a broker, from devices to published finals.

    python -m benchmarks.accuracy.groups_broker

In each of 20 windows 100,000 devices report. A worker publishes the share of every value, or of
every range, in the finals. A row has the sum of the variances of all values (the mean of those of
ranges) for one report, as measured around the true shares of the respondents, and as predicted:
1,000 values, of which 100 are sensitive and held by a fifth of the devices, with `groups` and with
`high-low`; four blocks of 16 values, of which one has the budget .5 and three have 2, and all .5;
three overlapping ranges of 1,024 values. `chance` is the standard error of the ratio: with 20
windows a total of 1,000 values is measured to some 3%, of 64 values to 4%, of three ranges to 20%;
`--windows 200` takes it to a third. Exit status 1 if any ratio is more than three of these off, or
if by prediction blocks with budgets of their own have more than .3 of the other's, ranges more than
3.6.
`--devices 10000 --windows 20` takes minutes, and its chance is as large: it depends on windows.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from tests.brokers import KINDS, broker
from tests.lab import Lab
from tests.seeded import SeededEntropy

Floats = NDArray[np.float64]

DAY_MS: Final = 86_400_000
START_MS: Final = 20_000 * DAY_MS
HOUR_MS: Final = 3_600_000
DEVICES: Final = 100_000
FRAME: Final = 10_000
PATIENCE_SECONDS: Final = 600.0
FORMS: Final = 400
RANGES: Final = {"first": (0, 341), "middle": (170, 682), "last": (512, 1023)}
WINDOW: Final = """partitions = 1
minimum = 100
project = "none"
window = { size = "1h", grace = "0s", idle = "off", retention = "40d" }
"""


def tables() -> dict[str, str]:
    """Return the configurations by name."""
    sensitive = [*range(100)]
    few = f"domain = {{ size = 1000 }}\nsensitive = {sensitive}\n"
    blocks = "domain = { size = 64, blocks = 16 }\n"
    ranges = ", ".join(f"{name} = {[*ends]}" for name, ends in RANGES.items())
    found = {}
    for epsilon in (1.0, 2.0, 4.0):
        found[f"groups-{epsilon:g}"] = (
            f'mechanism = "groups"\nepsilon = {epsilon}\nshare = 0.2\n{few}'
        )
        found[f"high-low-{epsilon:g}"] = f'mechanism = "high-low"\nepsilon = {epsilon}\n{few}'
    found["blocks-of-budgets"] = f'mechanism = "groups"\nepsilon = [0.5, 2.0, 2.0, 2.0]\n{blocks}'
    found["blocks-alike"] = f'mechanism = "groups"\nepsilon = 0.5\n{blocks}'
    top = {
        name: f'{body}{WINDOW}publish = {{ every = "off", top = 1000 }}\n'
        for name, body in found.items()
    }
    return top | {
        "ranges": 'mechanism = "subset-selection"\nepsilon = 1.0\ndomain = { size = 1024 }\n'
        f'workload = "published"\n{WINDOW}publish = {{ every = "off", ranges = {{ {ranges} }} }}\n'
    }


def shares_of(size: int) -> Floats:
    """Return the probabilities with which devices have each value."""
    if size != 1000:
        return np.full(size, 1.0 / size)
    return np.repeat([0.2 / 100, 0.8 / 900], [100, 900])


async def send(lab: Lab, windows: int, devices: int) -> Floats:
    """Produce the reports of all windows; return the true shares, `(windows, values)`."""
    spec, topic = lab.collection.spec, lab.collection.topics.source
    size = spec.domain.estimated.size if lab.collection.name != "ranges" else 1024
    p = shares_of(size)
    rng, entropy = np.random.default_rng(size), SeededEntropy(size)
    true = np.empty((windows, size))
    async with lab.producer() as producer:
        for window in range(windows):
            labels = rng.choice(size, devices, p=p)
            true[window] = np.bincount(labels, minlength=size) / devices
            for start in range(0, devices, FRAME):
                some = labels[start : start + FRAME]
                reports = spec.privatize(some, entropy=entropy)
                times_ms = np.full(some.size, START_MS + window * HOUR_MS)
                frame = spec.frame_reports(reports, times_ms=times_ms)
                await producer.send_and_wait(topic, frame)
    await lab.close(START_MS + windows * HOUR_MS)
    return true


def finals(lab: Lab, windows: int) -> list[dict[str, Any]]:
    """Return the published finals in order."""
    starts = [START_MS + window * HOUR_MS for window in range(windows)]
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        found = asyncio.run(lab.finals())
        if found.keys() >= set(starts):
            return [found[start][0] for start in starts]
        time.sleep(1.0)
    raise TimeoutError(f"{len(set(starts) - found.keys())} windows have no final")


def measured(documents: Sequence[dict[str, Any]], true: Floats, n: int) -> float:
    """Return n times the mean square error: the sum over values, or the mean of ranges."""
    if documents[0]["ranges"]:
        ends = [RANGES[one["name"]] for one in documents[0]["ranges"]]
        found = np.array([[one["share"] for one in doc["ranges"]] for doc in documents])
        exact = np.stack([true[:, a : b + 1].sum(axis=1) for a, b in ends], axis=1)
        return float(n * ((found - exact) ** 2).mean())
    found = np.zeros_like(true)
    for row, document in zip(found, documents, strict=True):
        entries = document["distribution"]
        row[[int(one["value"]) for one in entries]] = [one["share"] for one in entries]
    return float(n * ((found - true) ** 2).sum(axis=1).mean())


def predicted(lab: Lab, true: Floats) -> tuple[float, float]:
    """Return what `measured` expects, and the relative deviation of a single window from it.

    Errors are all but normal: their sum of squares deviates like quadratic forms of normal weights.
    """
    mechanism, domain = lab.collection.spec.mechanism, lab.collection.spec.domain
    queries, shares = np.eye(mechanism.size), true.mean(axis=0)
    ranges = lab.collection.name == "ranges"
    if ranges:
        atoms = domain.index([*range(1024)])
        shares = np.bincount(atoms, shares, domain.size)
        queries = np.zeros((len(RANGES), domain.size))
        for row, (first, last) in zip(queries, RANGES.values(), strict=True):
            row[atoms[first : last + 1]] = 1.0
    noise = [float(mechanism.decoder.noise(row) @ shares) for row in queries]
    normal = np.random.default_rng(1).normal(size=(FORMS, len(queries)))
    forms = np.array([mechanism.decoder.noise(row) @ shares for row in normal @ queries])
    expected = float(np.mean(noise) if ranges else np.sum(noise))
    return expected, float(forms.std() / forms.mean())


def main() -> int:
    """Print a row for each configuration."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy.groups_broker")
    parser.add_argument("--devices", type=int, default=DEVICES)
    parser.add_argument("--windows", type=int, default=20)
    parser.add_argument("--broker", choices=KINDS, default="kafka")
    given = parser.parse_args()
    print(f"{'':18} {'measured':>12} {'predicted':>12}  ratio chance  bytes")
    found, predictions, good = {}, {}, True
    with broker(given.broker) as running, tempfile.TemporaryDirectory() as folder:
        every = Lab(running, Path(folder), collections=tables())
        with every.worker():
            for name in every.config.collections:
                lab = every.of(name)
                true = asyncio.run(send(lab, given.windows, given.devices))
                documents = finals(lab, given.windows)
                good &= all(one["n"] == given.devices for one in documents)
                found[name] = measured(documents, true, given.devices)
                expected, deviation = predicted(lab, true)
                predictions[name] = expected
                ratio, chance = found[name] / expected, deviation / given.windows**0.5
                good &= abs(ratio - 1) <= 3.0 * chance
                size = lab.collection.spec.mechanism.report_bytes
                print(
                    f"{name:18} {found[name]:12.5g} {expected:12.5g} {ratio:6.3f} {chance:6.3f} "
                    f"{size:6}",
                    flush=True,
                )
    good &= predictions["blocks-of-budgets"] <= 0.3 * predictions["blocks-alike"]
    good &= predictions["ranges"] <= 3.6
    for epsilon in ("1", "2", "4"):
        factor = found[f"high-low-{epsilon}"] / found[f"groups-{epsilon}"]
        print(f"high-low over groups, epsilon {epsilon}: {factor:.2f}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

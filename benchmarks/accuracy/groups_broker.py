"""Variances of groups through a broker, from devices to published finals.

    python -m benchmarks.accuracy.groups_broker

In each of 20 windows 100,000 devices report. A worker publishes the share of every value, or of
every range, in the finals. A row has the sum of the variances of all values (the mean of those of
ranges) for one report, as measured around the true shares of the respondents, and as predicted:
1,000 values, of which 100 are sensitive and held by a fifth of the devices, with `groups` and with
`high-low`; four blocks of 16 values, of which one has the budget .5 and three have 2, and all .5;
three overlapping ranges of 1,024 values. With 20 windows a total of 64 values is measured to some
5%, that of three ranges to some 20%. Exit status 1 if a measured variance of `groups` is more than
5% off, if blocks with budgets of their own have more than .3 of the other's, or ranges more than
3.6.
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

from ldpstream.mechanisms import Domain

Floats = NDArray[np.float64]

DAY_MS: Final = 86_400_000
START_MS: Final = 20_000 * DAY_MS
HOUR_MS: Final = 3_600_000
DEVICES: Final = 100_000
FRAME: Final = 10_000
PATIENCE_SECONDS: Final = 600.0
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


def predicted(lab: Lab, true: Floats) -> float:
    """Return what `measured` expects."""
    mechanism, domain = lab.collection.spec.mechanism, lab.collection.spec.domain
    shares = true.mean(axis=0)
    if lab.collection.name == "ranges":
        return _of_ranges(lab, domain, shares)
    return sum(float(mechanism.decoder.noise(row) @ shares) for row in np.eye(mechanism.size))


def _of_ranges(lab: Lab, domain: Domain, shares: Floats) -> float:
    atoms = domain.index([*range(1024)])
    noise = [
        lab.collection.spec.mechanism.decoder.noise(
            np.bincount(atoms[a : b + 1], minlength=domain.size).clip(max=1).astype(float)
        )
        for a, b in RANGES.values()
    ]
    return float(np.mean([one @ np.bincount(atoms, shares, domain.size) for one in noise]))


def main() -> int:
    """Print a row for each configuration."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy.groups_broker")
    parser.add_argument("--devices", type=int, default=DEVICES)
    parser.add_argument("--windows", type=int, default=20)
    parser.add_argument("--broker", choices=KINDS, default="kafka")
    given = parser.parse_args()
    print(f"{'':18} {'measured':>12} {'predicted':>12}  ratio  bytes")
    found, good = {}, True
    with broker(given.broker) as running, tempfile.TemporaryDirectory() as folder:
        every = Lab(running, Path(folder), collections=tables())
        with every.worker():
            for name in every.config.collections:
                lab = every.of(name)
                true = asyncio.run(send(lab, given.windows, given.devices))
                documents = finals(lab, given.windows)
                good &= all(one["n"] == given.devices for one in documents)
                found[name] = measured(documents, true, given.devices)
                expected = predicted(lab, true)
                ratio = found[name] / expected
                good &= abs(ratio - 1) <= 0.05 or not name.startswith("groups")
                size = lab.collection.spec.mechanism.report_bytes
                print(
                    f"{name:18} {found[name]:12.5g} {expected:12.5g} {ratio:6.3f} {size:6}",
                    flush=True,
                )
    good &= found["blocks-of-budgets"] <= 0.3 * found["blocks-alike"] and found["ranges"] <= 3.6
    for epsilon in ("1", "2", "4"):
        factor = found[f"high-low-{epsilon}"] / found[f"groups-{epsilon}"]
        print(f"high-low over groups, epsilon {epsilon}: {factor:.2f}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

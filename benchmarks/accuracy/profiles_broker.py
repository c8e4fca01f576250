"""Quantiles of start times on Apache Kafka, from numbers to published finals.

    python -m benchmarks.accuracy.profiles_broker

For 64 to 512 bins of 50 ms, 200 windows of a quarter of an hour at each of three sizes: `ldpstream
send --times --replay` privatizes the numbers with `l1-geometric` (0.1 a bin) and produces them, a
worker publishes the median and the 95th percentile of each window as it becomes final, with bounds
of the population by `profile`. A row says how often the bounds of the finals hold the truth, and
how wide they are: compared with those of `padded`, and as a multiple of 4 root mean square errors
of the quantile (at least one bin). Exit status 1 if a final's n differs from the number of reports
sent, a coverage is below 0.92 or a width above 2.
"""

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from tests.brokers import KINDS, broker
from tests.lab import Lab
from tests.processes import Worker

from benchmarks.accuracy.profiles import BIN_SECONDS, PROBABILITIES, holds, start_times
from ldpstream.estimators.quantiles.quantiles import positions

Floats = NDArray[np.float64]

COMMAND: Final = [sys.executable, "-m", "ldpstream.agents.cli"]
QUARTER_MS: Final = 900_000
START_MS: Final = 1_287_000_000_000 // QUARTER_MS * QUARTER_MS
MOST_WIDTH, LEAST_COVERED, PATIENCE_SECONDS = 2.0, 0.92, 600.0


def body(size: int, domain: tuple[float, float], windows: int) -> str:
    """Return the configuration of a collection of start times with this many bins."""
    days = 1 + windows * QUARTER_MS // 86_400_000
    return f"""mechanism = "l1-geometric"
epsilon = 0.1
domain = {{ interval = {list(domain)}, bins = {size} }}
estimand = "population"
method = "profile"
partitions = 4
window = {{ size = "15m", grace = "15m", idle = "off", retention = "{days}d" }}
publish = {{ every = "5s", top = 0, quantiles = {list(PROBABILITIES)} }}
"""


def write_numbers(path: Path, size: int, n: int, windows: int, *, first_ms: int) -> None:
    """Write a line `time,number` for each start of each window, in order of time."""
    rng = np.random.default_rng(zlib.crc32(f"{size}/{n}".encode()))
    values = rng.choice(size, windows * n, p=start_times(size))
    times_ms = first_ms + np.arange(values.size) * QUARTER_MS // n
    numbers = (values + 0.5) * BIN_SECONDS
    with path.open("w") as file:
        for start in range(0, values.size, 100_000):
            rows = zip(
                times_ms[start : start + 100_000].tolist(),
                numbers[start : start + 100_000].tolist(),
                strict=True,
            )
            file.writelines(f"{time_ms},{number:.3f}\n" for time_ms, number in rows)


def command(*words: str | Path) -> None:
    """Run an ldpstream command."""
    subprocess.run([*COMMAND, *words], check=True, stdout=subprocess.PIPE)


def finals(lab: Lab, starts: list[int]) -> list[dict[str, Any]]:
    """Return the published finals of windows once all are there."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        found = asyncio.run(lab.finals())
        if found.keys() >= set(starts):
            return [found[start][0] for start in starts]
        time.sleep(2.0)
    missing = len(set(starts) - found.keys())
    raise TimeoutError(f"{missing} windows of {len(starts)} have no final")


def quantiles(document: dict[str, Any], key: str) -> Floats:
    """Return one field of every quantile, as the number of its bin."""
    return np.round([one[key][0] / BIN_SECONDS for one in document["quantiles"]])


def row(lab: Lab, worker: Worker, size: int, n: int, starts: list[int]) -> bool:
    """Print the row of some windows' finals; return whether all targets are met."""
    shares = start_times(size)
    published = finals(lab, starts)
    counted = sum(one["n"] for one in published)
    asked = f"/api/collections/{lab.collection.name}/estimate?top=0" + "".join(
        f"&quantile={one}" for one in PROBABILITIES
    )
    spans = [f"{asked}&start={start}&end={start + QUARTER_MS}" for start in starts]
    middle = np.array([quantiles(one, "value") for one in published])
    plain = [worker.get(f"{one}&method=padded") for one in spans]
    ends, usual = (
        np.array([[quantiles(one, "low"), quantiles(one, "high")] for one in documents])
        for documents in (published, plain)
    )
    covered = np.mean([holds(shares, one) for one in ends], axis=0)
    width, their_width = ((of[:, 1] - of[:, 0]).mean(axis=0) for of in (ends, usual))
    error = np.sqrt(((middle - positions(shares, PROBABILITIES)) ** 2).mean(axis=0))
    over = width / np.maximum(4.0 * error, 1.0)
    good = (
        counted == n * len(starts)
        and bool((covered >= LEAST_COVERED).all())
        and bool((over <= MOST_WIDTH).all())
    )
    print(
        f"{size:5}{n:8,}{counted:12,}  "
        + " ".join(
            f"{c:6.3f}{u:7.1f}{w:7.1f}{e:7.2f}{o:6.2f} "
            for c, u, w, e, o in zip(covered, their_width, width, error, over, strict=True)
        )
        + ("" if good else " <"),
        flush=True,
    )
    return good


def main() -> int:
    """Run the pipeline once for each number of bins, and print a row for each size of windows."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy.profiles_broker")
    parser.add_argument("--sizes", nargs="+", type=int, default=[64, 128, 256, 512])
    parser.add_argument("--n", nargs="+", type=int, default=[2_500, 7_800, 31_250])
    parser.add_argument("--windows", type=int, default=200, help="windows of each size")
    parser.add_argument("--broker", choices=KINDS, default="kafka")
    given = parser.parse_args()
    print(f" bins reports     counted  {'median: covered, padded, profile, error, over 4':38} p95")
    good = True
    with broker(given.broker) as running:
        for size in given.sizes:
            with tempfile.TemporaryDirectory() as folder:
                windows = len(given.n) * given.windows
                table = body(size, (0.0, size * BIN_SECONDS), windows)
                lab = Lab(running, Path(folder), collections={f"starts-{size}": table})
                with lab.worker() as worker:
                    first_ms, of = START_MS, {}
                    for n in given.n:
                        numbers = Path(folder, f"{n}.csv")
                        write_numbers(numbers, size, n, given.windows, first_ms=first_ms)
                        name = lab.collection.name
                        command("send", "-c", lab.file, name, "--times", "--replay", numbers)
                        of[n] = [first_ms + one * QUARTER_MS for one in range(given.windows)]
                        first_ms += given.windows * QUARTER_MS
                    command("close", "-c", lab.file, name, "--until", str(first_ms))
                    for n, starts in of.items():
                        good &= row(lab, worker, size, n, starts)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

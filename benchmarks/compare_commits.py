"""Compare this checkout with an earlier commit: `python -m benchmarks.compare_commits 5846c59`.

The two take turns, each with its own code and the same benchmark: reports per core second for
singles and frames, latencies with documents every 100 ms, the time until a worker
is ready, and an idle worker's memory and share of a core. Every other round this checkout goes
first, as a machine's speed drifts. Prints the best of all rounds, and the ratio; that of the client
alone (`getmany`) is not judged. Exits with 1 if speed falls below 0.9 of the commit's, or anything
else grows by a tenth.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table
from tests.checkouts import HERE, extract

LEAST_SPEED = 0.9
MOST_GROWTH = 1.1
# Run in a process of each checkout; every checkout has these parts.
_MEASURE = """
import asyncio, json, os, sys, tempfile, time
from pathlib import Path
from benchmarks.engine import latency, parts, speed
from tests.brokers import broker
from tests.lab import Lab
def cpu_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")

reports, seconds = int(sys.argv[1]), float(sys.argv[2])
found = {}
plan = speed.Plan(reports, 0, 1)
speed._faust = lambda *_: []
for size in (1, 1_000):
    for cost in parts.by_size("kafka", plan, size):
        if cost.reader in ("worker", "getmany"):
            kind = "client" if cost.reader == "getmany" else "speed"
            found[f"{kind}: {cost.reader}, {size:,} a message"] = cost.of_a_core
with broker("kafka") as running:
    for name, size, every in (("10 singles/s", 1, 0.1), ("500 singles/s", 1, 0.002)):
        with tempfile.TemporaryDirectory() as folder:
            lab = Lab(running, Path(folder), partitions=1)
            text = lab.file.read_text()
            lab.file.write_text(text.replace('every = "500ms"', 'every = "100ms"'))
            lab.reload()
            took = asyncio.run(latency.provisional(lab, size=size, every=every, seconds=seconds))
            found[f"seconds: median at {name}"] = sorted(took)[len(took) // 2]
    with tempfile.TemporaryDirectory() as folder:
        lab = Lab(running, Path(folder), partitions=4)
        started = time.monotonic()
        with lab.worker() as worker:
            found["seconds: until a worker is ready"] = time.monotonic() - started
            time.sleep(3)
            before = cpu_seconds(worker.process.pid)
            time.sleep(2 * seconds)
            spent = cpu_seconds(worker.process.pid) - before
            found["idle: share of a core, 4 partitions"] = spent / (2 * seconds)
            status = Path(f"/proc/{worker.process.pid}/status").read_text()
            found["idle: memory in MB"] = int(status.split("VmRSS:")[1].split()[0]) / 1_000
print(json.dumps(found))
"""


def main() -> int:
    """Measure both in turns, print the table, and exit with 1 on a regression."""
    parser = argparse.ArgumentParser(description="Compare with an earlier commit.")
    parser.add_argument("commit")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--reports", type=int, default=200_000)
    parser.add_argument("--seconds", type=float, default=8.0, help="of a load, for latency")
    given = parser.parse_args()
    found: dict[str, tuple[list[float], list[float]]] = {}
    with tempfile.TemporaryDirectory(prefix="ldpstream-compare-") as folder:
        checkouts = (extract(given.commit, Path(folder)), HERE)
        for number in range(given.rounds):
            for place in (0, 1) if number % 2 == 0 else (1, 0):
                figures = _measure(checkouts[place], given.reports, given.seconds)
                for name, figure in figures.items():
                    found.setdefault(name, ([], []))[place].append(figure)
    table = Table("what", given.commit, "now", "now / before")
    failed = False
    for name, (before, now) in found.items():
        client = name.startswith("client")
        speed = client or name.startswith("speed")
        best = max if speed else min
        ratio = best(now) / best(before)
        failed |= not client and (ratio < LEAST_SPEED if speed else ratio > MOST_GROWTH)
        unit = ",.0f" if speed else ".3f"
        table.add_row(name, f"{best(before):{unit}}", f"{best(now):{unit}}", f"{ratio:.2f}")
    Console(width=110).print(table)
    return int(failed)


def _measure(checkout: Path, reports: int, seconds: float) -> dict[str, float]:
    command = [sys.executable, "-c", _MEASURE, str(reports), str(seconds)]
    path = os.pathsep.join((str(checkout / "src"), str(checkout)))
    ran = subprocess.run(
        command,
        cwd=checkout,
        # With it, even empty, tests start workers as users do, instead of forking them.
        env={**os.environ, "PYTHONPATH": path, "LD_PRELOAD": ""},
        stdout=subprocess.PIPE,
        check=True,
    )
    figures: dict[str, float] = json.loads(ran.stdout.splitlines()[-1])
    return figures


if __name__ == "__main__":
    sys.exit(main())

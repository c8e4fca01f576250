"""The cost of a ledger on a device: `python -m benchmarks.speed.ledger [WINDOWS]` prints a table.

A fresh release is synced to disk before it is returned; it is compared with one SQLite transaction
with the same syncing and nothing else. A repeated one is read; it is compared with drawing again.
"""

import argparse
import sqlite3
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from ldpstream.mechanisms import CollectionSpec
from ldpstream.mechanisms.ledger import Ledger

_WINDOW_MS = 3_600_000
_TABLE = {
    "mechanism": "randomized-response",
    "epsilon": 0.5,
    "domain": {"values": ["bus", "train", "walk"]},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("windows", type=int, nargs="?", default=1_000)
    windows = parser.parse_args().windows
    spec = CollectionSpec.from_mapping("modes", _TABLE, base=Path())
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "ledger"
        specs = [(spec, _WINDOW_MS)]
        with Ledger(file, specs=specs, budget=windows, horizon_ms=None) as ledger:

            def release(window: int) -> None:
                ledger.release(spec, "bus", time_ms=window * _WINDOW_MS)

            fresh = _microseconds(windows, release)
            repeated = _microseconds(windows, release)
        size = file.stat().st_size / windows
        commit = _commits(Path(folder) / "peer", windows)
    drawn = _microseconds(windows, lambda _: spec.frame(["bus"]))
    print(f"{windows} windows, {size:.0f} bytes each")
    print("                      us    peer, us   ratio")
    for name, took, peer in (("fresh, synced", fresh, commit), ("repeated", repeated, drawn)):
        print(f"{name:<14}{took:>10.0f}{peer:>12.0f}{took / peer:>8.1f}")


def _microseconds(times: int, step: Callable[[int], object]) -> float:
    start = time.perf_counter()
    for number in range(times):
        step(number)
    return 1e6 * (time.perf_counter() - start) / times


def _commits(file: Path, times: int) -> float:
    database = sqlite3.connect(file, isolation_level=None)
    database.execute("PRAGMA synchronous = EXTRA")
    database.execute("CREATE TABLE peer (number INTEGER PRIMARY KEY, report BLOB)")

    def commit(number: int) -> None:
        database.execute("BEGIN IMMEDIATE")
        database.execute("INSERT INTO peer VALUES (?, ?)", (number, b"x"))
        database.execute("COMMIT")

    took = _microseconds(times, commit)
    database.close()
    return took


if __name__ == "__main__":
    main()

"""Gowalla's check-ins through the whole pipeline: `python -m benchmarks.papers.gowalla PATH`.

PATH is an .npz file whose `counts`, integer (125, 350), hold the check-ins of each cell. Every
check-in becomes a value line; `ldpstream send` privatizes them with block-hadamard at epsilon = 1
and produces the reports, a broker carries them, `ldpstream worker` counts them, `ldpstream close`
ends the window and `ldpstream query` asks for it, once for each partition of the grid into blocks.
The table compares the window's n with the number sent, and the total-variation distance of the
projected estimates with Table 1 of Acharya et al. 2020 (whose grid is not public: on a
reconstructed, sparser one errors come out 11 to 14% smaller).
"""

import argparse
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from tests.brokers import KINDS, Broker, broker

from benchmarks.papers.distance import total_variation
from benchmarks.papers.gowalla_offline import PUBLISHED, block_size, load

START_MS = 1_277_942_400_000
"""2010-07-01T00:00:00Z: the check-ins are spread over the hour that follows."""
HOUR_MS = 3_600_000
READY_SECONDS = 60.0
COMMAND = [sys.executable, "-m", "ldpstream.agents.cli"]


def name(blocks: tuple[int, int]) -> str:
    """Return a collection's name."""
    return f"checkins-{blocks[0]}x{blocks[1]}"


def configuration(kafka: Broker, shape: tuple[int, int]) -> str:
    """Return a configuration with one collection for each partition of the grid."""
    lines = ["[kafka]", f'bootstrap = "{kafka.bootstrap}"']
    lines += [f"{key} = {json.dumps(value)}" for key, value in kafka.options.items()]
    lines += ["[worker]", 'http = "127.0.0.1:0"']
    for blocks in PUBLISHED:
        size = list(block_size(shape, blocks))
        lines += [
            f"[collection.{name(blocks)}]",
            'mechanism = "block-hadamard"',
            "epsilon = 1.0",
            f"domain = {{ grid = {list(shape)}, blocks = {size} }}",
            "partitions = 4",
            'window = { size = "1h", idle = "off" }',
            'publish = { every = "5s", top = 20 }',
        ]
    return "\n".join(lines)


def write_values(counts: NDArray[np.int64], path: Path) -> None:
    """Write a line `time,row,column` for every check-in, in random order."""
    cells = np.repeat(np.arange(counts.size), counts.ravel())
    np.random.default_rng(1).shuffle(cells)
    times = START_MS + np.arange(cells.size) * HOUR_MS // cells.size
    rows, columns = np.divmod(cells, counts.shape[1])
    np.savetxt(path, np.column_stack([times, rows, columns]), fmt="%d", delimiter=",")


@contextmanager
def worker(file: Path) -> Iterator[str]:
    """Run a worker; yields its URL."""
    process = subprocess.Popen([*COMMAND, "worker", "-c", file], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        select.select([process.stdout], [], [], READY_SECONDS)
        yield process.stdout.readline().split()[1]
    finally:
        process.terminate()
        process.wait()


def command(*words: str | Path) -> str:
    """Run an ldpstream command and return what it prints on standard output."""
    return subprocess.run([*COMMAND, *words], check=True, stdout=subprocess.PIPE, text=True).stdout


def final(url: str, collection: str, project: str, *, seconds: float = 300.0) -> dict[str, Any]:
    """Return the document of the only window once it is final."""
    deadline = time.monotonic() + seconds
    asked = ("--all", "--top", "all", "--project", project, "--json")
    while time.monotonic() < deadline:
        (document,) = json.loads(command("query", url, collection, *asked))["windows"] or [{}]
        if document.get("final"):
            return dict(document)
        time.sleep(0.5)
    raise TimeoutError(f"{collection} has no final window after {seconds} s")


def shares(document: dict[str, Any], shape: tuple[int, int]) -> NDArray[np.float64]:
    """Return the shares of all cells in order, float64 of shape `(cells,)`."""
    found = np.zeros(shape)
    for entry in document["distribution"]:
        found[tuple(entry["value"])] = entry["share"]
    return found.ravel()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.papers.gowalla")
    parser.add_argument("path", type=Path, help="an .npz file with the array counts (125, 350)")
    parser.add_argument("--broker", choices=KINDS, default="embedded")
    asked = parser.parse_args()
    counts = load(asked.path)
    shape = (counts.shape[0], counts.shape[1])
    truth = counts.ravel() / counts.sum()
    table = Table("blocks", "sent", "window n", "TV simplex", "TV blocks", "Table 1", "send s")
    with tempfile.TemporaryDirectory() as folder, broker(asked.broker) as kafka:
        values, file = Path(folder, "values.csv"), Path(folder, "ldpstream.toml")
        write_values(counts, values)
        file.write_text(configuration(kafka, shape))
        with worker(file) as url:
            for blocks, published in PUBLISHED.items():
                collection, begin = name(blocks), time.monotonic()
                command("send", "-c", file, collection, "--times", "--replay", values)
                sent_seconds = time.monotonic() - begin
                command("close", "-c", file, collection, "--until", str(START_MS + HOUR_MS))
                simplex, inside = (final(url, collection, p) for p in ("simplex", "blocks"))
                table.add_row(
                    str(blocks),
                    f"{counts.sum():,}",
                    f"{simplex['n']:,}",
                    f"{total_variation(shares(simplex, shape), truth):.3f}",
                    f"{total_variation(shares(inside, shape), truth):.3f}",
                    f"{published:.3f}",
                    f"{sent_seconds:.1f}",
                )
    Console(width=max(80, int(os.environ.get("COLUMNS", "100")))).print(table)


if __name__ == "__main__":
    main()

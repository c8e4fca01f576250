"""How long estimates take: `python -m benchmarks.speed.estimates`.

The (125, 350) grid of Gowalla's check-ins with the blocks of the paper, and lines of ordered
values for quantiles. Times are medians; one process, one core.

Last, a comparison with pure-LDP and multi-freq-ldpy on the same reports: root mean square errors
and milliseconds from reports to all estimates, least processor time. They live in an environment of
their own, as `benchmarks.engine` says; `--ldp-python` is its Python; without it they are left out.
"""

import argparse
import json
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.seeded import SeededEntropy

from benchmarks.accuracy.simulate import zipf
from ldpstream.estimators.estimate import estimate_sets, estimate_values
from ldpstream.estimators.power_law import project_power
from ldpstream.estimators.projection import known_totals, project_blocks, project_simplex
from ldpstream.estimators.quantiles.prefixes import Prefixes
from ldpstream.estimators.quantiles.quantiles import estimate_quantiles
from ldpstream.estimators.queries import range_values
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.families.block.hadamard import BlockHadamard
from ldpstream.mechanisms.families.design.randomized_response import RandomizedResponse
from ldpstream.mechanisms.families.subset.selection import SubsetSelection
from ldpstream.mechanisms.interface.mechanism import Mechanism

GRID = (125, 350)
REPORTS = 3_674_215


def grid_blocks(height: int, width: int, *, shape: tuple[int, int] = GRID) -> Blocks:
    """Cut a grid into blocks of `height` rows and `width` columns, ragged at the far edges."""
    rows, columns = np.indices(shape)
    return Blocks((rows // height * -(-shape[1] // width) + columns // width).ravel())


def median_ms(call: Callable[[], object], repetitions: int) -> float:
    """Return the median time of a call in milliseconds, after one call that does not count."""
    call()
    times = []
    for _ in range(repetitions):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return 1e3 * float(np.median(times))


def grid_table() -> None:
    """Print times for all values of the grid, and for the other parts of documents."""
    print(f"{GRID[0] * GRID[1]:,} values of a {GRID} grid, {REPORTS:,} reports; milliseconds")
    print("blocks      normal  bernstein  one range  simplex  per block")
    place = [range_values(GRID, [(40, 60), (100, 120)])]
    rng = np.random.default_rng(1)
    for height, width in ((5, 5), (5, 10), (25, 35), (25, 50), GRID):
        mechanism = BlockHadamard(1.0, grid_blocks(height, width))
        outputs = mechanism.outputs
        statistic = rng.multinomial(REPORTS, np.full(outputs, 1.0 / outputs))
        values = estimate_values(mechanism, statistic, REPORTS).value
        groups, totals = known_totals(mechanism, statistic, REPORTS)
        asked = (mechanism, statistic, REPORTS)
        calls: list[Callable[[], object]] = [
            partial(estimate_values, *asked),
            partial(estimate_values, *asked, method="bernstein"),
            partial(estimate_sets, *asked, place),
            partial(project_simplex, values),
            partial(project_blocks, values, groups, totals),
        ]
        times = [median_ms(call, 15) for call in calls]
        cells = "{:8.1f}  {:9.1f}  {:9.1f}  {:7.1f}  {:9.1f}".format(*times)
        print(f"{f'{height} x {width}':9}" + cells)


def line_table() -> None:
    """Print times for quantiles: of preparing a mechanism once, and of each document."""
    print("\nQuantiles of an ordered line; milliseconds")
    print("values  block  preparing  two quantiles")
    rng = np.random.default_rng(2)
    for size, block in ((64, 64), (1000, 1000), (4096, 4096), (43_750, 100)):
        mechanism = BlockHadamard(1.0, Blocks(np.arange(size) // block))
        outputs = mechanism.outputs
        statistic = rng.multinomial(REPORTS, np.full(outputs, 1.0 / outputs))
        prefixes = Prefixes.of(mechanism)
        preparing = median_ms(partial(Prefixes.of, mechanism), 1)
        ask = partial(estimate_quantiles, mechanism, statistic, REPORTS, [0.5, 0.9])
        asking = median_ms(partial(ask, prefixes=prefixes), 3)
        print(f"{size:6}  {block:5}  {preparing:9.1f}  {asking:13.1f}")


Floats = NDArray[np.float64]
VALUES, EPSILON, DEVICES, WINDOWS = 200, 1.0, 20_000, 5
_PEERS = Path(__file__).with_name("estimate_peers.py")


def ours(mechanism: Mechanism, name: str, payload: NDArray[np.uint8]) -> Floats:
    """Return the estimates from encoded reports: unbiased, with bounds, or projected."""
    statistic = mechanism.empty()
    reports, good = mechanism.decode(payload)
    mechanism.accumulate(statistic, reports[good])
    n = len(payload)
    if name == "unbiased":
        return mechanism.decoder.totals(statistic) / n
    values = estimate_values(mechanism, statistic, n).value
    if name == "unbiased, with bounds":
        return values
    if name == "simplex":
        return project_simplex(values)
    return project_power(mechanism, statistic, n, values)


def peer_table(ldp_python: str) -> None:
    """Print errors and times of all libraries on the same reports, which ours draws."""
    print(f"\n{VALUES} values, Zipf, {DEVICES:,} reports, epsilon {EPSILON:g}, {WINDOWS} windows\n")
    print("| protocol | library | estimate | ms | error |\n| --- | --- | --- | ---: | ---: |")
    rng = np.random.default_rng(1)
    counts = rng.multinomial(DEVICES, zipf(VALUES), WINDOWS)
    given: dict[str, Any] = {"shares": counts / DEVICES}
    rows: list[list[Any]] = []
    for kind in (RandomizedResponse, BlockHadamard, SubsetSelection):
        mechanism = kind(EPSILON, Blocks.one(VALUES))
        drawn = [
            mechanism.privatize(np.repeat(np.arange(VALUES), row), entropy=SeededEntropy(seed))
            for seed, row in enumerate(counts)
        ]
        payloads = [mechanism.encode(reports) for reports in drawn]
        if isinstance(mechanism, SubsetSelection):
            taken = np.unpackbits(np.stack(drawn), axis=2, bitorder="little")[..., :VALUES]
            given[mechanism.id] = np.nonzero(taken)[2].reshape(WINDOWS, DEVICES, -1)
        else:
            given[mechanism.id] = np.stack(drawn)
        for name in ("unbiased", "unbiased, with bounds", "simplex", "power"):
            seconds, errors = [], []
            for payload, shares in zip(payloads, given["shares"], strict=True):
                begun = time.process_time()
                found = ours(mechanism, name, payload)
                seconds.append(time.process_time() - begun)
                errors.append(np.mean((found - shares) ** 2))
            row = ["ldpstream", mechanism.id, name, 1e3 * min(seconds), np.sqrt(np.mean(errors))]
            rows.append(row)
    if ldp_python:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "reports.npz"
            np.savez(file, **given)
            command = [ldp_python, str(_PEERS), str(file), str(VALUES), str(EPSILON)]
            ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        rows += [json.loads(line) for line in ended.stdout.splitlines()]
    for library, protocol, name, ms, error in sorted(rows, key=lambda row: row[1]):
        print(f"| `{protocol}` | {library} | {name} | {ms:,.1f} | {error:.5f} |")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.speed.estimates", description=__doc__
    )
    parser.add_argument("--ldp-python", default="/tmp/bench-ldp/bin/python")
    parser.add_argument("--only", choices=TABLES, help="one of the tables")
    asked = parser.parse_args()
    for name in [asked.only] if asked.only else TABLES:
        TABLES[name](asked.ldp_python)


TABLES: dict[str, Callable[[str], None]] = {
    "grid": lambda _: grid_table(),
    "line": lambda _: line_table(),
    "peers": peer_table,
}


if __name__ == "__main__":
    main()

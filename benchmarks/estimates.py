"""How long estimates take: `python -m benchmarks.estimates`.

The (125, 350) grid of Gowalla's check-ins with the blocks of the paper, and lines of ordered
values for quantiles. Times are medians; one process, one core.
"""

import time
from collections.abc import Callable
from functools import partial

import numpy as np

from ldpstream.estimators.bounds.projection import project_blocks, project_simplex
from ldpstream.estimators.estimate import estimate_sets, estimate_values
from ldpstream.estimators.quantiles.prefixes import Prefixes
from ldpstream.estimators.quantiles.quantiles import estimate_quantiles
from ldpstream.estimators.queries.groups import known_totals
from ldpstream.estimators.queries.ranges import range_values
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.families.block.hadamard import BlockHadamard

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
    """Print times for all values of the grid, and for what documents hold besides."""
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
    """Print times for quantiles: preparing a mechanism once, then each document."""
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


def main() -> None:
    """Print both tables."""
    grid_table()
    line_table()


if __name__ == "__main__":
    main()

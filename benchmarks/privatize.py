"""How fast a device privatizes: `python -m benchmarks.privatize`.

A million values at a time, on the (125, 350) grid with blocks of (25, 35) and on two values; and
one value at a time into a message. Times are the best of several; one process, one core.
"""

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ldpstream.mechanisms import CollectionSpec, Entropy, SeededEntropy, SystemEntropy
from ldpstream.mechanisms.binary import Binary
from ldpstream.mechanisms.block_hadamard import BlockHadamard
from ldpstream.mechanisms.blocks import box_blocks
from ldpstream.mechanisms.high_low import HighLow

GRID, BLOCK = (125, 350), (25, 35)
VALUES = 1_000_000
SINGLES = 2_000
TABLE: dict[str, object] = {
    "mechanism": "block-hadamard",
    "epsilon": 1.0,
    "domain": {"grid": list(GRID), "blocks": list(BLOCK)},
}


def best_seconds(call: Callable[[], object], repetitions: int = 7) -> float:
    """Return the shortest time of a call in seconds."""
    times = []
    for _ in range(repetitions):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    """Print values a second for each mechanism and source of entropy, and a message's time."""
    cells = GRID[0] * GRID[1]
    sources: dict[str, Entropy] = {"seeded": SeededEntropy(1), "system": SystemEntropy()}
    mechanisms = (
        BlockHadamard(1.0, box_blocks(GRID, BLOCK, "blocks")),
        HighLow(1.0, cells, frozenset(range(0, cells, 7))),
        Binary(1.0, 1.0),
    )
    print(f"{'mechanism':16}{'values':>8}{'entropy':>9}{'M values/s':>12}")
    for mechanism in mechanisms:
        values = np.random.default_rng(1).integers(0, mechanism.size, VALUES)
        for name, entropy in sources.items():

            def run(
                mechanism: BlockHadamard | HighLow | Binary = mechanism,
                values: np.ndarray = values,
                entropy: Entropy = entropy,
            ) -> None:
                mechanism.privatize(values, entropy=entropy)

            rate = VALUES / best_seconds(run) / 1e6
            print(f"{mechanism.id:16}{mechanism.size:8}{name:>9}{rate:12.1f}")
    spec = CollectionSpec.from_mapping("checkins", TABLE, base=Path())

    def messages() -> None:
        for _ in range(SINGLES):
            spec.frame([[60, 120]])

    microseconds = best_seconds(messages) / SINGLES * 1e6
    print(f"one value into one message, system entropy: {microseconds:.1f} us")


if __name__ == "__main__":
    main()

"""How fast a device privatizes: `python -m benchmarks.speed.privatize`.

A million values at a time: on the (125, 350) grid with blocks of (25, 35), on two values, and for
`l1-geometric` on the grid and on a line with a tiny epsilon; and one value at a time into a
message (with `lip` a value and its prior). Times are the best of several; one process, one core.
"""

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from tests.seeded import SeededEntropy

from ldpstream.mechanisms import CollectionSpec, Entropy, SystemEntropy
from ldpstream.mechanisms.domains.blocks import Blocks, box_blocks
from ldpstream.mechanisms.families.binary import Binary
from ldpstream.mechanisms.families.block.hadamard import BlockHadamard
from ldpstream.mechanisms.families.design.projective_geometry import ProjectiveGeometry
from ldpstream.mechanisms.families.design.randomized_response import RandomizedResponse
from ldpstream.mechanisms.families.high_low import HighLow
from ldpstream.mechanisms.families.l1.geometric import L1Geometric
from ldpstream.mechanisms.interface.mechanism import Mechanism

GRID, BLOCK = (125, 350), (25, 35)
LINE = 65_536
VALUES = 1_000_000
SINGLES = 2_000
CELL: list[object] = [60, 120]
MESSAGES: dict[str, tuple[dict[str, object], list[object]]] = {
    "block-hadamard": ({"domain": {"grid": list(GRID), "blocks": list(BLOCK)}}, CELL),
    "randomized-response": ({"domain": {"grid": list(GRID)}}, CELL),
    "projective-geometry": ({"domain": {"grid": list(GRID)}}, CELL),
    "subset-selection": ({"domain": {"grid": list(GRID), "blocks": list(BLOCK)}}, CELL),
    "l1-geometric": ({"domain": {"grid": list(GRID)}}, CELL),
    "lip": ({"domain": {"values": ["no", "yes"]}, "prior": {"levels": 64}}, ["yes", 0.3]),
}
"""For each mechanism, the keys of a collection and the label of one value."""


def best_seconds(call: Callable[[], object]) -> float:
    """Return the shortest time of a call in seconds."""
    times = []
    for _ in range(7):
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
        RandomizedResponse(1.0, Blocks.one(cells)),
        ProjectiveGeometry(1.0, Blocks.one(cells)),
        L1Geometric(1.0, GRID),
        L1Geometric(1e-5, (LINE,)),
    )
    print(f"{'mechanism':20}{'values':>8}{'entropy':>9}{'M values/s':>12}")
    for mechanism in mechanisms:
        values = np.random.default_rng(1).integers(0, mechanism.size, VALUES)
        for name, entropy in sources.items():

            def run(
                mechanism: Mechanism = mechanism,
                values: np.ndarray = values,
                entropy: Entropy = entropy,
            ) -> None:
                mechanism.privatize(values, entropy=entropy)

            rate = VALUES / best_seconds(run) / 1e6
            print(f"{mechanism.id:20}{mechanism.size:8}{name:>9}{rate:12.1f}")
    for mechanism_id, (keys, label) in MESSAGES.items():
        table = {"mechanism": mechanism_id, "epsilon": 1.0, **keys}
        spec = CollectionSpec.from_mapping("checkins", table, base=Path())

        def messages(spec: CollectionSpec = spec, label: list[object] = label) -> None:
            for _ in range(SINGLES):
                spec.frame([label])

        microseconds = best_seconds(messages) / SINGLES * 1e6
        print(f"{mechanism_id}: one value into one message, system entropy: {microseconds:.1f} us")


if __name__ == "__main__":
    main()

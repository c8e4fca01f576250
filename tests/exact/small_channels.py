"""Channels small enough to compute by hand, and statistics of their reports."""

import numpy as np

from tests.exact.dense import Dense, block_channel

WARNER = Dense(np.array([[2.0, 1.0], [1.0, 2.0]]) / 3.0)
BLOCKS = block_channel(7, (2, 1, 3))


def block_statistic(counts: tuple[int, int, int], seed: int = 0) -> np.ndarray:
    """A statistic with these numbers of reports from the three blocks of BLOCKS."""
    rng = np.random.default_rng(seed)
    statistic = np.zeros(BLOCKS.outputs, dtype=np.int64)
    for block, count in enumerate(counts):
        places = np.flatnonzero(BLOCKS.groups[1] == block)
        np.add.at(statistic, rng.choice(places, count), 1)
    return statistic

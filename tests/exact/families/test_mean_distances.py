"""Bounds on the distances of [CA]'s mechanisms, against expectations by enumeration."""

import itertools
import math

import numpy as np
import pytest

from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.families.block.hadamard import BlockHadamard
from ldpstream.mechanisms.families.high_low import HighLow
from ldpstream.mechanisms.interface.mechanism import Mechanism
from tests.exact.enumeration import rows_of

EPSILONS = pytest.mark.parametrize("epsilon", [0.2, 1.0, 4.0])


def expected_distances(mechanism: Mechanism, shares: np.ndarray, n: int) -> tuple[float, float]:
    """Return E[TV] and E[l2^2] of a population's estimates, over all n reports."""
    reports = shares @ np.array(rows_of(mechanism), dtype=np.float64)
    decoder = mechanism.decoder
    decoded = np.stack([decoder.decode(weights) for weights in np.eye(mechanism.size)])
    drawn = np.array(list(itertools.product(range(len(reports)), repeat=n)))
    errors = decoded[:, drawn].mean(axis=2) - shares[:, None]
    chances = reports[drawn].prod(axis=1)
    assert chances.sum() == pytest.approx(1.0)
    return float(np.abs(errors).sum(axis=0) @ chances / 2), float((errors**2).sum(axis=0) @ chances)


def populations(size: int) -> list[np.ndarray]:
    rising = np.arange(1.0, size + 1)
    return [np.full(size, 1 / size), rising / rising.sum(), np.eye(size)[0], np.eye(size)[-1]]


@pytest.mark.parametrize("n", [1, 2, 4])
@EPSILONS
def test_distances_of_blocks_are_within_their_bound(epsilon: float, n: int):
    blocks = Blocks(np.array([0, 0, 1, 1, 1]))
    mechanism = BlockHadamard(epsilon, blocks)
    c = WORD / (2 * mechanism.threshold - WORD)
    sizes = blocks.sizes.astype(float)
    for shares in populations(5):
        distance, squared = expected_distances(mechanism, shares, n)
        in_blocks = np.bincount(blocks.of_value, weights=shares)
        exact = (c**2 * sizes @ in_blocks - shares @ shares) / n
        assert squared == pytest.approx(exact, rel=1e-9)
        assert squared <= 12 * sizes.max() * c**2 / n
        printed = 2 * c * math.sqrt(3 * sizes @ sizes / n)
        tighter = c / 2 * math.sqrt(sizes @ sizes / n)
        assert distance <= tighter < printed
        assert printed / tighter == pytest.approx(7, abs=0.1)


@pytest.mark.parametrize("n", [1, 2, 4])
@EPSILONS
def test_distances_of_high_low_are_within_their_bound(epsilon: float, n: int):
    """[CA] prove it for l1 = 2 TV, so half of it holds for TV."""
    mechanism = HighLow(epsilon, 6, frozenset({1, 4}))
    c = WORD / (2 * mechanism.threshold - WORD)
    for shares in populations(6):
        distance, _ = expected_distances(mechanism, shares, n)
        assert distance <= (math.sqrt(3 * 2**2 * c**2 / n) + math.sqrt(c * 6 / n)) / 2

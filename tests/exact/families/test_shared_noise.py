"""How much of their noise reports of one permanent draw share: `hold` randomised again."""

import numpy as np
import pytest

from ldpstream.estimators.bounds.options import sampling_of
from ldpstream.estimators.estimate import estimate_values
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.families.block.hadamard import BlockHadamard
from ldpstream.mechanisms.families.block.mechanism import BlockSymbols
from ldpstream.mechanisms.families.design.mechanism import RandomizedResponse
from ldpstream.mechanisms.families.design.projective_geometry import ProjectiveGeometry
from ldpstream.mechanisms.families.tree.tree import Tree
from tests.seeded import SeededEntropy

UNEQUAL = Blocks(np.array([0, 0, 0, 1, 2, 2, 0]))
MECHANISMS: dict[str, tuple[BlockSymbols, float]] = {
    "two": (RandomizedResponse(1.0, Blocks.one(2)), 0.1058),
    "response": (RandomizedResponse(1.0, Blocks.one(12)), 0.106),
    "blocks": (RandomizedResponse(1.0, UNEQUAL), 0.0),
    "hadamard": (BlockHadamard(1.0, Blocks.one(12)), 0.0),
    "hadamard blocks": (BlockHadamard(1.0, UNEQUAL), 0.0),
    "points": (ProjectiveGeometry(1.0, Blocks.one(20)), 0.0),
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_no_query_shares_more_noise_than_the_bound(name: str):
    """By enumeration: the covariance of two reports of a draw over the variance of one."""
    mechanism, known = MECHANISMS[name]
    permanent, chain = mechanism.chain(2.5)
    once, drawn = mechanism.table, permanent.table
    assert once is not None
    assert drawn is not None
    # M of each report, from the chain's own probabilities.
    size = once.shape[1]
    again = np.zeros((size, size))
    for start, order in zip(chain.starts.tolist(), chain.orders.tolist(), strict=True):
        keep = float(chain.keep(order))
        block = slice(start, start + order)
        again[block, block] = keep * np.eye(order) + (1.0 - keep) / order
    assert drawn @ again == pytest.approx(once, abs=1e-12)
    rng = np.random.default_rng(1)
    queries = [*np.eye(mechanism.size), *rng.normal(size=(50, mechanism.size))]
    worst = 0.0
    for weights in queries:
        decoded = mechanism.decoder.decode(weights)
        noise = once @ decoded**2 - (once @ decoded) ** 2
        common = drawn @ (again @ decoded) ** 2 - (drawn @ (again @ decoded)) ** 2
        noisy = noise > 1e-9
        worst = max(worst, float((common[noisy] / noise[noisy]).max(initial=0.0)))
    assert known <= worst + 5e-4
    assert worst <= chain.shared_noise * (1.0 + 1e-9)
    assert chain.shared_noise < 0.4


def test_levels_of_a_tree_and_repeated_reports_share_all_of_it():
    _, chain = Tree(1.0, Blocks.one(8)).chain(2.5)
    assert chain.shared_noise == 1.0
    assert sampling_of(0, 4, windows=None, held=4).noise == 4.0
    assert sampling_of(0, 9, windows=None, held=4, shared=0.25).noise == 1.75
    assert sampling_of(0, 1, windows=None, held=4, shared=0.25).noise == 1.0


def test_bounds_of_a_span_cover_and_are_narrower():
    """300 devices, 4 windows of one draw: at least .93 of 400 spans, .905 without any rule.

    If the coverage is 0.95, fewer than 0.885 of 400 has the probability 4e-8, for 12 values at most
    5e-7.
    """
    mechanism = RandomizedResponse(1.0, Blocks.one(12))
    permanent, chain = mechanism.chain(2.5)
    counts = np.arange(12, 0, -1) * 300 // 78
    counts[0] += 300 - counts.sum()
    values, entropy, spans = np.repeat(np.arange(12), counts), SeededEntropy(11), 400
    drawn = permanent.randomise(np.tile(values, spans), entropy)
    again = chain.again(np.tile(drawn, 4), entropy).reshape(4, spans, 300)
    hits, narrow, wide = np.zeros(12), 0.0, 0.0
    sampling = sampling_of(0, 4, windows=None, held=4, shared=chain.shared_noise)
    fully = sampling_of(0, 4, windows=None, held=4)
    for span in range(spans):
        statistic = np.bincount(again[:, span].ravel(), minlength=12)
        found = estimate_values(mechanism, statistic, 1200, sampling=sampling)
        hits += (found.low <= counts / 300) & (counts / 300 <= found.high)
        if span < 20:
            whole = estimate_values(mechanism, statistic, 1200, sampling=fully)
            narrow += float((found.high - found.low).mean())
            wide += float((whole.high - whole.low).mean())
    assert (hits / spans).min() >= 0.885
    assert narrow < 0.75 * wide

"""How much of their noise reports of one permanent draw share: `hold` randomised again."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from ldpstream.estimators.bounds.options import sampling_of
from ldpstream.estimators.estimate import estimate_values
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.families.binary import Binary
from ldpstream.mechanisms.families.block.hadamard import BlockHadamard
from ldpstream.mechanisms.families.design.mechanism import RandomizedResponse
from ldpstream.mechanisms.families.design.projective_geometry import ProjectiveGeometry
from ldpstream.mechanisms.families.groups.designs import GroupDesign
from ldpstream.mechanisms.families.groups.high_low import HighLow
from ldpstream.mechanisms.families.groups.mechanism import sensitive_groups
from ldpstream.mechanisms.families.l1.bits import L1Bits
from ldpstream.mechanisms.families.l1.geometric import L1Geometric
from ldpstream.mechanisms.families.subset.selection import SubsetSelection
from ldpstream.mechanisms.families.tree.tree import Tree
from ldpstream.mechanisms.interface.mechanism import Mechanism
from tests.exact.enumeration import matrix_of
from tests.exact.held import FAMILIES, again, held, matrix
from tests.exact.ledger.test_hold_losses import BLOCKS
from tests.seeded import SeededEntropy

SENSITIVE = frozenset(range(5))
MECHANISMS: dict[str, Callable[[float], Mechanism]] = {
    "response": lambda e: RandomizedResponse(e, Blocks.one(12)),
    "hadamard": lambda e: BlockHadamard(e, Blocks.one(12)),
    "points": lambda e: ProjectiveGeometry(e, Blocks.one(20)),
    "subsets": lambda e: SubsetSelection(e, Blocks.one(12)),
    "tree": lambda e: Tree(e, Blocks.one(12)),
    "high-low": lambda e: HighLow(e, 12, SENSITIVE),
    "groups": lambda e: sensitive_groups(e, 12, SENSITIVE, GroupDesign(5, chosen=2)),
    "binary": lambda e: Binary(e, e),
    "steps": lambda e: L1Geometric(e / 4.0, (12,)),
    "bits": lambda e: L1Bits(e, (12,)),
}


def shared(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Return the largest part of its variance, of any function of a report, that the draw decides.

    The functions are orthogonal under what a value sends, so that the second largest singular value
    belongs to them; the largest belongs to constants.
    """
    worst = 0.0
    for drawn in first:
        sent = drawn @ second
        inside, possible = drawn > 0, sent > 0
        joint = second[np.ix_(inside, possible)] * np.sqrt(drawn[inside])[:, None]
        values = np.linalg.svd(joint / np.sqrt(sent[possible]), compute_uv=False)
        worst = max(worst, float(values[1]) ** 2 if values.size > 1 else 0.0)
    return worst


@pytest.mark.parametrize("mechanism", [name for name in FAMILIES if name != "tree"])
@pytest.mark.parametrize("blocks", [False, True])
def test_no_function_of_a_report_shares_more_noise_than_the_bound(mechanism: str, blocks: bool):
    spec = held(mechanism, domain=BLOCKS[mechanism] if blocks else None)
    first, second = np.array(matrix(spec, permanent=True), float), np.array(again(spec), float)
    worst = shared(first, second)
    assert worst <= spec.hold.chain.shared_noise * (1.0 + 1e-9)
    assert worst >= 0.3 * spec.hold.chain.shared_noise


@pytest.mark.parametrize("blocks", [False, True])
def test_no_query_of_a_tree_shares_more_noise_than_the_bound(blocks: bool):
    """The level is kept, so that it is true of decoders alone: they have one mean on all levels."""
    spec = held("tree", domain=BLOCKS["tree"] if blocks else None)
    first, second = np.array(matrix(spec, permanent=True), float), np.array(again(spec), float)
    size, once, worst = spec.mechanism.size, first @ second, 0.0
    rng = np.random.default_rng(1)
    for weights in [*np.eye(size), *np.tri(size), *rng.normal(size=(50, size))]:
        decoded = spec.mechanism.decoder.decode(weights)
        starts, orders = spec.mechanism.layout.levels()
        block = np.repeat(np.arange(starts.size), orders)
        for own in range(size):
            means = [decoded[block == one].mean() for one in np.unique(block[once[own] > 0])]
            assert means == pytest.approx([means[0]] * len(means), abs=1e-9)
        noise = once @ decoded**2 - (once @ decoded) ** 2
        common = first @ (second @ decoded) ** 2 - (once @ decoded) ** 2
        noisy = noise > 1e-9
        worst = max(worst, float((common[noisy] / noise[noisy]).max(initial=0.0)))
    assert 0.3 * spec.hold.chain.shared_noise <= worst
    assert worst <= spec.hold.chain.shared_noise * (1.0 + 1e-9)


@pytest.mark.parametrize(("length", "epsilon"), [(2, 1.0), (30, 1.0), (30, 0.1), (60, 0.05)])
def test_steps_share_no_more_at_any_length(length: int, epsilon: float):
    once = L1Geometric(epsilon, (length,))
    permanent, chain = once.chain(2.5 * epsilon)
    first = matrix_of(permanent)
    worst = shared(first, np.linalg.solve(first, matrix_of(once)))
    assert worst <= chain.shared_noise * (1.0 + 1e-9)
    assert worst >= 0.5 * chain.shared_noise


def test_two_values_and_independent_bits_share_what_is_known():
    chains = [
        RandomizedResponse(1.0, Blocks.one(2)).chain(2.5)[1],
        L1Bits(1.0, (3, 4)).chain(2.5)[1],
        Binary(1.0, 1.0).chain([2.5, 2.5])[1],
    ]
    assert [chain.shared_noise for chain in chains] == pytest.approx([0.1058] * 3, abs=5e-5)


@pytest.mark.parametrize("name", MECHANISMS)
def test_bounds_of_a_span_are_narrower(name: str):
    """Of 4 windows of one draw: at most .75 of n/4 independent reports, `sqrt(f/4)`."""
    larger = 2.5 / 4.0 if name == "steps" else 2.5
    _, chain = MECHANISMS[name](1.0).chain([larger] * 2 if name == "binary" else larger)
    sampling = sampling_of(0, 4, windows=None, held=4, shared=chain.shared_noise)
    assert (sampling.noise / 4.0) ** 0.5 <= 0.75


def test_repeated_reports_share_all_of_it():
    assert sampling_of(0, 4, windows=None, held=4).noise == 4.0
    assert sampling_of(0, 9, windows=None, held=4, shared=0.25).noise == 1.75
    assert sampling_of(0, 1, windows=None, held=4, shared=0.25).noise == 1.0


@pytest.mark.parametrize("name", ["response", "groups", "tree", "steps", "bits"])
def test_bounds_of_a_span_cover(name: str):
    """300 devices, 4 windows of one draw, 12 values of five mechanisms, 100 spans each.

    If the coverage is 0.95, fewer than 78 of 100 has the probability 7e-10.
    """
    assert covered(MECHANISMS[name](1.0), 100, devices=300).min() >= 0.78


def covered(mechanism: Mechanism, spans: int, devices: int) -> NDArray[np.float64]:
    """Return how often the bounds of a span of four windows cover, by value."""
    larger = 2.5 * getattr(mechanism, "epsilon", 1.0)
    permanent, chain = mechanism.chain([2.5] * 2 if isinstance(mechanism, Binary) else larger)
    counts = np.arange(mechanism.size, 0, -1)
    counts = counts * devices // counts.sum()
    counts[0] += devices - counts.sum()
    entropy = SeededEntropy(11)
    values = np.tile(np.repeat(np.arange(mechanism.size), counts), spans)
    drawn = permanent.randomise(values, entropy)
    sent = [chain.again(drawn, entropy).reshape(spans, devices, -1) for _ in range(4)]
    sampling = sampling_of(0, 4, windows=None, held=4, shared=chain.shared_noise)
    hits = np.zeros(mechanism.size)
    for span in range(spans):
        statistic = mechanism.empty()
        for window in sent:
            mechanism.accumulate(statistic, window[span].reshape(devices, *drawn.shape[1:]))
        found = estimate_values(mechanism, statistic, 4 * devices, sampling=sampling)
        hits += (found.low <= counts / devices) & (counts / devices <= found.high)
    return hits / spans

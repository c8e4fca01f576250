"""Mechanisms inside blocks, on any partition and budget: draws, guarantees, totals."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldpstream.mechanisms import Blocks
from ldpstream.mechanisms.families.block.hadamard import BlockHadamard
from ldpstream.mechanisms.families.block.mechanism import BlockMechanism
from ldpstream.mechanisms.families.design.mechanism import RandomizedResponse
from ldpstream.mechanisms.families.design.projective_geometry import ProjectiveGeometry
from ldpstream.mechanisms.families.subset.selection import SubsetSelection
from tests.exact.block_reference import REFERENCES
from tests.seeded import SeededEntropy
from tests.soak import chosen

EXAMPLES = chosen(30, soak=30, check=5)
epsilons = st.floats(0.01, 60.0)
budgets = st.floats(1e-9, 1e300)
KINDS = pytest.mark.parametrize(
    "kind",
    [BlockHadamard, RandomizedResponse, ProjectiveGeometry, SubsetSelection],
    ids=lambda kind: kind.id,
)


@st.composite
def partitions(draw: st.DrawFn) -> Blocks:
    """Blocks of 1 to 40 values, at least one of two or more, in random order."""
    sizes = draw(st.lists(st.integers(1, 40), min_size=1, max_size=6).filter(lambda s: max(s) > 1))
    table = np.repeat(np.arange(len(sizes)), sizes)
    return Blocks(np.random.default_rng(draw(st.integers(0, 99))).permutation(table))


def reports_of(mechanism: BlockMechanism, values: np.ndarray, seed: int) -> np.ndarray:
    return mechanism.privatize(values, entropy=SeededEntropy(seed))


@KINDS
@settings(deadline=None, max_examples=EXAMPLES)
@given(epsilon=budgets, blocks=partitions())
def test_every_budget_and_partition_is_certified(
    kind: type[BlockMechanism], epsilon: float, blocks: Blocks
):
    certificate = kind(epsilon, blocks).certify()
    assert certificate.passed
    assert certificate.loss_high is not None
    assert certificate.loss_high <= epsilon
    assert certificate.loss_high >= min(epsilon, 40.0) * (1 - 1e-6)


@pytest.mark.parametrize(
    "kind", [RandomizedResponse, ProjectiveGeometry, SubsetSelection], ids=lambda kind: kind.id
)
@settings(deadline=None, max_examples=EXAMPLES)
@given(epsilon=epsilons, blocks=partitions(), seed=st.integers(0, 2**32))
def test_the_draws_follow_the_specification(
    kind: type[BlockMechanism], epsilon: float, blocks: Blocks, seed: int
):
    mechanism = kind(epsilon, blocks)
    values = np.random.default_rng(seed).integers(0, blocks.size, 12)
    where = zip(blocks.of_value[values].tolist(), blocks.position[values].tolist(), strict=True)
    expected = REFERENCES[kind.id](
        mechanism.parameters(), blocks.sizes.tolist(), list(where), SeededEntropy(seed)
    )
    assert reports_of(mechanism, values, seed).tolist() == expected

"""The best channel of a policy, compared with the named mechanisms."""

from itertools import product

import numpy as np
import pytest

from ldpstream.estimators.bounds.options import Estimand
from ldpstream.estimators.design.cone import DesignError
from ldpstream.estimators.planning.choices import Objective
from ldpstream.estimators.planning.compare import compare
from ldpstream.estimators.planning.optimum import find_optimum
from ldpstream.estimators.planning.workload import (
    PlannedWorkload,
    counted_shares,
    uniform_shares,
    zipf_shares,
)
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.domains.parse import Size
from ldpstream.mechanisms.families.block.hadamard import BlockHadamard
from ldpstream.mechanisms.families.groups.high_low import HighLow
from ldpstream.mechanisms.families.l1.geometric import L1Geometric
from ldpstream.mechanisms.families.lip.domain import Prior
from ldpstream.mechanisms.families.lip.lip import Lip
from ldpstream.mechanisms.families.subset.selection import SubsetSelection
from tests.soak import chosen

MECHANISMS = {
    "line": L1Geometric(0.3, (8,)),
    "blocks": BlockHadamard(1.0, Blocks(np.array([0, 0, 0, 1, 1, 1, 2, 2]))),
    "high-low": HighLow(1.0, 8, frozenset({1, 5})),
}

ASKED = [*product(MECHANISMS, ("values", "ranges"), ("respondents", "population"))]


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.parametrize(("name", "objective", "estimand"), chosen(ASKED[::5], soak=ASKED))
def test_no_candidate_is_better(name: str, objective: Objective, estimand: Estimand):
    mechanism = MECHANISMS[name]
    shares = zipf_shares((8,))
    workload = PlannedWorkload(
        (8,), ordered=True, shares=shares, objective=objective, estimand=estimand
    )
    candidates = compare(mechanism, Size(8), workload).candidates
    optimum = find_optimum(mechanism.policy, workload, candidates)
    assert optimum.least is not None
    assert 0.0 <= optimum.least <= optimum.variance == pytest.approx(optimum.least, rel=1e-5)
    for candidate in candidates:
        assert candidate.variance >= optimum.least * (1 - 1e-9) - 1e-12


@pytest.mark.slow
def test_the_bound_is_below_subset_selection_in_any_order_of_two_blocks():
    """Total variance of all values; the search alone reported 17.077 and 17.115 as bounds."""
    for seed in range(4):
        blocks = np.random.default_rng(seed).permutation([0] * 8 + [1] * 3)
        mechanism = SubsetSelection(1.0, Blocks(np.unique(blocks, return_inverse=True)[1]))
        workload = PlannedWorkload((11,), ordered=True, shares=uniform_shares(11))
        (best, *_) = compare(mechanism, Size(11), workload).candidates
        assert best.variance * 11 == pytest.approx(16.997395, abs=1e-6)
        optimum = find_optimum(mechanism.policy, workload)
        assert optimum.least == pytest.approx(best.variance, rel=1e-9)


def test_what_cannot_be_searched_is_refused():
    zero = PlannedWorkload((8,), ordered=True, shares=counted_shares(np.arange(8.0)))
    with pytest.raises(DesignError, match="prior"):
        find_optimum(MECHANISMS["line"].policy, zero)
    pair = PlannedWorkload((2,), ordered=False, shares=uniform_shares(2))
    with pytest.raises(DesignError, match="lip"):
        find_optimum(Lip(Prior(value=0.5), (1.0,)).policy, pair)

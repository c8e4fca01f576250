"""Which estimates are bounded by likelihood where that is asked for: those for which it pays."""

from typing import Any

import numpy as np
import pytest

from ldpstream.estimators.bounds.options import Estimand, Method
from ldpstream.estimators.bounds.types import Estimate
from ldpstream.estimators.estimate import estimate_sets, estimate_values
from ldpstream.estimators.likelihood.line import Line
from ldpstream.estimators.likelihood.profile import Profile
from ldpstream.estimators.quantiles.quantiles import estimate_quantiles
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.families.block.hadamard import BlockHadamard
from ldpstream.mechanisms.families.l1.geometric import L1Geometric
from ldpstream.mechanisms.interface.mechanism import Mechanism

METHOD: Method = "profile"


@pytest.mark.slow
def test_shares_are_profiled_where_it_pays():
    mechanism = L1Geometric(0.1, (20,))
    counts = np.random.default_rng(1).poisson(np.linspace(80, 20, 20))
    n = int(counts.sum())
    sets = [np.arange(8), np.arange(20), np.array([19])]

    def found(**more: Any) -> Estimate:
        return estimate_sets(
            mechanism, counts, n, sets, method=METHOD, **{"estimand": "population", **more}
        )

    assert found().method == METHOD
    # The whole domain has no noise.
    assert list(found().form) == [METHOD, "known", METHOD]
    profile = Profile.of(Line.of(mechanism, counts), 0.95)
    assert (found().low[0], found().high[0]) == profile.share(np.arange(20) < 8)
    assert (found().lowest[0], found().highest[0]) == (found().low[0], found().high[0])
    # Many reports, or little noise: the unbiased estimate's are narrower.
    quiet = L1Geometric(2.0, (20,))
    few = estimate_sets(quiet, counts, n, sets, method=METHOD, estimand="population")
    assert METHOD not in few.form
    values = estimate_values(mechanism, counts, n, method=METHOD, estimand="population")
    assert (values.form == METHOD).all()
    assert found(simultaneous=True).form[0] != METHOD
    assert found(confidence=0.999).form[0] != METHOD
    assert found(estimand="respondents").form[0] == METHOD


@pytest.mark.grid
@pytest.mark.parametrize("estimand", ["respondents", "population"])
def test_quantiles_are_profiled_where_it_pays(estimand: Estimand):
    counts = np.random.default_rng(1).poisson(np.linspace(80, 20, 60))
    n = int(counts.sum())
    for epsilon in (0.1, 3.0):
        mechanism = L1Geometric(epsilon, (60,))
        found, plain = (
            estimate_quantiles(mechanism, counts, n, [0.2, 0.5], method=one, estimand=estimand)
            for one in (METHOD, "padded")
        )
        profiled = estimand == "population" or epsilon < 1.0
        assert (found.form, plain.form) == (METHOD if profiled else None, None)
        if profiled:
            assert (found.high - found.low <= np.maximum(plain.high - plain.low, 1)).all()
        assert ((found.low <= found.value) & (found.value <= found.high)).all()


@pytest.mark.grid
@pytest.mark.parametrize(
    "mechanism",
    [
        BlockHadamard(1.0, Blocks.one(8)),
        L1Geometric(1.0, (8, 3)),
        L1Geometric(1.0, (1_025,)),
        L1Geometric(1.0, (8, 3), weighted=True),
    ],
    ids=["hadamard", "grid", "many", "weights"],
)
def test_other_mechanisms_are_refused_by_name(mechanism: Mechanism):
    statistic = mechanism.empty()
    said = r"l1-geometric in one dimension of 2 to 1,024 values, got (block-hadamard|l1-geometric)"
    with pytest.raises(ValueError, match=said):
        estimate_values(mechanism, statistic, 0, method=METHOD)
    with pytest.raises(ValueError, match=said):
        estimate_quantiles(mechanism, statistic, 0, [0.5], method=METHOD)

"""Bounds are made form by form, then stretched, then cut; only rough forms shrink."""

from itertools import product
from typing import Any, get_args

import numpy as np
import pytest

from ldpstream.estimators.areas.areas import estimate_areas
from ldpstream.estimators.areas.tree import prepare_tree
from ldpstream.estimators.bounds.bounded import forged_reports
from ldpstream.estimators.bounds.options import Estimand, Method, Sampling
from ldpstream.estimators.bounds.types import Estimate
from ldpstream.estimators.estimate import estimate_values
from ldpstream.estimators.quantiles.prefixes import Prefixes
from ldpstream.estimators.quantiles.quantiles import estimate_quantiles
from ldpstream.estimators.weights import estimate_linear
from ldpstream.mechanisms.domains.blocks import Blocks, box_blocks
from ldpstream.mechanisms.families.block.hadamard import BlockHadamard
from ldpstream.mechanisms.families.design.mechanism import RandomizedResponse
from ldpstream.mechanisms.families.l1.bits import L1Bits
from ldpstream.mechanisms.families.l1.geometric import L1Geometric
from ldpstream.mechanisms.families.subset.selection import SubsetSelection
from ldpstream.mechanisms.interface.mechanism import Mechanism
from tests.exact.enumeration import counted

FOURS = RandomizedResponse(1.0, Blocks(np.arange(12) // 4))
COUNTS = np.array([3, 1, 1, 2, 200, 90, 80, 70, 0, 0, 0, 0])
METHODS = get_args(Method)
PARTS = (0.05, 0.2, 0.7, 0.999)
PROVED = ("product", "clopper-pearson", "range", "enumerated", "bernstein")


def of_part(factor: float, **options: Any) -> Estimate:
    """Return the estimates of `COUNTS` if they are a part of all active devices."""
    sampling = Sampling(active=factor)
    return estimate_values(
        FOURS, COUNTS, int(COUNTS.sum()), estimand="active", sampling=sampling, **options
    )


@pytest.mark.parametrize("factor", [1.0, *PARTS])
def test_proved_bounds_of_a_part_are_those_of_a_sample(factor: float):
    found = of_part(factor)
    assert list(found.form) == ["product"] * 4 + ["block"] * 4 + ["product"] * 4
    for value, high in ((1, 0.03462), (9, 0.00976)):
        assert found.low[value] == 0.0 >= found.lowest[value]
        assert found.high[value] == found.highest[value] == pytest.approx(high, abs=5e-6)


@pytest.mark.parametrize(
    ("factor", "low", "high"), [(1.0, -0.01765, 0.2288), (0.2, -0.01526, 0.22606)]
)
def test_rough_bounds_of_a_part_shrink_from_their_uncut_ends(
    factor: float, low: float, high: float
):
    found = of_part(factor)
    assert (found.form[5], found.low[5]) == ("block", 0.0)
    assert found.lowest[5] == pytest.approx(low, abs=5e-6)
    assert found.high[5] == found.highest[5] == pytest.approx(high, abs=5e-6)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("together", [False, True])
def test_a_larger_part_never_moves_a_proved_end_and_narrows_the_others(
    method: Method, together: bool
):
    whole, *parts = (of_part(f, method=method, simultaneous=together) for f in (1.0, 0.7, 0.2))
    for found in parts:
        for end in ("low", "high", "lowest", "highest"):
            kept = np.isin(whole.form, [*PROVED, "anytime"])
            np.testing.assert_array_equal(getattr(found, end)[kept], getattr(whole, end)[kept])
        assert (found.lowest >= whole.lowest).all()
        assert (found.highest <= whole.highest).all()
        assert (found.form == whole.form).all()
        whole = found


def test_a_report_that_may_be_noise_alone_excludes_nobody():
    """At epsilon 6 one of 60 reports is off in 14% of the windows, and shows no variance.

    Distances that shrink as the plug-in errors do, from 2.15 to 0.76 reports, exclude 0: lists of
    32 values covered 0.889.
    """
    statistic = np.zeros(32, dtype=np.int64)
    statistic[[5, 6]] = 59, 1
    given: Any = {"estimand": "active", "sampling": Sampling(active=3 / 62), "simultaneous": True}
    found = estimate_values(L1Geometric(6.0, (32,)), statistic, 60, **given)
    assert found.form[6] == "padded"
    assert found.low[6] == 0.0
    # One of 31 holders reports another value in 11% of the windows: 30 of 60 may be 31.
    statistic[[5, 6]] = 30, 30
    alone: Any = {"estimand": "active", "sampling": Sampling(active=1e-6)}
    half = estimate_values(RandomizedResponse(9.0, Blocks.one(32)), statistic, 60, **alone)
    assert half.form[5] == "wilson"
    assert half.high[5] >= 31 / 60


@pytest.mark.parametrize("factor", [2.0, 7.5])
def test_all_bounds_of_devices_that_report_again_and_again_are_wider(factor: float):
    statistic, n = COUNTS, int(COUNTS.sum())
    options: Any = {"estimand": "population"}
    plain = estimate_values(FOURS, statistic, n, **options)
    again = estimate_values(FOURS, statistic, n, sampling=Sampling(factor), **options)
    assert (again.highest > plain.highest).all()
    assert (again.low <= plain.low).all()
    exact = estimate_values(
        FOURS, statistic, n, sampling=Sampling(factor), method="exact", **options
    )
    assert set(exact.form) == {"bernstein"}


MECHANISMS: dict[str, Mechanism] = {
    "randomized-response": FOURS,
    "block-hadamard": BlockHadamard(0.4, Blocks.one(12)),
    "subset-selection": SubsetSelection(0.5, Blocks(np.array([0] * 3 + [1] * 9))),
    "l1-geometric": L1Geometric(0.4, (16,)),
    "l1-bits": L1Bits(0.5, (12,)),
}


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("estimand", get_args(Estimand))
def test_bounds_lie_within_what_shares_can_be(name: str, method: Method, estimand: Estimand):
    mechanism = MECHANISMS[name]
    groups, values = mechanism.decoder.groups(), np.repeat([0, 1, 8], [4, 290, 6])
    statistic, n = counted(mechanism, values, 3), values.size
    known = np.ones(mechanism.size)
    if groups is not None and estimand == "respondents":
        known = (mechanism.decoder.group_reports(statistic) / n)[groups]
    weights = np.array([np.arange(mechanism.size) - 5.0])
    for sampling, together in product((Sampling(), Sampling(3.0, 0.4)), (False, True)):
        options: Any = {
            "method": method,
            "estimand": estimand,
            "sampling": sampling,
            "simultaneous": together,
        }
        found = estimate_values(mechanism, statistic, n, **options)
        mean = estimate_linear(mechanism, statistic, n, weights, **options)
        if method == "normal":
            assert found.low is found.lowest
            assert found.high is found.highest
            continue
        np.testing.assert_array_equal(found.low, np.clip(found.lowest, 0.0, known))
        np.testing.assert_array_equal(found.high, np.clip(found.highest, 0.0, known))
        assert mean.low[0] >= weights.min() - 1e-12
        assert mean.high[0] <= weights.max() + 1e-12
        room = np.minimum(found.value - found.lowest, found.highest - found.value)
        number = np.floor(np.maximum(room, 0.0) / found.influence) + 1.0
        possible = number <= n
        np.testing.assert_array_equal(forged_reports(found)[possible], number[possible])


@pytest.mark.parametrize("method", ["padded", "bernstein", "anytime"])
def test_rests_of_areas_are_cut_as_whole_areas_are(method: Method):
    mechanism = BlockHadamard(2.0, box_blocks((8, 8), (4, 4), "blocks"))
    values = np.repeat([0, 9, 37], [1_500, 300, 200])
    statistic, tree = counted(mechanism, values, 2), prepare_tree(mechanism, (8, 8), ordered=True)
    found = estimate_areas(mechanism, statistic, values.size, tree, method=method)
    assert found.places.size > 4
    assert (found.rest_low >= 0.0).all()
    assert (found.rest_high <= found.estimate.high).all()
    assert (found.estimate.high <= 1.0).all()


def test_sums_of_prefixes_are_not_negative_by_rounding():
    """A difference of running sums is, and its root is a warning, which is an error here."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        of_value = rng.permutation(np.concatenate([np.arange(5), rng.integers(0, 5, 35)]))
        mechanism = BlockHadamard(6.0, Blocks(of_value))
        prefixes, statistic = Prefixes.of(mechanism), counted(mechanism, np.full(500, 15))
        sums = prefixes.prepared.sums(statistic)
        noise = sums.noise
        amounts = noise.floor, noise.ceiling, noise.reports, noise.moment, noise.typical
        for amount in (sums.squares, *amounts, sums.limits.most):
            assert (amount >= 0.0).all()
        for method, estimand in product(METHODS, get_args(Estimand)):
            options: Any = {"method": method, "estimand": estimand}
            found = estimate_quantiles(
                mechanism, statistic, 500, [0.1, 0.5, 0.9], prefixes=prefixes, **options
            )
            assert (found.low <= found.high).all()

"""Bounds of many-valued queries by e-values: their values, their proof, where they are used."""

from collections import defaultdict
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from ldpstream.estimators.bounds.e_values import Tally, lowest_means
from ldpstream.estimators.bounds.options import Sampling
from ldpstream.estimators.estimate import estimate_sets, estimate_values
from ldpstream.estimators.weights import estimate_linear
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.families.l1.bits import L1Bits
from ldpstream.mechanisms.families.l1.geometric import L1Geometric
from ldpstream.mechanisms.families.tree.tree import Tree
from tests.exact.enumeration import counted

LEVEL = 0.05


def interval(h: list[float], counts: list[int], sd: float) -> tuple[float, float]:
    """Return the bounds of a mean in 0..1 at 95%."""
    values, ends = np.array(h), []
    for side, least, near, far in ((1.0, values.min(), 0.0, 1.0), (-1.0, -values.max(), -1.0, 0.0)):
        offsets, middle = side * values - least, (near + far) / 2 - least
        (low,) = lowest_means(
            [offsets],
            [np.array(counts, dtype=float)],
            np.array([middle / sd]),
            (np.array([near - least]), np.array([far - least])),
            LEVEL,
        )
        ends.append(side * (least + low))
    return ends[0], ends[1]


@pytest.mark.parametrize(
    ("h", "counts", "sd", "bounds"),
    [
        ([-1.0, 0.0, 1.0, 2.0], [10, 40, 30, 20], 1.0, (0.339011, 0.867139)),
        ([-0.5, 0.0, 0.5, 1.0, 1.5], [5, 20, 50, 20, 5], 0.5, (0.369172, 0.630828)),
        ([0.0, 1.0], [100, 0], 0.5, (0.0, 0.056494)),
    ],
)
def test_bounds_have_their_values(
    h: list[float], counts: list[int], sd: float, bounds: tuple[float, float]
):
    assert interval(h, counts, sd) == pytest.approx(bounds, abs=1e-6)


@pytest.mark.parametrize("means", [(0, 0, 0, 0, 0), (0, 0, 1, 1, 1), (1, 1, 1, 1, 1)])
def test_each_end_errs_in_at_most_half_of_the_level_whoever_reports(means: tuple[int, ...]):
    """All reports of given respondents, in rationals: h is -1, 0, 1 or 2, with mean w(x) = x."""
    h = np.array([-1.0, 0.0, 1.0, 2.0])
    rows = {0: (3, 3, 1, 1), 1: (1, 1, 3, 3)}  # In eighths: the means are 0 and 1.
    truth = sum(means) / len(means)
    # The order of reports does not matter: bounds are made once for each of their counts.
    chances: defaultdict[tuple[int, ...], Fraction] = defaultdict(Fraction)
    for outputs in product(range(4), repeat=len(means)):
        chance = Fraction(1)
        for mean, output in zip(means, outputs, strict=True):
            chance *= Fraction(rows[mean][output], 8)
        chances[tuple(np.bincount(outputs, minlength=4).tolist())] += chance
    below, above = Fraction(0), Fraction(0)
    for counts, chance in chances.items():
        low, high = interval(h.tolist(), [*counts], 1.0)
        below += chance * (low > truth + 1e-12)
        above += chance * (high < truth - 1e-12)
    assert sum(row[i] * h[i] for row in (rows[0],) for i in range(4)) == 0.0
    assert max(below, above) <= Fraction(1, 40)


MECHANISMS = {"tree": Tree(1.0, Blocks.one(20)), "geometric": L1Geometric(0.5, (20,))}
SETS = [np.arange(5), np.arange(3, 15), np.array([4]), np.arange(20)]


@pytest.mark.parametrize("estimand", ["respondents", "population"])
@pytest.mark.parametrize("name", MECHANISMS)
def test_exact_bounds_of_sets_values_and_weights_are_e_values(name: str, estimand: Any):
    mechanism = MECHANISMS[name]
    values = np.random.default_rng(1).binomial(19, 0.3, 4_000)
    statistic = counted(mechanism, values, 1)
    options: dict[str, Any] = {"method": "exact", "estimand": estimand}
    weights = np.stack([np.arange(20.0), np.arange(20.0) ** 2])
    for found, plain, truth in (
        (
            estimate_sets(mechanism, statistic, 4_000, SETS, **options),
            estimate_sets(mechanism, statistic, 4_000, SETS, method="bernstein", estimand=estimand),
            [np.isin(values, one).mean() for one in SETS],
        ),
        (
            estimate_values(mechanism, statistic, 4_000, **options),
            estimate_values(mechanism, statistic, 4_000, method="bernstein", estimand=estimand),
            [(values == x).mean() for x in range(20)],
        ),
        (
            estimate_linear(mechanism, statistic, 4_000, weights, **options),
            estimate_linear(
                mechanism, statistic, 4_000, weights, method="bernstein", estimand=estimand
            ),
            [values.mean(), (values**2.0).mean()],
        ),
    ):
        staked = found.form == "e-value"
        assert staked.sum() >= len(found.form) - 2
        np.testing.assert_array_equal(found.value, plain.value)
        narrower = (found.high - found.low)[staked] / (plain.high - plain.low)[staked]
        assert np.median(narrower) < 1.0
        assert ((found.low <= truth) & (truth <= found.high)).all()
    listed = estimate_values(mechanism, statistic, 4_000, **options)
    some = estimate_values(mechanism, statistic, 4_000, values=np.array([7, 2]), **options)
    np.testing.assert_array_equal(some.low, listed.low[[7, 2]])
    np.testing.assert_array_equal(some.high, listed.high[[7, 2]])


@pytest.mark.parametrize("n", [3_000, 30_000, 300_000])
def test_data_without_spread_are_bounded_hardly_wider_than_by_bernstein(n: int):
    mechanism = L1Geometric(2.0, (32,))
    statistic = counted(mechanism, np.zeros(n, dtype=np.int64), 3)
    sets = [np.arange(last) for last in range(4, 32, 4)]
    found, plain = (
        estimate_sets(mechanism, statistic, n, sets, method=method, estimand="population")
        for method in ("exact", "bernstein")
    )
    assert set(found.form.tolist()) == {"e-value"}
    assert ((found.high - found.low) / (plain.high - plain.low)).max() < 1.25


def test_reports_that_are_not_independent_or_are_sums_keep_bernsteins_bounds():
    mechanism, values = MECHANISMS["tree"], np.repeat(np.arange(20), 50)
    statistic = counted(mechanism, values, 2)
    for sampling in (Sampling(population=2.0), Sampling(population=2.0, noise=2.0)):
        options: dict[str, Any] = {"estimand": "population", "sampling": sampling}
        found = estimate_sets(mechanism, statistic, 1_000, SETS, method="exact", **options)
        assert "e-value" not in found.form.tolist()
    bits = L1Bits(0.5, (20,))
    found = estimate_sets(bits, counted(bits, values, 2), 1_000, SETS, method="exact")
    assert "e-value" not in found.form.tolist()


def test_tallies_hold_every_report_once():
    tally = Tally.of(np.array([1.0, 2.0, 1.0, 5.0]), np.array([3, 0, 4, 2]))
    assert (tally.values.tolist(), tally.counts.tolist()) == ([1.0, 5.0], [7.0, 2.0])

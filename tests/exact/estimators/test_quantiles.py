"""Prefixes against single queries, and quantiles against their definition."""

import numpy as np
import pytest
from scipy.stats import norm

from ldpstream.estimators.bounds.types import Estimate
from ldpstream.estimators.planning.workload import PlannedWorkload
from ldpstream.estimators.quantiles.prefixes import Prefixes
from ldpstream.estimators.quantiles.quantiles import estimate_quantiles, invert, monotone
from ldpstream.estimators.queries import prepare_queries
from ldpstream.estimators.weights import estimate_linear
from ldpstream.mechanisms.families.l1.geometric import L1Geometric
from tests.exact.dense import Dense, block_channel, dense_of, random_channel

N = 400
ONE = random_channel(21, 6, 9)
LINE = dense_of(L1Geometric(1.0, (6,)))
BLOCKS = block_channel(22, (4, 1, 3))
IN_ORDER = Dense(
    BLOCKS.channel[np.argsort(BLOCKS.groups[0], kind="stable")],
    groups=(np.sort(BLOCKS.groups[0]), BLOCKS.groups[1]),
)
TIED = np.array([0, 0, 3, 1, 3, 1, 4, 4])
CASES = {
    "one group": (ONE, np.arange(6)),
    "noise on a line": (LINE, np.arange(6)),
    "reversed": (ONE, np.arange(6)[::-1].copy()),
    "blocks across the order": (BLOCKS, np.arange(8)),
    "blocks one after the other": (IN_ORDER, np.arange(8)),
    "ties and a gap": (BLOCKS, TIED),
    "ties and a gap, one group": (ONE, TIED[:6]),
}


def statistic_of(mechanism: Dense, seed: int = 23) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.multinomial(N, rng.dirichlet(np.ones(mechanism.size)) @ mechanism.channel)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("estimand", ["respondents", "population"])
def test_prefixes_equal_their_linear_queries(case: str, estimand: str):
    mechanism, order = CASES[case]
    statistic = statistic_of(mechanism)
    weights = (order[None, :] <= np.arange(order.max() + 1)[:, None]).astype(np.float64)
    options = {"method": "normal", "estimand": estimand}
    expected = estimate_linear(mechanism, statistic, N, weights, **options)
    found = Prefixes.of(mechanism, order).estimate(statistic, N, **options)
    for name in ("value", "se", "low", "high"):
        np.testing.assert_allclose(
            getattr(found, name), getattr(expected, name), rtol=1e-9, atol=1e-9, err_msg=name
        )
    assert found.value[-1] == found.low[-1] == found.high[-1] == 1.0


@pytest.mark.parametrize("case", CASES)
def test_bernstein_bounds_of_prefixes_are_exact_for_one_group_and_else_no_narrower(case: str):
    mechanism, order = CASES[case]
    statistic = statistic_of(mechanism)
    weights = (order[None, :] <= np.arange(order.max() + 1)[:, None]).astype(np.float64)
    expected = estimate_linear(mechanism, statistic, N, weights, method="bernstein")
    found = Prefixes.of(mechanism, order).estimate(statistic, N, method="bernstein")
    if mechanism is ONE or mechanism is LINE:
        np.testing.assert_allclose(found.high, expected.high, atol=1e-9)
    assert (found.high >= expected.high - 1e-9).all()
    assert (found.low <= expected.low + 1e-9).all()


def test_simultaneous_prefixes_widen_by_their_own_noise():
    mechanism = random_channel(8, 4, 4, mixed=0.8)
    statistic = np.array([100, 90, 110, 100])
    prefixes = Prefixes.of(mechanism)
    found = prefixes.estimate(statistic, N, method="normal", simultaneous=True)
    decoder = prepare_queries(mechanism)
    z = norm.ppf(1 - (1 - 0.95 ** (1 / 4)) / 2)
    skewed = prefixes.prepared.sums(statistic).spread * z**2 / (6 * N)
    for position in range(3):
        weights = (np.arange(4) <= position).astype(np.float64)
        noise = decoder.decoder.noise_of(decoder.decode(weights), weights)
        slope = max(noise.max() - noise.min(), 1.0)
        assert slope > 1.5
        step = z**2 * slope / N
        half = (step + np.sqrt(step**2 + 4 * (z * found.se[position]) ** 2)) / 2
        half = min(half, z * np.sqrt(noise.max() / N)) + skewed[position]
        assert found.high[position] - found.value[position] == pytest.approx(half, rel=1e-9)


@pytest.mark.parametrize("case", [c for c in CASES if c != "one group"])
@pytest.mark.parametrize("seed", range(5))
def test_simultaneous_prefixes_of_several_groups_widen_by_their_noisiest_group(
    case: str, seed: int
):
    order = CASES[case][1]
    mechanism = block_channel(seed, (4, 3, 1), spare=0) if order.size == 8 else ONE
    statistic = statistic_of(mechanism, seed)
    prefixes = Prefixes.of(mechanism, order)
    options = {"method": "normal", "simultaneous": True, "estimand": "population"}
    found = prefixes.estimate(statistic, N, **options)
    decoder, length = prepare_queries(mechanism), order.max() + 1
    z = norm.ppf(1 - (1 - 0.95 ** (1 / length)) / 2)
    skewed = prefixes.prepared.sums(statistic).spread * z**2 / (6 * N)
    so_far = 0.0
    for position in range(length - 1):
        weights = (order <= position).astype(np.float64)
        least, most = decoder.groups.extremes(
            decoder.decoder.noise_of(decoder.decode(weights), weights)
        )
        own = float((most - least).max())
        so_far = max(so_far, own)
        half = found.high[position] - found.value[position] - skewed[position]
        # The half-width solves d^2 = z^2 (V + slope d/n).
        slope = ((half / z) ** 2 - found.se[position] ** 2) * N / half
        floor = max(1.0, 2 * abs(found.value[position]))
        assert slope >= max(own, floor) - 1e-9
        assert slope <= max(so_far, floor) + 1e-9


def by_hand(estimate: Estimate, p: float) -> tuple[int, int, int]:
    sigma, size = monotone(estimate), estimate.value.size
    value = min(x for x in range(size) if sigma[x] >= p)
    low = min(x for x in range(size) if estimate.high[x] >= p)
    high = 1 + max((x for x in range(size) if estimate.low[x] < p), default=-1)
    return min(max(value, low), high), low, high


@pytest.mark.grid
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("estimand", ["respondents", "population"])
def test_quantiles_invert_the_distribution_and_its_bounds(case: str, estimand: str):
    mechanism, order = CASES[case]
    prefixes = Prefixes.of(mechanism, order)
    p = [1e-9, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0 - 1e-9]
    for seed in range(20):
        statistic = statistic_of(mechanism, seed)
        estimate = prefixes.estimate(statistic, N, estimand=estimand)
        found = estimate_quantiles(mechanism, statistic, N, p, prefixes=prefixes, estimand=estimand)
        expected = [by_hand(estimate, probability) for probability in p]
        np.testing.assert_array_equal(
            np.stack([found.value, found.low, found.high], axis=1), expected
        )
        assert (found.low <= found.value).all()
        assert (found.value <= found.high).all()


def estimate_of(value: list[float], se: list[float]) -> Estimate:
    array, error = np.array(value), np.array(se)
    return Estimate(
        value=array,
        se=error,
        low=array - 2 * error,
        high=array + 2 * error,
        influence=error,
        lowest=array - 2 * error,
        highest=array + 2 * error,
        form=np.full(array.shape, "normal"),
        n=10,
        method="normal",
    )


def test_the_distribution_is_made_monotone_by_inverse_variances():
    found = monotone(estimate_of([0.3, 0.1, 0.6, 1.0], [0.1, 0.2, 0.1, 0.0]))
    pooled = (0.3 / 0.01 + 0.1 / 0.04) / (1 / 0.01 + 1 / 0.04)
    np.testing.assert_allclose(found, [pooled, pooled, 0.6, 1.0])


def test_equally_certain_prefixes_are_pooled_evenly():
    found = monotone(estimate_of([0.2, 0.1, 0.4, 0.35, 0.3, 0.9, 1.0], [0.1] * 6 + [0.0]))
    np.testing.assert_allclose(found[:-1], [0.15, 0.15, 0.35, 0.35, 0.35, 0.9], rtol=1e-12)


def test_the_monotone_curve_is_never_further_from_the_truth():
    generator = np.random.default_rng(3)
    for _ in range(3_000):
        size = int(generator.integers(2, 30))
        truth = np.cumsum(generator.dirichlet(np.full(size, 0.3)))
        se = generator.uniform(0.01, 0.5, size) * (generator.uniform(size=size) < 0.9)
        se[-1] = 0.0
        raw = truth + generator.normal(0.0, 1.0, size) * se
        found = monotone(estimate_of(raw.tolist(), se.tolist()))
        assert (np.diff(found) >= 0.0).all()
        off, before = np.abs(found - truth), np.abs(raw - truth)
        assert off.max() <= before.max() + 1e-12
        noisy = se > 0.0
        weights = se[noisy] ** -2.0
        assert weights @ off[noisy] ** 2 <= weights @ before[noisy] ** 2 * (1 + 1e-9) + 1e-9


def test_exactly_known_prefixes_stay_and_bound_the_others():
    found = monotone(estimate_of([-0.2, 0.7, 0.5, 0.4, 1.3, 1.0], [0.1, 0.1, 0.0, 0.1, 0.1, 0.0]))
    np.testing.assert_allclose(found, [0.0, 0.5, 0.5, 0.5, 1.0, 1.0])


def test_all_bounds_that_cross_count_not_only_the_first():
    # The raw prefix dips at 2: a first crossing from the right would stop short of it.
    estimate = estimate_of([0.2, 0.6, 0.45, 0.9, 1.0], [0.04, 0.04, 0.04, 0.04, 0.0])
    found = invert(estimate, [0.5])
    assert (found.low[0], found.high[0]) == (1, 3)


@pytest.mark.parametrize("estimand", ["respondents", "population"])
@pytest.mark.parametrize("method", ["normal", "bernstein"])
def test_bounds_stay_inside_the_domain_however_wide(method: str, estimand: str):
    few = np.zeros(ONE.channel.shape[1], dtype=np.int64)
    few[:2] = 1, 4
    found = estimate_quantiles(
        ONE,
        few,
        5,
        [1e-12, 0.5, 1.0 - 1e-12],
        method=method,
        estimand=estimand,
        simultaneous=True,
        confidence=0.999_999,
    )
    for positions in (found.value, found.low, found.high):
        assert ((positions >= 0) & (positions < ONE.size)).all()


def test_without_reports_quantiles_are_undefined():
    empty = np.zeros(ONE.outputs, dtype=np.int64)
    found = estimate_quantiles(ONE, empty, 0, [0.5])
    assert np.isnan([found.value[0], found.low[0], found.high[0]]).all()
    empty[0] = 1
    for options in ({"method": "normal", "estimand": "population"}, {"method": "bernstein"}):
        found = estimate_quantiles(ONE, empty, 1, [0.5], **options)
        assert np.isfinite(found.value).all()
        assert np.isnan([found.low[0], found.high[0]]).all()
        sigma = monotone(Prefixes.of(ONE).estimate(empty, 1, **options))
        assert (np.diff(sigma) >= 0).all()
        assert sigma[0] >= 0
        assert sigma[-1] == 1


@pytest.mark.parametrize("p", [-0.1, 0.0, 1.0, 1.1, np.nan, np.inf])
def test_probabilities_outside_the_open_interval_are_refused_by_name(p: float):
    expected = "quantile: expected a number above 0 and below 1, got"
    with pytest.raises(ValueError, match=expected):
        estimate_quantiles(ONE, statistic_of(ONE), N, [0.5, p])
    with pytest.raises(ValueError, match=expected):
        PlannedWorkload((6,), True, np.full(6, 1 / 6), quantiles=(p,))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("method", ["normal", "bernstein"])
def test_simultaneous_bounds_do_not_depend_on_which_quantiles_are_asked_for(case: str, method: str):
    mechanism, order = CASES[case]
    prefixes, statistic = Prefixes.of(mechanism, order), statistic_of(mechanism)
    p, options = np.linspace(0.01, 0.99, 99), {"method": method, "simultaneous": True}
    found = estimate_quantiles(mechanism, statistic, N, p, prefixes=prefixes, **options)
    for place in (0, 49, 98):
        alone = estimate_quantiles(
            mechanism, statistic, N, p[[place]], prefixes=prefixes, **options
        )
        assert (alone.low[0], alone.high[0]) == (found.low[place], found.high[place])
    pointwise = estimate_quantiles(mechanism, statistic, N, p, prefixes=prefixes, method=method)
    assert (found.low <= pointwise.low).all()
    assert (found.high >= pointwise.high).all()


def test_impossible_orders_are_refused():
    for wrong in (np.arange(5), np.arange(-1, 5)):
        with pytest.raises(ValueError, match="positions"):
            Prefixes.of(ONE, wrong)

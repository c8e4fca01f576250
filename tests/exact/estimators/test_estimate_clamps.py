"""Standard errors stay within what the channel allows, whatever and however little was reported."""

import math

import numpy as np
import pytest

from ldpstream.estimators.estimate import estimate_sets, estimate_values
from ldpstream.estimators.weights import estimate_linear
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.families.design.mechanism import RandomizedResponse
from ldpstream.mechanisms.families.groups.high_low import HighLow
from ldpstream.mechanisms.families.l1.geometric import L1Geometric
from ldpstream.mechanisms.families.subset.selection import SubsetSelection
from ldpstream.mechanisms.interface.mechanism import Mechanism
from tests.exact.dense import Dense, random_channel
from tests.exact.enumeration import counted
from tests.exact.specs import BLOCKS, WARNER, block_statistic

ESTIMANDS = ("respondents", "population")
KINDS = [(estimand, method) for estimand in ESTIMANDS for method in ("normal", "bernstein")]
ANYTIME_KINDS = [(estimand, "anytime") for estimand in ESTIMANDS]


def test_the_noise_of_a_plain_value_without_reports_is_the_worst_case():
    mechanism, n = HighLow(1.0, 4, frozenset({0})), 500
    statistic = mechanism.empty()
    statistic[0] = n
    # No plain report: the plug-in is exactly the least noise, 0. The worst is (c - 1)/n.
    estimate = estimate_values(mechanism, statistic, n)
    c = 1 / math.tanh(0.5)
    np.testing.assert_array_equal(estimate.value[1:], 0.0)
    np.testing.assert_allclose(estimate.se[1:], math.sqrt((c - 1) / n))


def test_a_plug_in_at_or_below_the_least_noise_gives_way_to_the_worst():
    mechanism = random_channel(3, 3, 5)
    decoders = mechanism.decoder.decoders
    # All reports alike: the plug-in of the value whose decoder is largest there falls below.
    statistic, n = np.array([0, 0, 4, 0, 0]), 4
    noise = mechanism.channel @ (decoders**2).T - np.eye(3)
    plug_in = (decoders[:, 2] ** 2 - decoders[:, 2]) / n
    low = plug_in <= noise.min(axis=0) / n
    assert low.any()
    expected = np.where(low, noise.max(axis=0) / n, plug_in)
    np.testing.assert_allclose(estimate_values(mechanism, statistic, n).se ** 2, expected)
    population = estimate_values(mechanism, statistic, n, estimand="population")
    np.testing.assert_allclose(population.se**2, noise.max(axis=0) / n)


def test_blocks_keep_variances_within_what_their_shares_allow():
    decoders = BLOCKS.decoder.decoders
    noise = BLOCKS.channel @ (decoders**2).T - np.eye(6)
    same = BLOCKS.groups[0][:, None] == BLOCKS.groups[0]
    least = np.where(same, noise, np.inf).min(axis=0)
    largest = np.where(same, noise, -np.inf).max(axis=0)
    hit, reached = set(), False
    for seed in range(30):
        statistic = block_statistic((2, 3, 4), seed)
        shares = np.array([2, 3, 4])[BLOCKS.groups[0]] / 9
        plug_in = (decoders**2 @ statistic - decoders @ statistic) / 81
        expected = np.clip(plug_in, shares * least / 9, shares * largest / 9)
        hit |= set(np.sign(expected - plug_in).round())
        mean = decoders @ statistic / 9
        sampled = (decoders**2 @ statistic / 9 - mean**2) / 8
        # And never below one respondent.
        floored = np.maximum(np.maximum(sampled, shares * least / 9), 1 / 81)
        reached |= bool((floored > sampled + 1e-9).any())
        population = estimate_values(BLOCKS, statistic, 9, estimand="population").se ** 2
        np.testing.assert_allclose(population, floored, atol=1e-12)
        np.testing.assert_allclose(
            estimate_values(BLOCKS, statistic, 9).se ** 2, expected, atol=1e-12
        )
    assert hit == {-1.0, 0.0, 1.0}
    assert reached


@pytest.mark.parametrize("method", ["normal", "bernstein", "anytime"])
def test_what_reports_disclose_is_exact_among_respondents(method: str):
    estimate = estimate_values(BLOCKS, block_statistic((0, 3, 4)), 7, method=method)
    blocks = BLOCKS.groups[0]
    # One value: its share. A block that nobody reported: exactly 0, never c^2/n.
    for block, share in ((1, 3 / 7), (0, 0.0)):
        known = blocks == block
        np.testing.assert_array_equal(estimate.value[known], share)
        np.testing.assert_array_equal(estimate.se[known], 0.0)
        np.testing.assert_array_equal(estimate.low[known], share)
        np.testing.assert_array_equal(estimate.high[known], share)
    noisy = blocks == 2
    assert (estimate.se[noisy] > 0).all()
    assert (estimate.lowest[noisy] < estimate.value[noisy]).all()


@pytest.mark.parametrize("method", ["normal", "bernstein", "anytime"])
def test_nothing_is_exact_about_the_population(method: str):
    options = {"estimand": "population", "method": method}
    estimate = estimate_values(BLOCKS, block_statistic((0, 3, 4)), 7, **options)
    assert (estimate.se > 0).all()
    assert (estimate.lowest < estimate.value).all()
    assert (estimate.value < estimate.highest).all()


@pytest.mark.parametrize("mechanism", [WARNER, BLOCKS], ids=["unstructured", "blocks"])
@pytest.mark.parametrize(("estimand", "method"), [*KINDS, *ANYTIME_KINDS])
def test_no_report_defines_nothing(mechanism: Dense, estimand: str, method: str):
    empty = np.zeros(mechanism.outputs, dtype=np.int64)
    options = {"estimand": estimand, "method": method}
    estimates = [
        estimate_values(mechanism, empty, 0, **options),
        estimate_sets(mechanism, empty, 0, [np.array([0])], **options),
        estimate_linear(mechanism, empty, 0, np.ones((1, mechanism.size)), **options),
    ]
    for estimate in estimates:
        for array in (estimate.value, estimate.se, estimate.low, estimate.high, estimate.influence):
            assert array.size > 0
            assert np.isnan(array).all()


@pytest.mark.parametrize(("estimand", "method"), KINDS)
def test_one_report_defines_the_value_and_what_needs_no_second(estimand: str, method: str):
    options = {"estimand": estimand, "method": method}
    estimate = estimate_values(WARNER, np.array([0, 1]), 1, **options)
    np.testing.assert_allclose(estimate.value, [-1.0, 2.0])
    np.testing.assert_allclose(estimate.influence, 3.0)
    defined = estimand == "respondents"
    assert np.isfinite(estimate.se).all() == defined
    assert np.isfinite(estimate.low).all() == (defined and method == "normal")
    exact = estimate_values(BLOCKS, block_statistic((0, 1, 0)), 1, **options)
    known = BLOCKS.groups[0] == 1
    np.testing.assert_array_equal(exact.value[known], 1.0)
    assert (exact.low[known] == 1.0).all() == defined


def test_what_a_designed_channel_discloses_is_not_known_of_the_population():
    # Blocks that are disclosed, by a mechanism that lists no groups.
    channel = np.zeros((5, 5))
    channel[:2, :2] = channel[2:4, 2:4] = [[0.75, 0.25], [0.25, 0.75]]
    channel[4, 4] = 1.0
    mechanism, n = Dense(channel), 100
    statistic = np.array([30, 20, 25, 25, 0])
    sets = [np.array([4]), np.arange(4), np.arange(5)]
    respondents = estimate_sets(mechanism, statistic, n, sets)
    np.testing.assert_array_equal(respondents.low, respondents.high)
    found = estimate_sets(mechanism, statistic, n, sets, estimand="population")
    # Nobody reported the last value, whose share may be small: as in blocks, one report's worth.
    np.testing.assert_allclose(found.se, [1 / n, 1 / n, 0.0], atol=1e-12)
    assert (found.low < found.high).tolist() == [True, True, False]


@pytest.mark.parametrize(
    "mechanism",
    [
        RandomizedResponse(12.0, Blocks.one(6)),
        L1Geometric(12.0, (6,)),
        HighLow(12.0, 6, frozenset({0})),
    ],
    ids=lambda mechanism: mechanism.id,
)
def test_hardly_any_noise_does_not_make_a_population_known(mechanism: Mechanism):
    # 200 reports of two values: every other value may still have one respondent in 200.
    n, values = 200, np.repeat([2, 3], 100)
    statistic = counted(mechanism, values, 4)
    sets = [np.array([1]), np.array([4, 5]), np.arange(6)]
    respondents = estimate_sets(mechanism, statistic, n, sets).se
    assert (respondents < 0.1 / n).all()
    found = estimate_sets(mechanism, statistic, n, sets, estimand="population").se
    np.testing.assert_allclose(found, [1 / n, 1 / n, 0.0], atol=1e-12)
    np.testing.assert_allclose(
        estimate_values(mechanism, statistic, n, estimand="population").se[2:],
        [0.5 / math.sqrt(n - 1)] * 2 + [1 / n] * 2,
        rtol=1e-2,
    )


@pytest.mark.parametrize("n", [20, 200])
def test_a_block_that_nobody_reported_may_still_exist(n: int):
    """Few reports bound neither its share of the population nor the variance that comes with it."""
    mechanism = SubsetSelection(0.3, Blocks(np.array([0, 0, 1, 1, 1, 1])))
    values = np.zeros(n, dtype=np.int64)
    statistic = counted(mechanism, values, 1)
    keywords = {"method": "bernstein", "confidence": 0.95}
    people = estimate_values(mechanism, statistic, n, estimand="population", **keywords)
    # A block of share 3/n is unseen with probability 0.05: its noise must fit into the bounds.
    share, noise = 3.0 / n, mechanism.decoder.noise_extremes()[1]
    variance = share * noise / n
    half = (people.highest - people.lowest) / 2.0
    assert (half[2:] >= np.sqrt(2.0 * variance[2:] * np.log(2.0 / 0.05))).all()
    present = estimate_values(mechanism, statistic, n, estimand="respondents", **keywords)
    assert (present.high[2:] == 0.0).all()
    assert (present.low[2:] == 0.0).all()

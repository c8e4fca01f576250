"""Bounds cover the truth as often as they say: a short `benchmarks.accuracy.coverage_grid`.

Prefixes cover, so quantiles, which invert their bounds, do; lists of all values cover, so the
largest ones, chosen among them, do. Seeds are fixed. With other seeds a check fails with
probability below 1e-6 / CHECKS as long as the true coverage is at least what `LEAST` says: the
numbers below are binomial tails.
"""

import numpy as np
import pytest
from benchmarks.accuracy.coverage_grid import FILES, MECHANISMS, TOGETHER, cells, shares_of
from benchmarks.accuracy.repeated import AffineSums, draw, privatized, subset_counts
from benchmarks.accuracy.simulate import Case
from scipy.stats import binom, norm

from ldpstream.estimators.bounds.bounded import bound
from ldpstream.estimators.bounds.options import Method, Options
from ldpstream.estimators.estimate import estimate_values, value_sums
from ldpstream.mechanisms import MECHANISMS as REGISTERED
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.families.subset.selection import SubsetSelection
from tests.exact.enumeration import accumulated
from tests.soak import chosen

CHECKS = 10_000
TAIL = 1e-6 / CHECKS
EVERY = {**MECHANISMS, **FILES}
METHODS: tuple[Method, ...] = ("padded", "normal", "bernstein")
REPETITIONS = chosen(120, soak=1_000)
LEAST: dict[Method, float] = {"padded": 0.935, "normal": 0.925, "bernstein": 0.98}


def case_of(name: str, n: int) -> Case:
    mechanism = EVERY[name](1.0)
    return Case(name, mechanism, "rare", shares_of(0.1, mechanism.size), n)


def test_every_registered_mechanism_is_measured():
    # Records have estimates of each attribute alone: test_sampled.
    assert {make(1.0).id for make in EVERY.values()} | {"sampled"} == set(REGISTERED)


@pytest.mark.soak
@pytest.mark.parametrize("name", EVERY)
def test_bounds_of_every_query_and_list(name: str):
    for cell in cells(name, 1.0, [5_000], [0.1], REPETITIONS, methods=METHODS):
        for method, covered in cell.covered.items():
            target = max(LEAST[method], 0.945 if cell.query in TOGETHER else 0.0)
            assert covered >= binom.ppf(TAIL, REPETITIONS, target) / REPETITIONS, cell


@pytest.mark.parametrize("name", {make(1.0).id: name for name, make in EVERY.items()}.values())
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("together", [False, True])
def test_what_is_measured_is_what_is_published(name: str, method: Method, together: bool):
    """The sums of many statistics at once are those of each alone, and so are their bounds."""
    case = case_of(name, 500)
    mechanism, (_, statistics) = case.mechanism, draw(case, 2, 1)
    sums = AffineSums.of(mechanism, lambda s: value_sums(mechanism, s, mechanism.count(s)))
    options = {"method": method, "estimand": "population", "simultaneous": together}
    many = bound(sums.at(statistics), case.n, Options(**options))
    for place, statistic in enumerate(statistics):
        values = estimate_values(mechanism, statistic, case.n, **options)
        np.testing.assert_allclose(many.low[place], values.low, atol=1e-8)
        np.testing.assert_allclose(many.high[place], values.high, atol=1e-8)


@pytest.mark.parametrize("name", ["l1-bits", "matrix, prefix", "matrix, haar", "subset-selection"])
def test_sums_drawn_at_once_are_distributed_as_privatized_ones(name: str):
    """Means and variances of every entry, normal at 100 users a repetition."""
    case, repetitions = case_of(name, 100), 400
    counts, drawn = draw(case, repetitions, 1)
    reference = privatized(case.mechanism, counts, 2)
    # The same users: the difference is noise of mean 0.
    difference = (drawn - reference).astype(np.float64)
    bar = norm.isf(TAIL / 2)
    error = difference.std(axis=0) / np.sqrt(repetitions)
    assert (np.abs(difference.mean(axis=0)) <= bar * error + 1e-12).all()
    # Sums of 100 users' noise: the variance's own error is sqrt(2/r) and a little for the tails.
    spread = drawn - drawn.mean(axis=0), reference - reference.mean(axis=0)
    first, second = ((part**2).mean(axis=0) for part in spread)
    noisy = second > 0.0
    np.testing.assert_array_equal(noisy, first > 0.0)
    ratio = np.log(first[noisy] / second[noisy])
    assert (np.abs(ratio) <= bar * 2.0 * np.sqrt(1.3 / repetitions)).all()


def test_subsets_of_one_user_are_drawn_as_their_channel_says():
    """Compared as whole subsets: the values in one depend on each other."""
    mechanism = SubsetSelection(0.3, Blocks(np.array([0] * 7 + [1] * 2)))
    channel, reports, repetitions = mechanism.channel(), mechanism.possible_reports(), 20_000
    rng = np.random.default_rng(5)
    for value in (0, 3, 6, 8):
        counts = np.zeros((repetitions, mechanism.size), dtype=np.int64)
        counts[:, value] = 1
        drawn = subset_counts(mechanism, counts, rng)
        for output, probability in channel.rows[value].items():
            statistic = accumulated(mechanism, reports[output : output + 1])
            found = int((drawn == statistic).all(axis=1).sum())
            least, largest = binom.ppf([TAIL, 1.0 - TAIL], repetitions, float(probability))
            assert least <= found <= largest

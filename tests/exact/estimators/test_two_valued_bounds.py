"""Coverage of two-valued shares, enumerated over every number of decisive reports."""

from collections import defaultdict
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from ldpstream.estimators.bounds.e_values import Tally, lowest_means
from ldpstream.estimators.bounds.options import Estimand, Method, Sampling
from ldpstream.estimators.bounds.two_valued import (
    FEW,
    Tosses,
    clopper_pearson,
    enumerated,
    quantile,
    tails,
)
from ldpstream.estimators.bounds.types import Estimate
from ldpstream.estimators.estimate import estimate_sets, estimate_values
from ldpstream.estimators.weights import estimate_linear
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.families.block.hadamard import BlockHadamard
from ldpstream.mechanisms.families.design.mechanism import RandomizedResponse
from ldpstream.mechanisms.families.l1.bits import L1Bits
from ldpstream.mechanisms.families.l1.geometric import L1Geometric
from ldpstream.mechanisms.families.tree.tree import Tree
from ldpstream.mechanisms.interface.mechanism import Mechanism
from tests.exact.enumeration import counted

Floats = NDArray[np.float64]
SHARES = (0.001, 0.01, 0.05, 0.2, 0.5)
MECHANISMS: dict[str, Mechanism] = {
    "randomized-response 2, 0.5": RandomizedResponse(0.5, Blocks.one(2)),
    "randomized-response 40, 1": RandomizedResponse(1.0, Blocks.one(40)),
    "randomized-response 8, 4": RandomizedResponse(4.0, Blocks.one(8)),
    "hadamard 3, 2": BlockHadamard(2.0, Blocks.one(3)),
    "hadamard 3, 8": BlockHadamard(8.0, Blocks.one(3)),
}


@cache
def chances(name: str) -> tuple[int, int, float, float]:
    """Return a decisive output, another, and how often users inside and outside send the first."""
    rows = MECHANISMS[name].channel().rows
    outputs = range(len(rows[0]))
    decisive = max(outputs, key=lambda y: rows[0][y] - rows[1][y])
    other = min(outputs, key=lambda y: rows[0][y] - rows[1][y])
    own = [y for y in outputs if rows[0][y] == rows[0][decisive]]
    inside, outside = (float(sum(row[y] for y in own)) for row in rows[:2])
    return decisive, other, inside, outside


def coverage(name: str, n: int, estimand: Estimand, method: Method) -> list[float]:
    mechanism = MECHANISMS[name]
    decisive, other, inside, outside = chances(name)
    low, high = np.empty(n + 1), np.empty(n + 1)
    options: Any = {"method": method, "estimand": estimand}
    for d in range(n + 1):
        statistic = mechanism.empty()
        statistic[decisive], statistic[other] = d, n - d
        found = estimate_values(mechanism, statistic, n, values=np.array([0]), **options)
        low[d], high[d] = found.low[0], found.high[0]
    out = []
    for share in SHARES:
        people = round(share * n)
        if estimand == "respondents":
            truth = people / n
            chance = np.convolve(
                binom.pmf(np.arange(people + 1), people, inside),
                binom.pmf(np.arange(n - people + 1), n - people, outside),
            )
        else:
            truth = share
            chance = binom.pmf(np.arange(n + 1), n, outside + share * (inside - outside))
        out.append(float(chance[(low <= truth + 1e-12) & (truth <= high + 1e-12)].sum()))
    return out


@pytest.mark.grid
@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("estimand", ["population", "respondents"])
def test_the_default_covers_as_enumerated(name: str, estimand: Estimand):
    least = 0.935 if estimand == "population" else 0.933
    assert min(coverage(name, 60, estimand, "padded")) >= least
    assert min(coverage(name, 60, estimand, "exact")) >= 0.95


def one(number: float) -> Floats:
    return np.array([float(number)])


def coins(rng: np.random.Generator) -> tuple[float, float]:
    """Draw two chances, often near 0 or 1, or exactly these."""
    other, own = np.sort(rng.random(2) ** rng.choice([0.2, 1.0, 4.0]))
    certain = rng.random(2) < 0.2
    return (1.0 if certain[0] else float(own)), (0.0 if certain[1] else float(other))


def test_the_distribution_of_decisive_reports_is_the_convolution():
    rng = np.random.default_rng(4)
    for _ in range(150):
        n = int(rng.integers(1, 120))
        a, (own, other) = int(rng.integers(0, n + 1)), coins(rng)
        chance = np.convolve(
            binom.pmf(np.arange(a + 1), a, own), binom.pmf(np.arange(n - a + 1), n - a, other)
        )
        for d in (-1, 0, n // 3, round(a * own + (n - a) * other), n - 1, n):
            found = tails(one(a), one(n), one(own), one(other), one(d))
            for tail, expected in zip(
                found, (chance[: d + 1].sum(), chance[d + 1 :].sum()), strict=True
            ):
                assert tail[0] == pytest.approx(expected, rel=1e-8, abs=1e-12)
            # The smaller of both has all its digits.
            least = min(chance[: d + 1].sum(), chance[d + 1 :].sum())
            assert min(found)[0] == pytest.approx(least, rel=1e-7, abs=1e-40)


E = float(np.exp(1.0))
LARGE = [
    (0.7, 0.3, 0.2, 200, -4.0, 2.528360187e-5),
    (0.7, 0.3, 0.2, 200, -1.96, 0.0256684421),
    (0.9, 0.1, 0.3, 10**8, -1.96, 0.02500468385),
    (E / (1 + E), 1 / (1 + E), 0.3, 10**11, -1.96, 0.02499774181),
    (0.3, 0.3, 0.3, 10**8, -3.0, 0.00134960176),
]


@pytest.mark.parametrize(("own", "other", "share", "n", "z", "expected"), LARGE)
def test_tails_of_many_reports_keep_their_digits(
    own: float, other: float, share: float, n: int, z: float, expected: float
):
    a = round(share * n)
    mean = a * own + (n - a) * other
    deviation = np.sqrt(a * own * (1.0 - own) + (n - a) * other * (1.0 - other))
    d = np.floor(mean + z * deviation)
    below, above = tails(one(a), one(n), one(own), one(other), one(d))
    assert below[0] == pytest.approx(expected, rel=1e-8)
    assert above[0] == pytest.approx(1.0 - below[0], rel=1e-15)
    # The mirrored tail of the other outcomes.
    _, mirrored = tails(one(n - a), one(n), one(1 - other), one(1 - own), one(n - d - 1))
    assert mirrored[0] == pytest.approx(below[0], rel=1e-8)


@pytest.mark.parametrize("n", [10**8, 10**11, 10**15, 10**17])
def test_exact_bounds_of_many_respondents_are_those_of_a_normal_noise(n: int):
    """At once, and with no more memory than for few."""
    mechanism = RandomizedResponse(1.0, Blocks.one(2))
    statistic = np.array([4 * n // 10, n - 4 * n // 10])
    for level in (0.05, 1e-9):
        found = estimate_values(mechanism, statistic, n, method="exact", confidence=1.0 - level)
        assert set(found.form) == {"enumerated"}
        half = quantile(level) * found.se
        np.testing.assert_allclose(found.high - found.value, half, rtol=2e-4)
        np.testing.assert_allclose(found.value - found.low, half, rtol=2e-4)


def test_clopper_and_pearsons_ends_may_err_where_less_than_one_report_is_expected():
    """One coin of 0.02531 and others of 0: the low end excludes them if it comes up."""
    mean = 0.02531
    tosses = Tosses(one(1000.0), one(1.0), one(1.0), one(0.0))
    low, _ = clopper_pearson(tosses, 0.05)
    assert 1.0 - (1.0 - mean / 1000.0) ** 1000 < 0.025 < mean
    assert low[0] * 1000.0 > mean
    assert mean - 0.025 < mean**2 / 2.0 < 3.3e-4


def test_enumerated_bounds_are_the_shares_whose_tails_are_not_too_small():
    n, own, other, level = 30, 0.9, 0.2, 0.1
    for d in range(n + 1):
        tosses = Tosses(*(np.array([float(x)]) for x in (n, d, own, other)))
        low, high = enumerated(tosses, level)
        kept = []
        for a in range(n + 1):
            chance = np.convolve(
                binom.pmf(np.arange(a + 1), a, own), binom.pmf(np.arange(n - a + 1), n - a, other)
            )
            if min(chance[d:].sum(), chance[: d + 1].sum()) > level / 2:
                kept.append(a)
        if kept:
            assert (round(low[0] * n), round(high[0] * n)) == (kept[0], kept[-1])


def test_a_value_that_nobody_holds_in_a_block_of_many_is_covered():
    """The block's score interval alone covers 0.83998: it needs decisive reports."""
    z = quantile(0.05 / 1001)
    assert z == pytest.approx(4.05586, abs=5e-6)
    assert FEW * z**2 == pytest.approx(65.80, abs=5e-3)
    mechanism, n = RandomizedResponse(5.0, Blocks(np.repeat([0, 1], [1000, 1]))), 200
    inside = np.zeros(12, dtype=np.bool_)
    for d in range(inside.size):
        statistic = mechanism.empty()
        statistic[:2] = d, n - d
        options: Any = {"values": np.array([0]), "estimand": "population"}
        found = estimate_values(mechanism, statistic, n, **options)
        inside[d] = found.low[0] <= 0.0
    outside = 1.0 / (np.exp(5.0) + 999.0)
    assert binom.sf(inside.size - 1, n, outside) < 1e-12
    chance = binom.pmf(np.arange(inside.size), n, outside)[inside].sum()
    assert chance == pytest.approx(0.99924, abs=5e-6)


def form(mechanism: Mechanism, counts: list[int], **options: Any) -> list[str]:
    statistic = np.array(counts, dtype=np.int64)
    found: Estimate = estimate_values(mechanism, statistic, sum(counts), **options)
    return [str(one) for one in found.form]


def test_every_entry_says_how_it_was_bounded():
    line = RandomizedResponse(1.0, Blocks.one(3))
    blocks = RandomizedResponse(1.0, Blocks(np.array([0, 0, 0, 1, 1, 2])))
    population: Any = {"estimand": "population"}
    assert form(line, [400, 300, 10], **population) == ["wilson", "wilson", "clopper-pearson"]
    assert set(form(line, [400, 300, 10], simultaneous=True, **population)) == {"clopper-pearson"}
    assert form(line, [400, 300, 10]) == ["score"] * 3
    assert form(line, [4, 3, 1]) == ["enumerated"] * 3
    assert form(line, [400, 300, 10], method="exact") == ["enumerated"] * 3
    assert form(line, [400, 300, 10], method="normal") == ["normal"] * 3
    counts = [90, 80, 30, 9, 1, 40]
    found = form(blocks, counts, **population)
    assert found == ["block"] * 3 + ["product"] * 2 + ["wilson"]
    # Few decisive reports, and lists, need the tails as they are.
    rare = form(blocks, [400, 9, 8, 9, 1, 40], **population)
    assert rare == ["block", *["product"] * 4, "wilson"]
    assert set(form(blocks, counts, simultaneous=True, **population)[:5]) == {"product"}
    assert form(blocks, counts) == ["score"] * 3 + ["enumerated"] * 2 + ["known"]
    sets = [np.arange(6), np.array([0, 1, 2]), np.array([0, 3])]
    statistic = np.array(counts)
    of_people = estimate_sets(blocks, statistic, 250, sets)
    assert list(of_people.form) == ["known", "known", "noise"]
    of_all = estimate_sets(blocks, statistic, 250, sets, estimand="population")
    assert list(of_all.form) == ["known", "wilson", "padded"]
    few = estimate_sets(blocks, np.array([1, 1, 0, 0, 1, 0]), 3, sets[2:])
    assert list(few.form) == ["range"]
    # So few reports leave the whole range of a share.
    assert (few.low[0], few.high[0]) == (0.0, 1.0)


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


MIXED = {"tree": Tree(1.0, Blocks.one(20)), "geometric": L1Geometric(0.5, (20,))}
SETS = [np.arange(5), np.arange(3, 15), np.array([4]), np.arange(20)]


@pytest.mark.parametrize("estimand", ["respondents", "population"])
@pytest.mark.parametrize("name", MIXED)
def test_exact_bounds_of_sets_values_and_weights_are_e_values(name: str, estimand: Any):
    mechanism = MIXED[name]
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
    mechanism, values = MIXED["tree"], np.repeat(np.arange(20), 50)
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

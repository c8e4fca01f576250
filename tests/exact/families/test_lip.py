"""`lip` against its definition: exact bounds at every prior, brute force, and the paper's channel.

The realised thresholds are rationals, so losses, bias and variances are enumerated without any
rounding.
"""

import dataclasses
import math
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
from benchmarks.papers import lip_theory
from benchmarks.papers.lip_curves import Users, root_error

from ldpstream.mechanisms.exact.dyadic import budget, exp_bounds, exp_floor
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.families.lip.domain import Prior
from ldpstream.mechanisms.families.lip.lip import Lip
from ldpstream.mechanisms.policies.lip import Level, interval_around, largest_lift, level_thresholds

PRIORS = [1e-4, 1e-3, 0.01, 0.1, 0.2689, 0.269, 0.3, 0.5, 0.62, 0.9, 0.99, 0.9999]
EPSILONS = [0.1, 0.3, 0.5, 1.0, 2.0, 5.0]
GRID = [(p, e) for p in PRIORS for e in EPSILONS]
EVERY = pytest.mark.parametrize(("prior", "epsilon"), GRID)
INTERVALS = [(0.4, 0.6), (0.0, 0.01), (0.05, 0.3), (0.9, 1.0), (0.25, 0.2501), (0.0, 1.0)]


def odds_moved(prior: Fraction, one: Fraction, zero: Fraction) -> list[Fraction]:
    """Straight from the definition: `P(X = x | y) / P(X = x)` of both x, by Bayes' rule."""
    seen = prior * one + (1 - prior) * zero
    return [prior * one / seen / prior, (1 - prior) * zero / seen / (1 - prior)]


def losses_by_definition(prior: Fraction, thresholds: tuple[int, int]) -> list[Fraction]:
    q, r = (Fraction(t, WORD) for t in thresholds)
    moved = odds_moved(prior, r, q) + odds_moved(prior, 1 - r, 1 - q)
    return [max(ratio, 1 / ratio) for ratio in moved]


@EVERY
def test_the_realised_loss_is_at_most_epsilon(prior: float, epsilon: float):
    (pair,) = Lip(Prior(prior), (epsilon,)).thresholds
    least_growth = exp_bounds(budget(epsilon))[0]
    for reading in (Fraction(prior), Fraction(repr(prior))):
        worst = max(losses_by_definition(reading, pair))
        assert worst <= least_growth
        assert math.log(worst) >= epsilon * (1 - 1e-9)


@EVERY
def test_the_error_is_that_of_brute_force(prior: float, epsilon: float):
    """Over all pairs of posteriors of a fine grid that LIP allows: the least mean of a(1 - a)."""
    allowed = (
        [prior * math.exp(s * epsilon) for s in (-1, 1)],
        [1 - (1 - prior) * math.exp(s * epsilon) for s in (-1, 1)],
    )
    low = max(allowed[0][0], min(allowed[1]))
    high = min(allowed[0][1], max(allowed[1]))
    below = np.linspace(low, prior, 400, endpoint=False)[:, None]
    above = np.linspace(high, prior, 400, endpoint=False)[None, :]
    ones = (prior - below) / (above - below)
    best = (ones * above * (1 - above) + (1 - ones) * below * (1 - below)).min()
    assert lip_theory.opt_lip_error(prior, epsilon) == pytest.approx(best, rel=1e-3)
    (pair,) = Lip(Prior(prior), (epsilon,)).thresholds
    q, r = (np.float64(t / WORD) for t in pair)
    realised = lip_theory.error(prior, lip_theory.Flips(q, 1.0 - r))
    assert realised == pytest.approx(best, rel=1e-3)
    assert realised == pytest.approx(float(lip_theory.opt_lip_error(prior, epsilon)), rel=1e-9)


@pytest.mark.parametrize(
    ("prior", "epsilon", "loss"), [(0.01, 1.0, 4.15), (0.1, 1.0, 1.90), (0.99, 1.0, 4.15)]
)
def test_the_papers_optimum_violates_its_own_bound(prior: float, epsilon: float, loss: float):
    """[LIP] Theorem 2, in exact rationals with e^eps taken too large and too small."""
    for growth in exp_bounds(Fraction(epsilon)):
        p = Fraction(repr(prior))
        q, r = p / growth, 1 - (1 - p) / growth
        moved = odds_moved(p, r, q) + odds_moved(p, 1 - r, 1 - q)
        worst = max(max(m, 1 / m) for m in moved)
        assert worst > exp_bounds(Fraction(epsilon))[1]
        assert math.log(worst) == pytest.approx(loss, abs=0.005)
    found = lip_theory.realised_loss(prior, lip_theory.paper_lip(prior, epsilon))
    assert found == pytest.approx(loss, abs=0.005)


@pytest.mark.grid
@pytest.mark.parametrize("interval", INTERVALS, ids=str)
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 3.0])
def test_a_levels_channel_holds_for_every_prior_in_it(
    interval: tuple[float, float], epsilon: float
):
    level = Level(Fraction(interval[0]), Fraction(interval[1]), budget(epsilon))
    pair = level_thresholds(level)
    growth = exp_floor(budget(epsilon))
    width = level.high - level.low
    priors = [level.low + width * Fraction(i, 200) for i in range(201)]
    losses = [max(losses_by_definition(p, pair)) for p in priors if 0 < p < 1]
    assert max(losses) <= growth
    lift = largest_lift(level, pair)
    assert max(losses) <= lift.ratio <= growth
    assert math.log(lift.ratio) == pytest.approx(epsilon, rel=1e-12)


@pytest.mark.grid
@pytest.mark.parametrize("interval", INTERVALS[:5], ids=str)
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_no_channel_of_the_level_does_better(interval: tuple[float, float], epsilon: float):
    """Brute force over all pairs of flips, feasible at 7 priors of the level."""
    low, high = max(interval[0], 1e-6), min(interval[1], 1 - 1e-6)
    level = Level(Fraction(interval[0]), Fraction(interval[1]), budget(epsilon))
    q, r = (t / WORD for t in level_thresholds(level))
    steps = np.linspace(1e-4, 1 - 1e-4, 300)
    flips = lip_theory.Flips(steps[:, None], steps[None, :])
    kept = np.ones((300, 300), dtype=bool)
    for prior in np.linspace(low, high, 7):
        kept &= lip_theory.realised_loss(prior, flips) <= epsilon
    for prior in (low, (low + high) / 2, high):
        best = lip_theory.error(prior, flips)[kept].min()
        ours = lip_theory.error(prior, lip_theory.Flips(np.float64(q), np.float64(1 - r)))
        assert ours <= best * (1 + 1e-9)


def test_the_midpoints_optimum_does_not_hold_for_its_level():
    flips = lip_theory.opt_lip(0.5, 0.5)
    losses = [float(lip_theory.realised_loss(p, flips)) for p in (0.4, 0.5, 0.6)]
    assert losses[1] == pytest.approx(0.5)
    assert max(losses) == pytest.approx(0.576, abs=0.001)


@pytest.mark.parametrize("levels", [1, 2, 7, 64, 1000])
def test_levels_cover_all_priors_and_floats_next_to_their_edges(levels: int):
    prior = Prior(levels=levels)
    edges = prior.edges
    assert (edges[0], edges[-1], len(edges)) == (0.0, 1.0, levels + 1)
    between = zip(pairwise(edges), prior.representatives, strict=True)
    assert all(low < middle < high for (low, high), middle in between)
    assert np.allclose(edges, 1.0 - np.array(edges[::-1]), rtol=0, atol=1e-15)
    intervals = [interval_around(a, b) for a, b in pairwise(edges)]
    for (_, above), (below, _) in pairwise(intervals):
        assert below < above


@pytest.mark.grid
@EVERY
def test_one_unit_less_of_a_flip_fails_and_is_named(prior: float, epsilon: float):
    """At exactly the prior nothing is to spare, so one unit of 2^-64 is too much."""
    mechanism = Lip(Prior(prior), (epsilon,))
    level = Level(Fraction(prior), Fraction(prior), budget(epsilon))
    q, r = level_thresholds(level)
    for output, pair in ((1, (q - 2, r)), (0, (q, r + 2))):
        broken = dataclasses.replace(mechanism)
        vars(broken)["levels"] = (level,)
        vars(broken)["thresholds"] = (pair,)
        certificate = broken.certify()
        assert not certificate.passed
        assert f"level 0 (prior {prior:g}..{prior:g}, epsilon" in str(certificate.violation)
        assert f"at output {output}: loss" in str(certificate.violation)
    vars(broken)["thresholds"] = ((q, r),)
    assert broken.certify().passed


def test_a_midpoint_channel_fails_the_certificate_of_its_level_by_name():
    mechanism = Lip(Prior(levels=8), (1.0, 0.5))
    pairs = list(mechanism.thresholds)
    flips = lip_theory.opt_lip(mechanism.prior.representatives[3], 0.5)
    pairs[7] = (math.ceil(float(flips.zero) * WORD), WORD - math.ceil(float(flips.one) * WORD))
    vars(mechanism)["thresholds"] = tuple(pairs)
    certificate = mechanism.certify()
    assert str(certificate.violation).startswith("level 7 (prior 0.264706..0.5, epsilon 0.5)")
    assert not certificate.passed


def test_the_budgets_have_losses_of_their_own():
    certificate = Lip(Prior(levels=5), (2.0, 0.5)).certify()
    assert [float(loss.budget) for loss in certificate.losses] == [0.5, 2.0]
    assert all(loss.high <= float(loss.budget) for loss in certificate.losses)


@pytest.mark.parametrize("prior", [5e-324, 1e-300, math.nextafter(1.0, 0.0)])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 50.0])
def test_the_most_extreme_priors_are_certified(prior: float, epsilon: float):
    assert Lip(Prior(prior), (epsilon,)).certify().passed


@pytest.mark.parametrize("prior", [0.001, 0.3, 0.5])
def test_the_smallest_budgets_still_say_something(prior: float):
    assert Lip(Prior(prior), (1e-18,)).certify().passed


@pytest.mark.parametrize(("prior", "epsilon"), [(0.05, 1.0), (0.3, 0.5), (0.5, 1.0), (0.8, 2.0)])
def test_three_reports_do_no_better(prior: float, epsilon: float):
    """Brute force over channels of three reports: random posteriors with mean P, LIP at each."""
    rng = np.random.default_rng(11)
    low, high = lip_theory.lip_posteriors(prior, epsilon)
    a = rng.uniform(low, high, (200_000, 3))
    u = rng.dirichlet(np.ones(3), 200_000)
    # Two of the posteriors are drawn, the third makes the mean the prior.
    a[:, 2] = (prior - u[:, 0] * a[:, 0] - u[:, 1] * a[:, 1]) / u[:, 2]
    fits = (a[:, 2] >= low) & (a[:, 2] <= high)
    errors = (u * a * (1 - a)).sum(axis=1)[fits]
    assert fits.sum() > 1000
    assert errors.min() >= lip_theory.opt_lip_error(prior, epsilon) * (1 - 1e-12)


@EVERY
def test_the_papers_optimum_where_it_keeps_the_bound(prior: float, epsilon: float):
    """It violates exactly where min(P, 1 - P) < 1/(e^eps + 1); elsewhere it is the same."""
    paper = lip_theory.paper_lip(prior, epsilon)
    violates = lip_theory.realised_loss(prior, paper) > epsilon * (1 + 1e-9)
    assert violates == (min(prior, 1 - prior) < 1 / (math.exp(epsilon) + 1))
    ours = lip_theory.opt_lip(prior, epsilon)
    assert lip_theory.realised_loss(prior, ours) == pytest.approx(epsilon, rel=1e-9)
    if violates:
        assert lip_theory.error(prior, paper) < lip_theory.error(prior, ours)
    else:
        assert ours.zero == pytest.approx(paper.zero, rel=1e-9)
        assert ours.one == pytest.approx(paper.one, rel=1e-9)


@pytest.mark.grid
@EVERY
def test_lip_implies_twice_the_budget_of_ldp(prior: float, epsilon: float):
    mechanism = Lip(Prior(prior), (epsilon,))
    implied = mechanism.certify().to_json()["policy"]["implied_ldp"]
    assert epsilon * (1 - 1e-9) <= implied <= 2 * epsilon
    assert implied == mechanism.policy.matrix().max()


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0, 5.0])
def test_ldp_channels_keep_lip_at_every_prior(epsilon: float):
    """And so one level of all priors is randomised response."""
    flips = lip_theory.opt_ldp(epsilon)
    for prior in (1e-6, 0.01, 0.3, 0.5, 0.999):
        assert lip_theory.realised_loss(prior, flips) <= epsilon * (1 + 1e-12)
    ((q, r),) = Lip(Prior(levels=1), (epsilon,)).thresholds
    assert q / WORD == pytest.approx(float(flips.zero), rel=1e-12)
    assert 1 - r / WORD == pytest.approx(float(flips.one), rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.2, 0.5, 1.0, 2.0, 4.0, 8.0])
def test_the_order_of_the_errors(epsilon: float):
    """eps/2-LIP is worse than eps-LDP, which is worse than eps-LIP: docs/theory.md, corrections."""
    priors = np.concatenate([np.geomspace(1e-4, 0.5, 60), 1 - np.geomspace(1e-4, 0.5, 60)])
    ldp = lip_theory.error(priors, lip_theory.opt_ldp(epsilon))
    assert (lip_theory.opt_lip_error(priors, epsilon / 2) >= ldp * (1 - 1e-12)).all()
    assert (ldp >= lip_theory.opt_lip_error(priors, epsilon) * (1 - 1e-12)).all()
    symmetric = lip_theory.symmetric_lip(priors, epsilon)
    assert lip_theory.realised_loss(priors, symmetric) == pytest.approx(epsilon, rel=1e-9)
    between = lip_theory.error(priors, symmetric)
    assert (between >= lip_theory.opt_lip_error(priors, epsilon) * (1 - 1e-12)).all()
    assert (ldp >= between * (1 - 1e-12)).all()
    assert (lip_theory.context_free_error(epsilon) >= ldp).all()


def test_the_figures_of_the_theory():
    gains = [
        float(lip_theory.error(p, lip_theory.opt_ldp(1.0)) / lip_theory.opt_lip_error(p, 1.0))
        for p in (0.5, 0.1, 0.01)
    ]
    assert gains == pytest.approx([1.31, 1.036, 1.0003], abs=0.005)
    assert 100 * lip_theory.opt_lip_error(0.1, 1.0) == pytest.approx(7.91, abs=0.005)
    assert 100 * lip_theory.context_free_error(1.0) == pytest.approx(92.1, abs=0.05)


def test_the_figures_errors_are_those_of_enumeration():
    """Three users with wrong priors: every bit and report, and the square of the sum's error."""
    users = Users(np.array([0.1, 0.4, 0.8]), np.array([0.3, 1.0, 0.5]))
    flips = lip_theory.opt_lip(users.priors, 1.0)
    expected = 0.0
    for bits in product((0, 1), repeat=3):
        for reports in product((0, 1), repeat=3):
            chance, off = 1.0, 0.0
            for i, (bit, report) in enumerate(zip(bits, reports, strict=True)):
                one, zero = 1.0 - flips.one[i], flips.zero[i]
                if not report:
                    one, zero = 1.0 - one, 1.0 - zero
                p = users.priors[i]
                chance *= users.chances[i] * one if bit else (1.0 - users.chances[i]) * zero
                off += p * one / (p * one + (1.0 - p) * zero) - bit
            expected += chance * off**2
    assert root_error(users, flips) == pytest.approx(math.sqrt(expected / 3), rel=1e-12)
    right = Users.right(users.priors)
    mean = lip_theory.opt_lip_error(users.priors, 1.0).mean()
    assert root_error(right, flips) == pytest.approx(math.sqrt(mean), rel=1e-12)

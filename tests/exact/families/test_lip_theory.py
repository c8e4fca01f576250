"""What `lip` is compared with: the paper's channel, LDP, and the order of their errors."""

import math
from itertools import product

import numpy as np
import pytest
from benchmarks.papers import lip_theory
from benchmarks.papers.lip_curves import Users, root_error

from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.families.lip.domain import Prior
from ldpstream.mechanisms.families.lip.lip import Lip
from tests.exact.families.test_lip import EVERY


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

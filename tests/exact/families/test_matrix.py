"""`matrix` against its definition: exact losses, strategies, and least squares."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.linalg import null_space

from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.exact.dyadic import exp_bounds
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.families.matrix.matrix import Matrix
from ldpstream.mechanisms.families.matrix.noise import reach
from ldpstream.mechanisms.families.matrix.strategy import STRATEGIES, Strategy
from ldpstream.mechanisms.policies.graph import GraphPolicy
from ldpstream.mechanisms.policies.matrix import MatrixPolicy
from ldpstream.mechanisms.policies.metric import MetricPolicy
from ldpstream.mechanisms.policies.policy import BinaryPolicy, BlockPolicy, HighLowPolicy, Policy
from tests.exact.specs import SIZES, built, classical, line

ASYMMETRIC = MatrixPolicy.of([[0, 0.5, 2], [1, 0, math.inf], [math.inf, 0.25, 0]])
POLICIES = [
    line(0.7, 5),
    MetricPolicy(0.3, (2, 3)),
    MetricPolicy(0.5, (3, 2), p=2),
    classical(1.0, 6),
    BlockPolicy(0.4, Blocks(np.array([0, 1, 0, 1, 1]))),
    HighLowPolicy(1.5, 4, frozenset({1, 2})),
    GraphPolicy(5, ((0, 1, Fraction(1, 3)), (1, 2, Fraction(2)), (3, 4, Fraction(1, 2)))),
    GraphPolicy(3, ((0, 1, Fraction(1)), (1, 2, Fraction(1, 2))), directed=True),
    ASYMMETRIC,
    BinaryPolicy(0.5, math.inf),
]


@pytest.mark.grid
@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("policy", POLICIES, ids=lambda p: f"{type(p).__name__}-{p.size}")
def test_every_pair_keeps_its_budget_and_some_pair_uses_it_up(policy: Policy, name: str):
    """From the definition, over all ordered pairs, with the realised alphas."""
    mechanism = built(name, policy)
    rows = mechanism.rows
    alphas = [Fraction(rows.thresholds[kind], WORD) for kind in rows.kinds]
    tight = 0.0
    for x in range(policy.size):
        for other in range(policy.size):
            budget = policy.entry(x, other)
            if budget is None or x == other:
                continue
            assert mechanism._realised.group[x] == mechanism._realised.group[other]
            gaps = np.abs(rows.entries[:, x] - rows.entries[:, other]).tolist()
            ratio = math.prod(
                (alpha**-gap for alpha, gap in zip(alphas, gaps, strict=True)), start=Fraction(1)
            )
            assert ratio <= exp_bounds(budget)[0]
            tight = max(tight, math.log(ratio) / float(budget))
    assert tight == pytest.approx(1.0, rel=1e-12)
    assert mechanism.certify().passed


@pytest.mark.parametrize("threshold", [1, 1 << 32, 1 << 63, 15 << 60, WORD - (1 << 50)])
def test_ranges_clip_less_than_a_word_resolves(threshold: int):
    alpha, beyond = Fraction(threshold, WORD), reach(threshold) + 1
    high = exp_bounds(Fraction(-beyond) * Fraction(-math.log(alpha)))[1]
    assert 2 * high / (1 + alpha) < Fraction(1, WORD) * Fraction(1001, 1000)
    if threshold <= 1 << 63:
        assert 2 * alpha**beyond / (1 + alpha) < Fraction(1, WORD)
        assert 2 * alpha ** max(beyond - 2, 0) / (1 + alpha) >= Fraction(1, WORD)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", STRATEGIES)
def test_strategies_answer_everything_with_the_number_of_reports(name: str, size: int):
    entries = STRATEGIES[name](size)
    assert np.linalg.matrix_rank(np.vstack([entries, np.ones(size)])) == size
    assert (entries != entries[:, :1]).any(axis=1).all()
    assert len(np.unique(entries, axis=0)) == len(entries)


def test_strategies_of_four_values_are_as_written_out():
    assert STRATEGIES["prefix"](4).tolist() == [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0]]
    assert STRATEGIES["haar"](4).tolist() == [[1, 1, -1, -1], [1, -1, 0, 0], [0, 0, 1, -1]]
    expected = [[1, 1, 0, 0], [0, 0, 1, 1], *np.eye(4, dtype=int).tolist()]
    assert STRATEGIES["hierarchical"](4).tolist() == expected


OWN = Strategy("file", np.array([[3, 0, 1, -2], [1, 1, 1, 1], [0, 5, -1, 1], [2, 0, 0, 7]]))


def some_mechanisms() -> list[Matrix]:
    uneven = tuple(float(s) for s in 40.0 + np.arange(6.0))
    return [
        *(built(name, classical(1.0, 7)) for name in STRATEGIES),
        built("identity", classical(1.0, 6), uneven),
        Matrix(classical(2.0, 4), OWN),
        built("haar", BlockPolicy(1.0, Blocks(np.array([0, 1, 0, 1, 1, 2])))),
    ]


@pytest.mark.parametrize("mechanism", some_mechanisms(), ids=repr)
def test_the_decoder_is_the_unbiased_one_of_least_noise(mechanism: Matrix):
    decoder, rows = mechanism.decoder, mechanism.rows
    for group in range(mechanism._groups):
        at = np.flatnonzero(mechanism._realised.group == group)
        known = np.vstack([rows.entries[:, at], np.ones(len(at))])
        solved = np.vstack([decoder.gains[:, at], decoder.offsets[at]])
        assert np.allclose(known.T @ solved, np.eye(len(at)), atol=1e-11)
        # Any other unbiased decoder adds a vector of this space: at the least, orthogonally.
        free = null_space(known.T)
        assert np.allclose(free[:-1].T @ (rows.variances[:, None] * solved[:-1]), 0.0, atol=1e-9)

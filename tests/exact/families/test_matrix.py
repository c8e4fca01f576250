"""`matrix` against its definition: losses, strategies, least squares, draws, proofs, refusals."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.linalg import null_space

from ldpstream.mechanisms import SpecError
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.exact.dyadic import exp_bounds
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.families.matrix.matrix import Matrix
from ldpstream.mechanisms.families.matrix.noise import RowCodec, reach, worst_ratios
from ldpstream.mechanisms.families.matrix.pairs import ProtectedPairs
from ldpstream.mechanisms.families.matrix.strategy import STRATEGIES, Strategy
from ldpstream.mechanisms.policies.graph import GraphPolicy
from ldpstream.mechanisms.policies.matrix import MatrixPolicy
from ldpstream.mechanisms.policies.metric import MetricPolicy
from ldpstream.mechanisms.policies.policy import BinaryPolicy, BlockPolicy, HighLowPolicy, Policy
from tests.exact.geometric_reference import matrix_as_specified
from tests.exact.specs import SIZES, built, classical, line
from tests.seeded import SeededEntropy

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


ONE = BlockPolicy(1.0, Blocks.one(6))
MECHANISMS = {
    "prefix": Matrix(MetricPolicy(0.3, (9,)), Strategy.built_in("prefix", 9)),
    "large-noise": Matrix(MetricPolicy(0.02, (4,)), Strategy.built_in("haar", 4)),
    "little-noise": Matrix(MetricPolicy(30.0, (4,)), Strategy.built_in("identity", 4)),
    "kinds": Matrix(ONE, Strategy.built_in("haar", 6), (300.0, 6.0, 9.0, 0.0001 + 7.0, 20.0)),
}


@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS.keys())
def test_the_draws_follow_the_specification(mechanism: Matrix):
    values = np.random.default_rng(1).integers(0, mechanism.size, 100)
    found = mechanism.privatize(values, entropy=SeededEntropy(2))
    assert found.tolist() == matrix_as_specified(mechanism, values.tolist(), SeededEntropy(2))


def test_many_values_are_drawn_in_batches(monkeypatch: pytest.MonkeyPatch):
    mechanism, entropy = MECHANISMS["prefix"], SeededEntropy(5)
    values = np.arange(9)
    monkeypatch.setattr(
        "ldpstream.mechanisms.families.matrix.noise._CELLS", 2 * mechanism.rows.count
    )
    found = mechanism.privatize(values, entropy=SeededEntropy(5))
    parts = [values[i : i + 2].tolist() for i in range(0, 9, 2)]
    expected = [row for part in parts for row in matrix_as_specified(mechanism, part, entropy)]
    assert found.tolist() == expected


def test_columns_are_little_endian_from_their_least_value():
    codec = RowCodec(np.array([0, -3, -1000, -(1 << 30)]), np.array([0, 252, 1000, 1 << 31]))
    assert codec.lengths.tolist() == [1, 1, 2, 4]
    assert codec.bytes == 8
    payload = codec.encode(np.array([[0, 252, 258 - 1000, 5 - (1 << 30)]]))
    assert payload.tolist() == [[0, 255, 2, 1, 5, 0, 0, 0]]
    beyond = np.array([[0, 255, 0xD0, 7, 5, 0, 0, 0], [0, 255, 0xD1, 7, 5, 0, 0, 0]])
    decoded, valid = codec.decode(beyond.astype(np.uint8))
    assert valid.tolist() == [True, False]
    assert decoded[0].tolist() == [0, 252, 1000, 5 - (1 << 30)]
    assert codec.decode(np.array([[1, 0, 0, 0, 0, 0, 0, 0]], np.uint8))[1].tolist() == [False]


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("policy", [line(9.0, 2), classical(60.0, 3)], ids=["line", "classical"])
def test_structure_finds_the_ratios_of_the_enumeration(policy: Policy, name: str):
    mechanism = built(name, policy)
    certificate = mechanism.certify()
    assert certificate.proof == "enumeration"
    enumerated = {loss.budget: loss.ratio for loss in certificate.losses}
    assert worst_ratios(mechanism.rows, mechanism.pairs) == enumerated


def test_long_ratios_are_rounded_up_and_still_prove_the_policy():
    """Prefixes of 100 values under classical LDP: products of 99 alphas, 6,336 bits each."""
    mechanism = built("prefix", classical(1.0, 100))
    certificate = mechanism.certify()
    (loss,) = certificate.losses
    exact = Fraction(WORD, mechanism.rows.thresholds[0]) ** 99
    assert certificate.passed
    assert exact <= loss.ratio <= exact * (1 + Fraction(1, 1 << 500))
    assert len(certificate.to_json()["losses"][0]["ratio"]) < 1000


def test_structure_refutes_a_smaller_policy():
    mechanism = built("haar", classical(1.0, 70))
    pairs = ProtectedPairs.of(classical(1.0 - 1e-12, 70))
    (budget, ratio), *_ = worst_ratios(mechanism.rows, pairs).items()
    assert ratio > exp_bounds(budget)[1]


def test_groups_that_distinguish_protected_values_are_refuted():
    """Blocks of 10 values, three of one block put into another."""
    mechanism = built("prefix", BlockPolicy(1.0, Blocks(np.arange(70) // 10)))
    assert mechanism.certify().passed
    group = mechanism._realised.group
    group[11:14] = (group[11:14] + 1) % 7
    certificate = mechanism.certify()
    assert not certificate.passed
    assert certificate.violation == "values 10 and 11: reports disclose which of them it is"


REFUSED = {
    "another size": (line(1.0, 3), STRATEGIES["prefix"](4), None, "policy", "one of 4 values"),
    "no budget": (
        MatrixPolicy.of([[0, 0], [1, 0]]),
        np.eye(2, dtype=int),
        None,
        "policy",
        "budgets above 0",
    ),
    "scale 0": (
        line(1.0, 3),
        STRATEGIES["prefix"](3),
        (1.0, 0.0),
        "scales[1]",
        "above 0 for a row that tells protected values apart",
    ),
    "scale whose inverse no float holds": (
        line(1.0, 3),
        STRATEGIES["prefix"](3),
        (1.0, math.ulp(0.0)),
        "scales",
        "values 1 and 2 lose 8.45",
    ),
}


@pytest.mark.parametrize(
    ("policy", "rows", "scales", "path", "expected"), REFUSED.values(), ids=REFUSED.keys()
)
def test_impossible_policies_strategies_and_scales_are_refused_by_name(
    policy: Policy, rows: np.ndarray, scales: tuple[float, ...] | None, path: str, expected: str
):
    with pytest.raises(SpecError) as caught:
        Matrix(policy, Strategy("file", rows), scales)
    assert caught.value.path == path
    assert expected in caught.value.expected


def test_scales_that_use_the_budget_up_exactly_are_accepted():
    """0.1 is read as the larger of its double and 1/10: ten times its inverse is within 100."""
    policy = GraphPolicy(3, ((0, 1, Fraction(10)), (1, 2, Fraction(8))))
    mechanism = built("prefix", policy, (0.1, 0.125))
    assert mechanism.certify().passed
    with pytest.raises(SpecError, match="values 1 and 2 lose 8"):
        built("prefix", policy, (0.1, math.nextafter(0.125, 0)))

"""Strategies of low rank: which queries they answer, exactly, and with which noise."""

from fractions import Fraction

import numpy as np
import pytest

from ldpstream.estimators.estimate import estimate_sets
from ldpstream.mechanisms import SpecError
from ldpstream.mechanisms.families.matrix import decoder as matrix_decoder
from ldpstream.mechanisms.families.matrix.decoder import PRIMES, EstimableQueries
from ldpstream.mechanisms.families.matrix.matrix import Matrix
from ldpstream.mechanisms.families.matrix.strategy import Strategy
from ldpstream.mechanisms.policies.matrix import MatrixPolicy
from tests.exact.enumeration import some_statistic
from tests.exact.specs import classical, line

ROWS = np.array([[1, 1, 0, 0, 0, 0], [1, 1, 1, 1, 0, 0], [0, 0, 1, 1, 0, 0]])


def low_rank() -> Matrix:
    # Columns differ in at most two rows, so that the scale of all rows is 2/0.5 = 4.
    return Matrix(classical(0.5, 6), Strategy("file", ROWS))


def indicator(*values: int, size: int = 6) -> np.ndarray:
    weights = np.zeros(size)
    weights[list(values)] = 1.0
    return weights


@pytest.mark.parametrize(
    ("weights", "noise", "coefficients", "constant"),
    [
        (indicator(0, 1), 21.222569, (2 / 3, 1 / 3, -1 / 3), 0.0),
        (indicator(4, 5), 21.222569, None, 1.0),
        (np.array([1.0, 1.0, -1.0, -1.0, 3.0, 3.0]), 254.670823, (0.0, -2.0, -2.0), 3.0),
    ],
)
def test_estimable_queries_have_the_least_noise(
    weights: np.ndarray, noise: float, coefficients: tuple[float, ...] | None, constant: float
):
    mechanism = low_rank()
    decoder = mechanism.decoder
    np.testing.assert_allclose(decoder.rows.variances, 31.833853, atol=5e-7)
    assert decoder.noise(weights) == pytest.approx([noise] * 6, abs=5e-7)
    found, (offset,) = decoder._coefficients(weights)
    assert offset == pytest.approx(constant, abs=1e-12)
    if coefficients is not None:
        assert found[0] == pytest.approx(coefficients)
    # A^T c + d = w, so that the query is estimated without bias.
    np.testing.assert_allclose(ROWS.T @ found[0] + offset, weights, atol=1e-12)
    np.testing.assert_allclose(decoder.noise_each(weights[None])[0], noise, atol=5e-7)


@pytest.mark.parametrize(
    ("weights", "pair"),
    [(indicator(0), (0, 1)), (np.arange(6.0), (0, 1)), (indicator(0, 1, 2), (2, 3))],
)
def test_other_queries_are_refused_with_two_values(weights: np.ndarray, pair: tuple[int, int]):
    mechanism = low_rank()
    assert not mechanism.decoder.complete
    assert mechanism.unanswered(weights) == pair
    with pytest.raises(ValueError, match=f"the shares of values {pair[0]} and {pair[1]}"):
        mechanism.decoder.noise(weights)
    assert mechanism.unanswered(None) is not None
    _, statistic = some_statistic(mechanism, 50)
    assert len(estimate_sets(mechanism, statistic, 50, [np.array([0, 1])]).value) == 1
    with pytest.raises(ValueError, match="the shares of values"):
        estimate_sets(mechanism, statistic, 50, [np.array([0])])


def test_values_with_different_columns_may_be_inseparable_too():
    """The four columns are different, but 0 and 3 together look like 1 and 2 together."""
    rows = np.array([[0, 1, 0, 1], [0, 0, 1, 1]])
    mechanism = Matrix(classical(1.0, 4), Strategy("file", rows))
    assert mechanism.unanswered(indicator(1, 3, size=4)) is None
    assert mechanism.unanswered(indicator(3, size=4)) is not None
    first, second = mechanism.unanswered(indicator(0, 3, size=4)) or (0, 0)
    difference = indicator(first, size=4) - indicator(second, size=4)
    assert mechanism.unanswered(difference) is not None


def rank_of(rows: list[list[Fraction]]) -> int:
    """Return the rank by Gaussian elimination in fractions."""
    rows, rank = [list(row) for row in rows], 0
    for column in range(len(rows[0])):
        pivot = next((i for i in range(rank, len(rows)) if rows[i][column]), None)
        if pivot is None:
            continue
        rows[rank], rows[pivot] = rows[pivot], rows[rank]
        for i in range(rank + 1, len(rows)):
            factor = rows[i][column] / rows[rank][column]
            rows[i] = [a - factor * b for a, b in zip(rows[i], rows[rank], strict=True)]
        rank += 1
    return rank


@pytest.mark.parametrize("exact", [256, 0], ids=["rationals", "primes"])
@pytest.mark.parametrize("seed", range(40))
def test_estimability_is_that_of_the_definition(
    monkeypatch: pytest.MonkeyPatch, seed: int, exact: int
):
    """w is estimable iff rank[A; 1; w] = rank[A; 1], and then the decoder reproduces it."""
    monkeypatch.setattr(matrix_decoder, "_EXACT", exact)
    rng = np.random.default_rng(seed)
    m, k = int(rng.integers(1, 6)), int(rng.integers(3, 8))
    rows = rng.integers(-2, 3, (m, k))
    rows[0, :2] = 0, 1
    mechanism = Matrix(classical(1.0, k), Strategy("file", rows))
    all_ones = [[Fraction(int(e)) for e in row] for row in [*rows, np.ones(k)]]
    rank = rank_of(all_ones)
    assert mechanism.decoder.complete == (rank == k)
    combination = rng.integers(-3, 4, m + 1).tolist()
    inside = np.array(combination) @ np.vstack([rows, np.ones(k)])
    for weights in (inside, rng.integers(0, 2, k), rng.integers(-3, 4, k), np.eye(k)[0]):
        with_query = rank_of([*all_ones, [Fraction(int(w)) for w in weights]])
        pair = mechanism.unanswered(weights.astype(np.float64))
        assert (pair is None) == (with_query == rank)
        if pair is None:
            found, constants = mechanism.decoder._coefficients(weights.astype(np.float64))
            np.testing.assert_allclose(
                rows_kept(rows).T @ found[0] + constants[0], weights, atol=1e-9
            )
        else:
            difference = np.zeros(k)
            difference[list(pair)] = 1.0, -1.0
            apart = rank_of([*all_ones, [Fraction(int(w)) for w in difference]])
            assert apart == rank + 1


def rows_kept(rows: np.ndarray) -> np.ndarray:
    return rows[(rows != rows[:, :1]).any(axis=1)]


def test_decimals_stand_for_themselves():
    """0.1 + 0.2 is not 0.3 in floats, but as people write it."""
    rows = np.array([[1, 2, 3, 5]])
    mechanism = Matrix(line(1.0, 4), Strategy("file", rows))
    assert mechanism.unanswered(np.array([0.1, 0.2, 0.3, 0.5])) is None
    assert mechanism.unanswered(np.array([0.1, 0.2, 0.1 + 0.2, 0.5])) is not None


def test_each_disclosed_group_is_decided_by_itself():
    protected = [["inf"] * 4 for _ in range(4)]
    for a, b in ((0, 1), (1, 0), (2, 3), (3, 2)):
        protected[a][b] = 1.0
    table = [[0 if x == y else protected[x][y] for y in range(4)] for x in range(4)]
    policy = MatrixPolicy.of([[float(e) for e in row] for row in table])
    mechanism = Matrix(policy, Strategy("file", np.array([[0, 0, 1, 1], [0, 1, 0, 0]])))
    assert mechanism.decoder.groups().tolist() == [0, 0, 1, 1]
    assert mechanism.unanswered(indicator(1, 2, 3, size=4)) is None
    assert mechanism.unanswered(indicator(2, size=4)) == (2, 3)


def test_primes_that_disagree_do_not_decide():
    """A determinant that one prime divides: modulo that prime the rank is 1, and in truth 2."""
    members = np.arange(3)
    differences = np.array([[1, 0], [0, PRIMES[0]]], dtype=object)
    found = EstimableQueries(differences, members, members, members)
    assert [len(found._span(prime).basis) for prime in PRIMES] == [1, 2]
    assert len(found._span(None).basis) == 2
    object.__setattr__(found, "first", np.arange(300))
    assert found.rank == 2


def test_both_primes_are_primes():
    for prime in PRIMES:
        odd, twos = prime - 1, 0
        while odd % 2 == 0:
            odd, twos = odd // 2, twos + 1
        for base in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37):  # decides below 3.3e24
            power = pow(base, odd, prime)
            powers = [pow(power, 2**i, prime) for i in range(twos)]
            assert power == 1 or prime - 1 in powers


def test_a_strategy_that_answers_nothing_is_still_refused():
    with pytest.raises(SpecError):
        Matrix(classical(1.0, 3), Strategy("file", np.ones((1, 3), dtype=int)))

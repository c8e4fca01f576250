"""`l1-geometric` against its definition: channel, inverse, and the error of ranges.

The realised alpha is a rational, so all of them are enumerated without any rounding; only what the
decoder computes in floating point is compared with a tolerance. Last, what it and `l1-bits` refuse.
"""

import numpy as np
import pytest

from ldpstream.estimators.planning.predictions import predicted_set_variances
from ldpstream.mechanisms import SpecError
from ldpstream.mechanisms.domains.queries import range_values
from ldpstream.mechanisms.families.l1.bits import L1Bits
from ldpstream.mechanisms.families.l1.geometric import L1Geometric
from tests.exact.enumeration import boxes
from tests.exact.geometric_channel import by_definition, over_shape

CASES = [
    L1Geometric(1.0, (6,)),
    L1Geometric(0.3, (2,)),
    L1Geometric(0.4, (7,)),
    L1Geometric(3.0, (5,)),
    L1Geometric(1.0, (3, 4)),
    L1Geometric(0.5, (3, 1, 2)),
    L1Geometric(2.0, (2, 3, 2)),
]
Kind = type[L1Bits] | type[L1Geometric]
KINDS = pytest.mark.parametrize("kind", [L1Bits, L1Geometric])
EVERY = pytest.mark.parametrize("mechanism", CASES, ids=lambda m: f"{m.epsilon}-{m.shape}")


@EVERY
def test_the_channel_is_the_clamped_difference_of_two_geometrics(mechanism: L1Geometric):
    rows = mechanism.channel().rows
    exact = over_shape(by_definition, mechanism)
    assert [[row[y] for y in range(mechanism.size)] for row in rows] == exact


# Population, uniform shares: mean variance a report over all ranges.
STATED = [(16, 1.0, 0.55803), (64, 1.0, 0.27589), (16, 0.3, 24.465), (24, 0.2, 81.195)]


@pytest.mark.grid
@pytest.mark.parametrize(("m", "epsilon", "stated"), STATED)
def test_all_ranges_of_a_line_have_the_stated_variance(m: int, epsilon: float, stated: float):
    mechanism = L1Geometric(epsilon, (m,))
    ranges = [range_values((m,), bounds) for bounds in boxes((m,))]
    found = predicted_set_variances(mechanism, ranges, estimand="population")
    assert found.mean() == pytest.approx(stated, rel=5e-5)


GAINS = [(16, 1.0, 1, 5.0), (64, 1.0, 1, 19.6), (64, 1.0, 2, 90.0), (64, 1.0, 3, 497.0)]


@pytest.mark.grid
@pytest.mark.parametrize(("m", "epsilon", "dimensions", "gain"), [*GAINS, (64, 0.1, 1, 1 / 2.2)])
def test_the_gain_over_one_bit_a_position(m: int, epsilon: float, dimensions: int, gain: float):
    """The mean over all boxes, respondents, Zipf(1.1): of second moments a power of a line's."""
    shares = np.arange(1.0, m + 1.0) ** -1.1
    shares /= shares.sum()
    decoders = [kind(epsilon, (m,)).decoder for kind in (L1Bits, L1Geometric)]
    sums = np.zeros(3)
    for ((first, last),) in boxes((m,)):
        inside = ((first <= np.arange(m)) & (np.arange(m) <= last)).astype(float)
        sums += [shares @ inside, *(shares @ (one.noise(inside) + inside) for one in decoders)]
    inside, bits, geometric = (sums / (m * (m + 1) / 2)) ** dimensions
    assert (bits - inside) / (geometric - inside) == pytest.approx(gain, rel=0.02)


def test_a_large_domain_is_decoded_without_a_matrix():
    mechanism = L1Geometric(0.01, (1000, 1000))
    weights = np.zeros(mechanism.size)
    weights[range_values((1000, 1000), [(10, 400), (3, 999)])] = 1.0
    decoder = mechanism.decoder
    np.testing.assert_allclose(decoder.expect(decoder.decode(weights)), weights, atol=1e-6)


@pytest.mark.parametrize(("kind", "most"), [(L1Geometric, 3), (L1Bits, 4)])
def test_an_epsilon_whose_channel_says_nothing_is_refused(kind: Kind, most: int):
    with pytest.raises(SpecError, match=r"^epsilon: expected a number of at least 1e-18"):
        kind(1e-20, (4,))
    assert kind(1e-18, (4,)).certify().passed
    said = rf"^epsilon: expected a larger number in {most + 1} dimensions"
    with pytest.raises(SpecError, match=said):
        kind(1e-18, (4,) * (most + 1))


@KINDS
@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (0, 3), (-2, 3), (2.5,), (10**4, 10**4)])
def test_an_impossible_shape_is_refused_by_name(kind: Kind, shape: tuple[int, ...]):
    with pytest.raises(SpecError, match=r"^shape"):
        kind(1.0, shape)


@pytest.mark.parametrize(
    ("kind", "epsilon", "variance"),
    [
        (L1Geometric, 0.3, 14.7511),
        (L1Bits, 0.3, 11.0282),
        (L1Geometric, 1.0, 0.2206),
        (L1Bits, 1.0, 0.9207),
    ],
)
def test_two_prefixes_of_sixteen_values_are_those_of_the_theory(
    kind: Kind, epsilon: float, variance: float
):
    prefixes = np.tri(16)[[4, 7]]
    found = np.mean([kind(epsilon, (16,)).decoder.noise(row) for row in prefixes])
    assert found == pytest.approx(variance, abs=6e-5)

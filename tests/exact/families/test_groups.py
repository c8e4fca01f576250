"""`high-low` and `groups`: test values of the theory, and enumeration that shares no code."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.families.design.geometry_transform import Geometry
from ldpstream.mechanisms.families.groups.designs import (
    GroupDesign,
    GroupKind,
    choose_designs,
)
from ldpstream.mechanisms.families.groups.high_low import HighLow
from ldpstream.mechanisms.families.groups.mechanism import (
    Groups,
    best_groups,
    sensitive_groups,
)
from ldpstream.mechanisms.interface.mechanism import Mechanism
from ldpstream.mechanisms.policies.groups import sensitive_policy
from tests.exact.enumeration import Scripted

WORD = 1 << 64
PLANE = Geometry(3, 3)


def total(mechanism: Mechanism) -> float:
    """The sum of the variances of all single values, of one report for uniform respondents."""
    return sum(float(mechanism.decoder.noise(row).mean()) for row in np.eye(mechanism.size))


def of_subsets(epsilon: float, size: int, sensitive: int, chosen: int) -> Groups:
    return sensitive_groups(
        epsilon, size, frozenset(range(sensitive)), GroupDesign(sensitive, chosen)
    )


def test_values_of_high_low_know_the_mean_of_their_group():
    """The two-valued decoder has 21.686283 here."""
    assert total(HighLow(1.0, 12, frozenset(range(6)))) == pytest.approx(17.544577, rel=1e-7)


def test_more_points_than_values_know_the_mean_of_their_group():
    """The two-valued decoder has 26.196358 here."""
    mechanism = sensitive_groups(1.0, 12, frozenset(range(9)), GroupDesign(9, 1, PLANE))
    assert total(mechanism) == pytest.approx(25.304258, rel=1e-7)


@pytest.mark.parametrize(
    ("epsilon", "size", "chosen", "threshold", "noise"),
    [
        (1.3, 5, 2, 0x84312A7C25EB85ED, (1.373276, 1.456856, 0.811330)),
        (1.0, 6, 2, 0x5D3A98201D2C271B, (2.877105, 2.399634, 1.713152)),
        (0.5, 6, 3, 0x3EB2FD4D34390BE2, (10.882495, 11.549161, 8.827169)),
        (4.0, 10, 1, 0xD7BF4C39141A7E1D, (0.171049, 0.021790, 0.021790)),
        (1.0, 1, 1, 0xA1D2A7274C4320E5, (0.0, 0.581977, 0.581977)),
    ],
)
def test_thresholds_and_noise_are_those_of_the_theory(
    epsilon: float, size: int, chosen: int, threshold: int, noise: tuple[float, float, float]
):
    mechanism = of_subsets(epsilon, size + 1, size, chosen)
    assert mechanism.thresholds.own == threshold
    found = mechanism.decoder.noise(np.eye(size + 1)[0])
    assert found[[0, min(1, size), size]] == pytest.approx(noise, abs=6e-7)
    least, largest = mechanism.decoder.noise_extremes()
    assert (least[0], largest[0]) == pytest.approx((found.min(), found.max()), rel=1e-12)


def test_a_range_over_sensitive_and_other_values_is_that_of_the_theory():
    mechanism = of_subsets(1.0, 9, 5, 2)
    assert mechanism.thresholds.own == 0x68478AA465EC6247
    weights = np.array([0.0] * 3 + [1.0] * 4 + [0.0] * 2)
    expected = [3.609826] * 3 + [3.628043] * 2 + [2.809729] * 2 + [2.518741] * 2
    assert mechanism.decoder.noise(weights) == pytest.approx(expected, abs=6e-7)
    assert mechanism.decoder.span(weights) == pytest.approx((-2.218605, 4.327907), abs=6e-7)
    sensitive = mechanism.decoder.noise((np.arange(9) < 5).astype(float))
    assert sensitive == pytest.approx([0.0] * 5 + [1.454942] * 4, abs=6e-7)


@pytest.mark.parametrize(
    ("size", "sensitive", "epsilon", "today", "chosen", "subsets", "optimum"),
    [
        (12, 6, 0.5, 88.8173, 2, 62.327947, 62.254491),
        (12, 6, 1.0, 21.6863, 2, 13.450058, 13.450058),
        (12, 6, 4.0, 2.8628, 1, 0.215674, 0.215674),
        (9, 8, 4.0, 6.8014, 1, 0.284843, 0.284843),
        (40, 10, 3.0, 3.7483, 1, 1.268794, 1.257240),
        (100, 30, 2.0, 24.0672, 6, 13.800817, 13.800817),
        (20, 1, 1.0, 3.6827, 1, 1.105756, 1.105756),
    ],
)
def test_totals_are_near_the_optimum_over_all_channels(
    size: int,
    sensitive: int,
    epsilon: float,
    today: float,
    chosen: int,
    subsets: float,
    optimum: float,
):
    """`today` is the two-valued decoder of `high-low`, `optimum` is proved."""
    found = {
        d: total(of_subsets(epsilon, size, sensitive, d))
        for d in {chosen, chosen + 1}
        if d == chosen or 2 < sensitive > d
    }
    assert found[chosen] == pytest.approx(subsets, abs=1e-6)
    assert min(found.values()) == found[chosen]
    assert optimum <= found[chosen] + 1e-6
    assert found[chosen] <= 1.01 * optimum
    tau = math.tanh(epsilon / 2)
    s, plain = sensitive, size - sensitive
    old = (
        s * (1 / tau**2 - 1)
        + s * (s - 1) / tau**2
        + plain * s * (1 / tau**2 - 1 / tau)
        + plain * (1 / tau - 1)
    ) / size
    assert old == pytest.approx(today, abs=6e-5)
    centred = total(HighLow(epsilon, size, frozenset(range(sensitive))))
    assert optimum <= centred < old


@pytest.mark.parametrize(
    ("epsilon", "chosen", "subsets", "before"),
    [(1.0, 344, 2666.18, 2948.88), (2.0, 196, 437.388, 672.748), (4.0, 39, 40.8037, 245.547)],
)
def test_totals_of_many_sensitive_values_are_those_of_the_theory(
    epsilon: float, chosen: int, subsets: float, before: float
):
    """1,000 of 5,000 values, which a fifth of the users have; `before` is that of `high-low`."""
    values = frozenset(range(1_000))
    of = [of_subsets(epsilon, 5_000, 1_000, d) for d in (chosen - 1, chosen, chosen + 1)]
    found = [total_of_fifth(mechanism) for mechanism in of]
    assert found[1] == pytest.approx(subsets, rel=2e-6)
    assert found[1] == min(found)
    best = best_groups(sensitive_policy(epsilon, 5_000, values), share=0.2)
    assert total_of_fifth(best) <= 1.001 * subsets
    assert total_of_fifth(HighLow(epsilon, 5_000, values)) == pytest.approx(before, rel=1e-5)


def total_of_fifth(mechanism: Mechanism) -> float:
    """The total of the first 1,000 of 5,000 values, whose users are alike, and of all others."""
    listed, plain = (mechanism.decoder.noise(np.eye(1, 5_000, x)[0]) for x in (0, 1_000))
    inside = listed[0] + 999 * listed[1]
    return float(0.2 * inside + 0.8 * (1_000 * listed[1_000] + plain[1_000]))


def test_designs_of_any_share_are_those_of_least_total():
    """Against the totals of the mechanisms themselves; the default is within the stated loss."""
    for sensitive, epsilon in itertools.product((7, 10, 20), (0.5, 1.0, 2.0, 4.0)):
        size, every = sensitive + 5, range(1, sensitive)
        noise = [noise_by_value(of_subsets(epsilon, size, sensitive, d)) for d in every]
        default = noise_by_value(sensitive_groups(epsilon, size, frozenset(range(sensitive))))
        for share in (0.02, 0.3, 1.0):
            p = np.repeat([share / sensitive, (1 - share) / 5], [sensitive, 5])
            best = min(of_each @ p for of_each in noise)
            kind = GroupKind(sensitive, Fraction(epsilon), Fraction(epsilon), mass=share)
            (design,) = choose_designs((kind,), 1.0 - share)
            if design.geometry is None:
                chosen = noise[design.chosen - 1]
            else:
                values = frozenset(range(sensitive))
                chosen = noise_by_value(sensitive_groups(epsilon, size, values, design))
            assert chosen @ p <= 1.035 * best
            assert default @ p <= 1.45 * best


def noise_by_value(mechanism: Mechanism) -> np.ndarray:
    """What a user of each value adds to the variances of all values together."""
    return np.sum([mechanism.decoder.noise(row) for row in np.eye(mechanism.size)], axis=0)


def test_draws_follow_the_words():
    """Own reports, then reports of the blanket, word by word."""
    mechanism = sensitive_groups(1.0, 9, frozenset(range(7)), GroupDesign(7, 1, Geometry(2, 3)))
    threshold = mechanism.thresholds.own
    # A sensitive and a plain value by themselves; then both from the blanket, 7 being rejected.
    entropy = Scripted([threshold - 1, 0, threshold, WORD - 1], [2, 1], [7, 6], [5])
    reports = mechanism.privatize(np.array([3, 8, 3, 8]), entropy=entropy)
    supporting = mechanism.designs[0].incidence.supporting(3)
    assert reports.tolist() == [supporting[2], 8, 5, 6]


def test_subsets_are_drawn_by_their_keys():
    mechanism = of_subsets(1.0, 5, 4, 2)
    threshold = mechanism.thresholds.own
    keys = [(3 << 32) | 5, (1 << 32) | 4]  # 5, 3, 4, 1
    entropy = Scripted([threshold - 1, 0, threshold], keys * 3)
    reports = mechanism.privatize(np.array([2, 4, 2]), entropy=entropy)
    # The value with the least other key; the plain value; the two least keys.
    assert reports.tolist() == [[0, 0b1100], [1, 1], [0, 0b1010]]


def test_what_contradicts_is_refused():
    with pytest.raises(SpecError, match="designs of 3, 1 values"):
        sensitive_groups(1.0, 5, frozenset(range(3)), GroupDesign(4))
    with pytest.raises(SpecError, match="epsilon"):
        sensitive_groups(1e-30, 5, frozenset(range(3)))


def test_noise_of_many_values_stays_within_its_bounds():
    """Beyond 512 sensitive values, pairs of them are bounded by the extreme loads."""
    mechanism = HighLow(1.0, 700, frozenset(range(600)))
    least, largest = mechanism.decoder.noise_extremes()
    for value in (0, 1, 298, 599):
        noise = mechanism.decoder.noise(np.eye(700)[value])
        assert least[value] <= noise.min() * (1 + 1e-12)
        assert noise.max() <= largest[value] * (1 + 1e-12)
        assert largest[value] <= 1.1 * noise.max()
        assert least[value] >= 0.9 * noise.min()

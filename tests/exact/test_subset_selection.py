"""`subset-selection` against its definition and its closed forms, in exact rationals."""

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from ldpstream.estimators.estimate import estimate_sets, estimate_values
from ldpstream.estimators.options import Estimand
from ldpstream.estimators.predict import (
    predicted_linear_variances,
    predicted_set_variances,
    predicted_value_variances,
)
from ldpstream.mechanisms import Blocks, SeededEntropy, SpecError
from ldpstream.mechanisms.block_hadamard import BlockHadamard
from ldpstream.mechanisms.decoder import Decoder
from ldpstream.mechanisms.dyadic import budget, set_threshold
from ldpstream.mechanisms.entropy import WORD
from ldpstream.mechanisms.randomized_response import RandomizedResponse
from ldpstream.mechanisms.subset_selection import MAX_BLOCK, SubsetSelection
from ldpstream.mechanisms.subsets import Subsets, best_subsets, draw_subsets
from tests.exact.test_draws import Scripted

UNEQUAL = Blocks(np.array([2, 0, 1, 1, 2, 3, 2, 2, 2, 1, 4, 4]))
CASES = [
    SubsetSelection(epsilon, blocks)
    for epsilon, blocks in [
        (1.0, Blocks.one(2)),
        (0.3, Blocks.one(7)),
        (1.0, Blocks.one(8)),
        (2.5, UNEQUAL),
        (0.1, UNEQUAL),
    ]
]
EVERY = pytest.mark.parametrize(
    "mechanism", CASES, ids=lambda m: f"{m.epsilon}-{m.blocks.count}-{m.size}"
)
N = 1000
Matrix = list[list[Fraction]]


def rows_of(mechanism: SubsetSelection) -> Matrix:
    channel = mechanism.channel()
    return [[row.get(y, Fraction(0)) for y in range(channel.outputs)] for row in channel.rows]


def decoders_of(mechanism: SubsetSelection) -> Matrix:
    """`h_x` of every report, from the supports of its block."""
    of_value, out = mechanism.blocks.of_value, []
    subsets = list(listed(mechanism))
    for value in range(mechanism.size):
        support = mechanism.subsets[mechanism.layout.kinds[of_value[value]]].support
        inside = [(value in members, of_value[members[0]]) for members in subsets]
        out.append(
            [
                (support.high if held else support.low) * int(block == of_value[value])
                for held, block in inside
            ]
        )
    return out


def listed(mechanism: SubsetSelection):
    """The values of each possible report, in order."""
    for block in range(mechanism.blocks.count):
        values = np.flatnonzero(mechanism.blocks.of_value == block).tolist()
        chosen = mechanism.subsets[mechanism.layout.kinds[block]].chosen
        yield from combinations(values, chosen)


def times(left: list[Fraction], right: list[Fraction]) -> Fraction:
    return sum((a * b for a, b in zip(left, right, strict=True)), Fraction(0))


@EVERY
def test_the_channel_is_its_definition(mechanism: SubsetSelection):
    for value, row in enumerate(rows_of(mechanism)):
        block = mechanism.blocks.of_value[value]
        s = mechanism.subsets[mechanism.layout.kinds[block]]
        own = Fraction(s.threshold, WORD)
        held = math.comb(s.size - 1, s.chosen - 1)
        for members, probability in zip(listed(mechanism), row, strict=True):
            if value in members:
                assert probability == own / held
            elif mechanism.blocks.of_value[members[0]] == block:
                assert probability == (1 - own) / math.comb(s.size - 1, s.chosen)
            else:
                assert probability == 0


@EVERY
def test_no_bias_in_exact_rationals(mechanism: SubsetSelection):
    channel, decoders = rows_of(mechanism), decoders_of(mechanism)
    for x, row in enumerate(channel):
        expected = [Fraction(x == value) for value in range(mechanism.size)]
        assert [times(row, h) for h in decoders] == expected


@EVERY
@pytest.mark.parametrize("estimand", ["respondents", "population"])
def test_predicted_variances_are_those_of_the_enumeration(
    mechanism: SubsetSelection, estimand: Estimand
):
    channel, decoders = rows_of(mechanism), decoders_of(mechanism)
    p = [Fraction(x + 1) for x in range(mechanism.size)]
    p = [share / sum(p) for share in p]
    units = [[Fraction(x == v) for x in range(mechanism.size)] for v in range(mechanism.size)]
    mixed = [Fraction(7 * v % 5 - 2, 3) for v in range(mechanism.size)]
    pair = [Fraction(v < 2) for v in range(mechanism.size)]
    whole = [Fraction(int(b == 0)) for b in mechanism.blocks.of_value]
    exact = []
    for w in [*units, mixed, pair, whole]:
        h = [times(w, list(column)) for column in zip(*decoders, strict=True)]
        moments = [times(row, [a * a for a in h]) for row in channel]
        if estimand == "population":
            exact.append(float(times(p, moments) - times(p, w) ** 2))
        else:
            exact.append(float(times(p, moments) - times(p, [a * a for a in w])))
    shares = np.array([float(share) for share in p])
    known = {"shares": shares, "estimand": estimand}
    values = predicted_value_variances(mechanism, N, range(mechanism.size), **known)
    weights = np.array([[float(a) for a in mixed]])
    linear = predicted_linear_variances(mechanism, N, weights, **known)
    sets = [np.array([0, 1]), np.flatnonzero(mechanism.blocks.of_value == 0)]
    found = [*values, *linear, *predicted_set_variances(mechanism, N, sets, **known)]
    np.testing.assert_allclose(np.array(found) * N, exact, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("epsilon", "size"), [(0.5, 19), (1.0, 40), (3.0, 300), (9.0, 70)])
def test_noise_of_any_weights_is_that_of_the_pairwise_inclusions(epsilon: float, size: int):
    """`sum_ij w_i w_j (P(i, j held) - P(i held) P(j held))`, from the probabilities of pairs."""
    blocks = Blocks((np.arange(size) % 7 == 0).astype(np.int64))
    mechanism = SubsetSelection(epsilon, blocks)
    w = np.random.default_rng(1).normal(size=size)
    expected = np.zeros(size)
    for block in range(2):
        members = np.flatnonzero(blocks.of_value == block)
        s = mechanism.subsets[mechanism.layout.kinds[block]]
        k, d, a = s.size, s.chosen, s.threshold / WORD
        one = a * (d - 1) / (k - 1) + (1 - a) * d / (k - 1)
        with_own = a * (d - 1) / (k - 1)
        two = a * (d - 1) * (d - 2) + (1 - a) * d * (d - 1)
        two /= (k - 1) * (k - 2)
        step = float(1 / s.support.gap)
        for place, value in enumerate(members):
            pairs = np.full((k, k), two)
            pairs[place, :] = pairs[:, place] = with_own
            single = np.full(k, one)
            single[place] = a
            np.fill_diagonal(pairs, single)
            covariance = pairs - np.outer(single, single)
            expected[value] = step**2 * w[members] @ covariance @ w[members]
    np.testing.assert_allclose(mechanism.decoder().noise(w), expected, rtol=1e-9)


def test_weights_that_are_equal_in_a_block_have_no_noise():
    mechanism = SubsetSelection(1.0, Blocks(np.arange(300) // 40))
    weights = (np.arange(300) // 40) * 0.1 + 0.3
    assert not mechanism.decoder().noise(weights).any()
    statistic = mechanism.empty()
    values = np.arange(300)
    mechanism.absorb(statistic, mechanism.privatize(values, entropy=SeededEntropy(1)))
    found = estimate_sets(mechanism, statistic, 300, [np.arange(40), np.arange(280, 300)])
    assert found.value.tolist() == pytest.approx([40 / 300, 20 / 300], rel=1e-12)
    assert found.se.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(("epsilon", "ratio"), [(1.0, 1.27), (2.0, 2.4), (3.0, 5.5), (4.0, 14.0)])
def test_large_blocks_have_the_variance_of_the_theory(epsilon: float, ratio: float):
    """Respondents: `(4 e^eps/(e^eps - 1)^2 P_j + p_x)/n`, Hadamard `(c^2 P_j - p_x)/n`."""
    blocks = Blocks(np.arange(8000) // 4000)
    mechanism = SubsetSelection(epsilon, blocks)
    p = np.full(8000, 0.5 / 8000)
    p[:2] = 0.25 / 4000 / 2, 0.3
    p[4000:] = 0.2 / 4000
    p[2:4000] = (0.8 - p[:2].sum()) / 3998
    e = math.exp(epsilon)
    found = predicted_value_variances(mechanism, 1, [0, 1], shares=p)
    expected = 4 * e / (e - 1) ** 2 * 0.8 + p[:2]
    # "Large": what the block's size leaves out falls as 1/k.
    np.testing.assert_allclose(found, expected, rtol=100 / 4000)
    rare = p[0]
    hadamard = predicted_value_variances(BlockHadamard(epsilon, blocks), 1, [0], shares=p)[0]
    c = (e + 1) / (e - 1)
    assert hadamard == pytest.approx(c**2 * 0.8 - rare, rel=1e-9)
    assert hadamard / found[0] == pytest.approx(ratio, rel=0.03)


def test_hadamard_wins_where_a_value_holds_most_of_its_block():
    blocks = Blocks.one(2000)
    for share, better in [(0.4, SubsetSelection), (0.6, BlockHadamard)]:
        p = np.full(2000, (1 - share) / 1999)
        p[0] = share
        variances = {
            kind: predicted_value_variances(kind(1.0, blocks), 1, [0], shares=p)[0]
            for kind in (SubsetSelection, BlockHadamard)
        }
        assert min(variances, key=variances.__getitem__) is better


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 2.0, 5.0, 44.0])
@pytest.mark.parametrize("size", [2, 3, 5, 8, 33, 100])
def test_no_other_number_of_values_has_less_variance(epsilon: float, size: int):
    exact = budget(epsilon)
    found = best_subsets(exact, size)
    every = [Subsets(size, d, set_threshold(exact, d, size - d)) for d in range(1, size)]
    assert found.support.mean_noise(size) == min(s.support.mean_noise(size) for s in every)


def test_one_of_each_is_randomized_response():
    mechanism = SubsetSelection(4.0, Blocks.one(6))
    assert mechanism.subsets[0].chosen == 1
    assert mechanism.channel() == RandomizedResponse(4.0, Blocks.one(6)).channel()


def test_plain_ldp_is_as_good_as_any_channel_can_be():
    """k = 8, epsilon = 1, uniform: 22.611 in all, 21.736 among respondents, known to be optimal."""
    mechanism = SubsetSelection(1.0, Blocks.one(8))
    for estimand, total in [("population", 22.611), ("respondents", 21.736)]:
        found = predicted_value_variances(mechanism, 1, range(8), estimand=estimand).sum()
        assert found == pytest.approx(total, abs=5e-4)


@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize("wanted", [True, False])
def test_every_order_of_the_keys_gives_each_subset_as_often(size: int, wanted: bool):
    """Small keys are enumerated with their ties: equally often each, ties drawn anew."""
    subsets = best_subsets(Fraction(1, 2), size)
    place, width = 1, 3
    grids = np.meshgrid(*[np.arange(width)] * size, indexing="ij")
    keys = np.stack(grids, axis=-1).reshape(-1, size)
    counts: dict[tuple[int, ...], int] = {}
    for row in keys.tolist():
        # A tie takes the second draw, which takes no part in the count.
        spare = list(range(10, 10 + size))
        entropy = Scripted(halves(row), halves(spare))
        (taken,) = draw_subsets(entropy, subsets, np.array([place]), np.array([wanted]))
        members = tuple(np.flatnonzero(taken).tolist())
        assert len(members) == subsets.chosen
        assert (place in members) == wanted
        if entropy.batches:
            counts[members] = counts.get(members, 0) + 1
    possible = [m for m in combinations(range(size), subsets.chosen) if (place in m) == wanted]
    assert sorted(counts) == possible
    assert len(set(counts.values())) == 1


def halves(keys: list[int]) -> list[int]:
    padded = [*keys, 0] if len(keys) % 2 else keys
    return [low + (high << 32) for low, high in zip(padded[::2], padded[1::2], strict=True)]


@EVERY
def test_the_threshold_decides_who_holds_the_own_value(mechanism: SubsetSelection):
    for value in range(mechanism.size):
        threshold = int(mechanism.layout.thresholds[mechanism.blocks.of_value[value]])
        size = mechanism.blocks.sizes[mechanism.blocks.of_value[value]]
        for word, holds in [(0, True), (threshold - 1, True), (threshold, False)]:
            batches = [[word]] if size == 1 else [[word], halves(list(range(1, size + 1)))]
            report = mechanism.privatize(np.array([value]), entropy=Scripted(*batches))
            statistic = mechanism.empty()
            mechanism.absorb(statistic, report)
            assert statistic[value] == (holds or size == 1)


def test_many_values_at_once_are_counted_as_one_by_one():
    mechanism = SubsetSelection(1.0, UNEQUAL)
    values = np.random.default_rng(1).integers(0, 12, 700)
    reports = mechanism.privatize(values, entropy=SeededEntropy(2))
    together, apart = mechanism.empty(), mechanism.empty()
    mechanism.absorb(together, reports)
    for row in reports:
        mechanism.absorb(apart, row[None])
    assert np.array_equal(together, apart)
    of_block = np.bincount(UNEQUAL.of_value[values], minlength=5)
    assert together[12:].tolist() == of_block.tolist()
    exact = estimate_values(mechanism, together, 700)
    assert exact.value[[1, 5]].tolist() == [(values == 1).mean(), (values == 5).mean()]


def test_what_no_value_can_send_is_marked():
    mechanism = SubsetSelection(0.5, UNEQUAL)
    payload = mechanism.encode(mechanism.possible_reports())
    every = {row.tobytes() for row in payload}
    table = np.array(np.meshgrid(np.arange(256), np.arange(256))).reshape(2, -1).T.astype(np.uint8)
    assert mechanism.report_bytes == 2
    _, valid = mechanism.decode(table)
    assert {row.tobytes() for row in table[valid]} == every


def test_the_certificate_by_structure_gives_the_enumerated_ratio():
    for mechanism in CASES:
        ratio = max(s.ratio for s in mechanism.subsets if s.size > 1)
        assert {loss.ratio for loss in mechanism.certify().losses} == {ratio}
    certificate = SubsetSelection(1.0, Blocks.one(64)).certify()
    assert (certificate.proof, certificate.passed) == ("structure", True)


def test_what_it_refuses():
    for epsilon in (0, -1.0, math.inf, math.nan, True, "1", 10**400):
        with pytest.raises(SpecError, match=r"^epsilon: expected a finite number"):
            SubsetSelection(epsilon, Blocks.one(3))
    with pytest.raises(SpecError, match="block of two values"):
        SubsetSelection(1.0, Blocks(np.arange(4)))
    with pytest.raises(SpecError, match=r"^epsilon: expected a larger number"):
        SubsetSelection(1e-21, Blocks.one(1000))
    with pytest.raises(SpecError, match=r"blocks: expected blocks of at most 8192 values .* 8193"):
        SubsetSelection(1.0, Blocks.one(MAX_BLOCK + 1))
    with pytest.raises(ValueError, match="too large to enumerate"):
        SubsetSelection(1.0, Blocks.one(64)).channel()
    with pytest.raises(ValueError, match="too large to enumerate"):
        SubsetSelection(1.0, Blocks.one(64)).possible_reports()


def test_noise_extremes_at_the_edges_of_floats():
    for epsilon in (1e-9, 44.0):
        decoder = SubsetSelection(epsilon, Blocks.one(6)).decoder()
        closed, general = decoder.noise_extremes(), Decoder.noise_extremes(decoder)
        np.testing.assert_allclose(closed, general, rtol=1e-6, atol=1e-12)

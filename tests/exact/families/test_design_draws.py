"""Designs realise their channels exactly: their draws are enumerated with scripted words.

A report's probability is that of its side of the threshold times a uniform draw, which is proved by
handing out each number that a draw can accept once: each report must come up once.
"""

from fractions import Fraction

import numpy as np
import pytest

from ldpstream.mechanisms import Blocks
from ldpstream.mechanisms.exact.entropy import (
    WORD,
    bernoulli_each,
    uniform_below,
    uniform_below_each,
)
from ldpstream.mechanisms.families.design.mechanism import DesignMechanism
from ldpstream.mechanisms.families.design.projective_geometry import ProjectiveGeometry
from ldpstream.mechanisms.families.design.randomized_response import RandomizedResponse
from tests.exact.enumeration import Scripted
from tests.seeded import SeededEntropy

UNEQUAL = Blocks(np.array([2, 0, 1, 1, 2, 3, 2, 2, 2, 1, 4, 4]))
BLOCKS = [Blocks.one(2), Blocks.one(9), UNEQUAL]
EVERY = pytest.mark.parametrize("blocks", BLOCKS, ids=["two", "nine", "unequal"])
HIGH = 0xABCDEF << 40
"""Bits that a mask takes away."""


def sides(mechanism: DesignMechanism, value: int) -> list[int]:
    """The last word that wants a supporting report, and the first that does not."""
    block = mechanism.blocks.of_value[value]
    threshold = int(mechanism.layout.thresholds[block])
    return [threshold - 1, threshold]


def shares(mechanism: DesignMechanism, value: int, inside: set[int], others: set[int]):
    """The channel's row that uniform draws from these two sets realise."""
    block = mechanism.blocks.of_value[value]
    own = Fraction(int(mechanism.layout.thresholds[block]), WORD)
    return {y: own / len(inside) for y in inside} | {y: (1 - own) / len(others) for y in others}


@EVERY
def test_draws_of_randomized_response_realise_its_channel(blocks: Blocks):
    mechanism = RandomizedResponse(1.5, blocks)
    for value, row in enumerate(mechanism.channel().rows):
        size = int(blocks.sizes[blocks.of_value[value]])
        if size == 1:
            entropy = Scripted([WORD - 1], [HIGH])
            (report,) = mechanism.privatize(np.array([value]), entropy=entropy)
            assert row == {report: 1}
            continue
        found = []
        for word in sides(mechanism, value):
            n = size - 1
            entropy = Scripted([word] * n, [u + HIGH for u in range(n)])
            found.append(mechanism.privatize(np.full(n, value), entropy=entropy).tolist())
            assert not entropy.left
        assert len(set(found[0])) == 1
        assert len(set(found[1])) == size - 1
        assert shares(mechanism, value, set(found[0]), set(found[1])) == dict(row)


@EVERY
def test_draws_of_projective_geometry_realise_its_channel(blocks: Blocks):
    mechanism = ProjectiveGeometry(1.5, blocks)
    for value, row in enumerate(mechanism.channel().rows):
        block = int(blocks.of_value[value])
        size, start = int(blocks.sizes[block]), int(mechanism.layout.starts[block])
        if size == 1:
            entropy = Scripted([WORD - 1])
            assert row == {int(mechanism.privatize(np.array([value]), entropy=entropy)[0]): 1}
            continue
        geometry = mechanism.geometry(size)
        wanted, unwanted = sides(mechanism, value)
        d, K = geometry.inside, geometry.points
        entropy = Scripted([wanted] * d, [u + HIGH for u in range(d)])
        inside = mechanism.privatize(np.full(d, value), entropy=entropy).tolist()
        assert len(set(inside)) == d
        # Every point once; orthogonal ones are rejected, and drawn again as one that is not.
        spare = next(y - start for y in row if y not in inside)
        entropy = Scripted([unwanted] * K, [], [u + HIGH for u in range(K)], [spare] * d)
        drawn = mechanism.privatize(np.full(K, value), entropy=entropy).tolist()
        assert not entropy.left
        accepted = [y for u, y in enumerate(drawn) if y == start + u]
        assert len(accepted) == K - d
        assert drawn.count(start + spare) == 1 + d
        assert shares(mechanism, value, set(inside), set(accepted)) == dict(row)


@pytest.mark.parametrize("kind", [RandomizedResponse, ProjectiveGeometry])
def test_many_values_at_once_are_drawn_each_in_its_block(kind: type[DesignMechanism]):
    mechanism = kind(1.0, UNEQUAL)
    values = np.random.default_rng(1).integers(0, 12, 5000)
    reports = mechanism.privatize(values, entropy=SeededEntropy(2))
    of_report = mechanism.decoder.output_groups()
    assert of_report is not None
    assert np.array_equal(of_report[reports], UNEQUAL.of_value[values])


def test_every_word_is_compared_with_its_own_threshold():
    words = [0, 5, 5, WORD - 1]
    thresholds = np.array([1, 5, 6, WORD - 1], dtype=np.uint64)
    assert bernoulli_each(Scripted(words), thresholds).tolist() == [True, False, True, False]


def test_every_draw_is_below_its_own_bound():
    # Masked: 0, 1, 3, 7, 7; the third and the fourth are rejected, twice.
    entropy = Scripted([7, 7, 3, 7, 15], [3, 14], [2, 13])
    bounds = np.array([1, 2, 3, 6, 8])
    assert uniform_below_each(entropy, bounds).tolist() == [0, 1, 2, 5, 7]
    assert not entropy.left


@pytest.mark.parametrize("bound", [1, 6, 8, 2**40 + 1])
def test_equal_bounds_are_one_bound(bound: int):
    each = uniform_below_each(SeededEntropy(4), np.full(1000, bound))
    assert np.array_equal(each, uniform_below(SeededEntropy(4), bound, 1000))

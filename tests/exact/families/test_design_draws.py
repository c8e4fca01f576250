"""Designs realise their channels exactly: their draws are enumerated with scripted words.

A report's probability is that of its side of the threshold times a uniform draw, which is proved by
handing out each number that a draw can accept once: each report must come up once.
"""

from fractions import Fraction

import numpy as np
import pytest

from ldpstream.mechanisms import Blocks
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.families.design.mechanism import DesignMechanism, RandomizedResponse
from ldpstream.mechanisms.families.design.projective_geometry import ProjectiveGeometry
from tests.exact.enumeration import Scripted

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

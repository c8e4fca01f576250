"""Small specs, policies, mechanisms and records that tests share."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import prod
from pathlib import Path

import numpy as np
import pytest

from ldpstream.mechanisms import CollectionSpec
from ldpstream.mechanisms.domains.attributes import Attributes
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.families.design.mechanism import RandomizedResponse
from ldpstream.mechanisms.families.l1.bits import L1Bits
from ldpstream.mechanisms.families.l1.geometric import L1Geometric
from ldpstream.mechanisms.families.matrix.matrix import Matrix
from ldpstream.mechanisms.families.matrix.strategy import Strategy
from ldpstream.mechanisms.families.sampled.sampled import Sampled
from ldpstream.mechanisms.families.subset.selection import SubsetSelection
from ldpstream.mechanisms.families.weights.public import PublicWeights
from ldpstream.mechanisms.interface.mechanism import Mechanism
from ldpstream.mechanisms.policies.metric import MetricPolicy
from ldpstream.mechanisms.policies.policy import BlockPolicy, Policy
from tests.exact.dense import Dense, block_channel

BASE = {"mechanism": "block-hadamard", "epsilon": 1.0, "domain": {"values": ["a", "b", "c"]}}
BINARY = {"mechanism": "binary", "epsilon": [1.0, 2.0], "domain": {"values": ["no", "yes"]}}
BITS = {"mechanism": "l1-bits", "epsilon": 0.5, "domain": {"size": 10}}
GEOMETRIC = {"mechanism": "l1-geometric", "epsilon": 0.5, "domain": {"size": 10}}
HIGH_LOW = {
    "mechanism": "high-low",
    "epsilon": 2.0,
    "domain": {"size": 10},
    "sensitive": [0, 9],
}


def make(
    tmp_path: Path, mapping: dict, name: str = "checkins", **changes: object
) -> CollectionSpec:
    return CollectionSpec.from_mapping(name, mapping | changes, base=tmp_path)


def entries_of(policy: Policy) -> list[list[Fraction | None]]:
    return [[policy.entry(x, z) for z in range(policy.size)] for x in range(policy.size)]


def classical(epsilon: float, size: int) -> BlockPolicy:
    return BlockPolicy(epsilon, Blocks.one(size))


def line(epsilon: float, size: int) -> MetricPolicy:
    return MetricPolicy(epsilon, (size,))


WARNER = Dense(np.array([[2.0, 1.0], [1.0, 2.0]]) / 3.0)
BLOCKS = block_channel(7, (2, 1, 3))


def block_statistic(counts: tuple[int, int, int], seed: int = 0) -> np.ndarray:
    """Return a statistic with these numbers of reports from the three blocks of BLOCKS."""
    rng = np.random.default_rng(seed)
    statistic = np.zeros(BLOCKS.outputs, dtype=np.int64)
    for block, count in enumerate(counts):
        places = np.flatnonzero(BLOCKS.groups[1] == block)
        np.add.at(statistic, rng.choice(places, count), 1)
    return statistic


SIZES = [2, 3, 8, 13]


def built(name: str, policy: Policy, scales: tuple[float, ...] | None = None) -> Matrix:
    return Matrix(policy, Strategy.built_in(name, policy.size), scales)


IDS = pytest.mark.parametrize("mechanism_id", ["l1-bits", "l1-geometric"])


def response(epsilon: float, shape: tuple[int, ...]) -> RandomizedResponse:
    return RandomizedResponse(epsilon, Blocks.one(prod(shape)))


def subsets(epsilon: float, shape: tuple[int, ...]) -> SubsetSelection:
    return SubsetSelection(epsilon, Blocks.one(prod(shape)))


PlainKind = Callable[[float, tuple[int, ...]], Mechanism]
KINDS = pytest.mark.parametrize("kind", [L1Bits, L1Geometric, response, subsets])


def weighted(kind: PlainKind, shape: tuple[int, ...], largest: int) -> PublicWeights:
    return PublicWeights(kind(1.0, shape), largest)


Record = tuple[int, ...]
"""The index of its value in each part."""


def sampled(spec: CollectionSpec) -> tuple[Attributes, Sampled]:
    """Return domain and mechanism of a collection of records."""
    assert isinstance(spec.domain, Attributes)
    assert isinstance(spec.mechanism, Sampled)
    return spec.domain, spec.mechanism


def channel_of(
    mechanism: Sampled, records: Sequence[Record]
) -> dict[Record, dict[tuple[int, int], Fraction]]:
    """Return the probability of each output `(part, report)` by record, with the draw, exactly."""
    rows = [part.channel().rows for part in mechanism.parts]
    shares = [Fraction(units, WORD) for units in mechanism.probabilities]
    channel = {
        record: {
            (j, y): q * p
            for j, (q, own, x) in enumerate(zip(shares, rows, record, strict=True))
            for y, p in own[x].items()
        }
        for record in records
    }
    assert all(sum(row.values()) == 1 for row in channel.values())
    return channel

"""`matrix` draws as docs/wire.md specifies: rows, noise of several kinds, and their encoding."""

import numpy as np
import pytest

from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.families.matrix.matrix import Matrix
from ldpstream.mechanisms.families.matrix.noise import RowCodec
from ldpstream.mechanisms.families.matrix.strategy import Strategy
from ldpstream.mechanisms.policies.metric import MetricPolicy
from ldpstream.mechanisms.policies.policy import BlockPolicy
from tests.exact.geometric_reference import matrix_as_specified
from tests.seeded import SeededEntropy

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

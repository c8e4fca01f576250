"""The general theory by plain linear algebra: a decoder for any explicit channel.

Closed forms are tested against it. Everything is a dense matrix: `channel` Q of shape
`(k, outputs)`, `decoders` D of shape `(k, outputs)` with `Q D^T = 1`.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ldpstream.mechanisms.base.arrays import Floats, Integers
from ldpstream.mechanisms.interface.decoder import Decoded
from ldpstream.mechanisms.interface.mechanism import Mechanism, Statistic
from ldpstream.mechanisms.interface.symbols import CountDecoder
from tests.exact.enumeration import matrix_of

Groups = tuple[np.ndarray, np.ndarray] | None


class DenseDecoder(CountDecoder):
    def __init__(self, channel: Floats, decoders: Floats | None, groups: Groups) -> None:
        self.channel = np.asarray(channel, dtype=np.float64)
        self.known = groups
        self.decoders = np.linalg.pinv(self.channel).T if decoders is None else decoders
        if decoders is None and groups is not None:
            # The right inverse of least norm keeps groups apart; only its rounding does not.
            self.decoders = self.decoders.round(13) * (groups[0][:, None] == groups[1][None, :])

    def totals(self, statistic: Statistic):
        return self.decoders @ statistic

    def moments(self, decoded: Decoded, at: slice | Integers):
        return (self.decoders**2 @ decoded.statistic)[at]

    def extremes(self):
        return self.decoders.min(axis=1), self.decoders.max(axis=1)

    def decode(self, weights: Floats):
        return weights @ self.decoders

    def expect(self, function: Floats):
        return self.channel @ function

    def groups(self):
        return None if self.known is None else self.known[0]

    def output_groups(self):
        return None if self.known is None else self.known[1]


@dataclass(frozen=True, eq=False)
class Dense:
    """As much of a mechanism as estimators use."""

    channel: np.ndarray
    decoders: np.ndarray | None = None
    groups: Groups = None

    @property
    def size(self) -> int:
        return self.channel.shape[0]

    @property
    def outputs(self) -> int:
        return self.channel.shape[1]

    def count(self, statistic: Statistic) -> int:
        return int(statistic.sum())

    @cached_property
    def decoder(self) -> DenseDecoder:
        return DenseDecoder(self.channel, self.decoders, self.groups)


def dense_of(mechanism: Mechanism) -> Dense:
    """A mechanism's own decoders, value by value, on its exact channel."""
    channel, decoder, identity = matrix_of(mechanism), mechanism.decoder, np.eye(mechanism.size)
    decoders = np.stack([decoder.decode(row) for row in identity])
    assert np.allclose(channel @ decoders.T, identity, atol=1e-9)
    of_value, of_output = decoder.groups(), decoder.output_groups()
    known = None if of_value is None or of_output is None else (of_value, of_output)
    return Dense(channel, decoders, known)


def random_channel(seed: int, size: int, outputs: int, *, mixed: float = 0.0) -> Dense:
    """A channel of full rank that discloses nothing; `mixed` moves its rows towards equality."""
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.ones(outputs), size) + 0.5 * np.eye(size, outputs)
    rows /= rows.sum(axis=1, keepdims=True)
    return Dense((1.0 - mixed) * rows + mixed / outputs)


def block_channel(seed: int, sizes: tuple[int, ...], *, spare: int = 1) -> Dense:
    """A channel that discloses blocks of shuffled values; a block of one value has no noise."""
    rng = np.random.default_rng(seed)
    of_value = np.repeat(np.arange(len(sizes)), sizes)
    columns = [1 if size == 1 else size + spare for size in sizes]
    of_output = np.repeat(np.arange(len(sizes)), columns)
    channel = np.zeros((of_value.size, of_output.size))
    for block, (size, count) in enumerate(zip(sizes, columns, strict=True)):
        part = random_channel(seed + block, size, count).channel
        channel[np.ix_(of_value == block, of_output == block)] = part
    order, places = rng.permutation(of_value.size), rng.permutation(of_output.size)
    return Dense(channel[order][:, places], groups=(of_value[order], of_output[places]))

"""One noisy bit for each position of an ordered domain ([ML] Section IV; docs/theory.md section 5).

In each dimension of m values, x becomes the vector `b = (-1, .., -1, +1, .., +1)` with +1 from
entry x on. Neighbours differ in one entry, which is flipped with probability `1/(e^epsilon + 1)`.
Sums of products of entries over the dimensions give all ranges. The paper flips and sends the last
entry too. It is always +1, so that here it is not sent and has no noise, and every marginal comes
for free.

A report is a row of bits, packed eight to a byte: bit i of a row is bit `i mod 8`, counted from the
lowest, of byte `i div 8`; bits beyond the row's width are 0. There, 1 stands for +1 and 0 for -1.
It holds the entries `0..m_d - 2` of one dimension after the other; the last entry of every
dimension is +1 and not sent. The statistic is the tensor `o[j_1, .., j_D] = sum_i prod_d R_i[d,
j_d]` of exact sums, in row-major order.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.arrays import Integers
from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.base.lazy import locked_cached_property
from ldpstream.mechanisms.channels.certificate import (
    ENUMERATION_LIMIT,
    Certificate,
    certify_by_enumeration,
)
from ldpstream.mechanisms.channels.channel import Channel
from ldpstream.mechanisms.channels.permanent_draw import Blend
from ldpstream.mechanisms.exact.dyadic import SMALLEST_EPSILON, sign_threshold
from ldpstream.mechanisms.exact.entropy import WORD, Entropy
from ldpstream.mechanisms.families.l1.bits_decoder import L1BitsDecoder
from ldpstream.mechanisms.families.l1.step import StepMechanism, certify_steps
from ldpstream.mechanisms.interface.chain import Chain, blend_of, read_larger
from ldpstream.mechanisms.interface.mechanism import Reports, Statistic

Bytes = NDArray[np.uint8]
_Signs = NDArray[np.float32]

# Bytes whose bits from s on are 1, for s = 0..8.
_FROM = np.array([0xFF << s & 0xFF for s in range(9)], dtype=np.uint8)
# Sums of float32 signs are exact below 2^24, and sums of float64 ones, with up to 2^24 repetitions
# each, below 2^53.
_MOST_ROWS = 1 << 16
_CHUNK_ENTRIES = 1 << 22

_LONGEST_REPORT_BYTES = 8192
_MOST_VALUES = 1 << 20
_MOST_NOISE_TERMS = 1 << 24
_MOST_LISTED_BITS = 10
_MOST_CHANNEL_ENTRIES = 1 << 17
_CHUNK_BYTES = 1 << 22
_LARGEST_SUM = 1e240


def ones_from(starts: Integers, size: int) -> Bytes:
    """Return rows of `size` bytes that are 1 from bit `start` on: uint8 of shape `(n, size)`.

    >>> ones_from(np.array([0, 3, 9, 16]), 2).tolist()
    [[255, 255], [248, 255], [0, 254], [0, 0]]
    """
    first = 8 * np.arange(size, dtype=np.int64)
    rows: Bytes = _FROM[np.clip(starts[:, None] - first, 0, 8)]
    return rows


def unpack(rows: Bytes, width: int) -> Bytes:
    """Return the bits of rows as 0 and 1: uint8 of shape `(n, width)`."""
    return np.unpackbits(rows, axis=1, count=width, bitorder="little")


def packed_bernoulli(entropy: Entropy, probability: Fraction, n: int) -> Bytes:
    """Return `n` bytes of independent bits, each 1 with exactly this probability < 1.

    Each bit compares a uniform number with the probability, digit by digit from the highest. A
    digit below the probability's decides for 1, a digit above it for 0. Bits that are still
    undecided once the probability's digits have ended, after a multiple of 64, are 0. A word holds
    one digit for each of 64 bits, and another is drawn only while one of the 64 is undecided. Since
    each digit decides half of them, 64 bits take some 8 words instead of 64.
    """
    count = -(-n // 8)
    ones = np.zeros(count, dtype=np.uint64)
    undecided = np.full(count, ~np.uint64(0))
    active, rest = np.arange(count), probability
    while active.size and rest:
        threshold, rest = divmod(rest * WORD, 1)
        for place in reversed(range(64)):
            if not active.size:
                break
            digits, still = entropy.words(active.size), undecided[active]
            if threshold >> place & 1:
                ones[active] |= still & ~digits
                still &= digits
            else:
                still &= ~digits
            undecided[active] = still
            active = active[still != 0]
    return ones.astype("<u8", copy=False).view(np.uint8)[:n]


def add_products(
    statistic: Statistic,
    rows: Bytes,
    extents: Sequence[int],
    times: Integers | None = None,
) -> None:
    """Add the products of n reports, uint8 `(n, bytes)`, to the statistic of sizes `extents`.

    Report i counts once, or `times[i]` times, int64 `(n,)` in 0..2^24. This is one matrix product
    of the entries of the first dimensions with those of the others, split where both are smallest.
    """
    split = min(range(len(extents)), key=lambda d: prod(extents[:d]) + prod(extents[d:]))
    entries = prod(extents[:split]) + prod(extents[split:])
    table = statistic.reshape(prod(extents[:split]), prod(extents[split:]))
    step = max(1, min(_MOST_ROWS, _CHUNK_ENTRIES // entries))
    for start in range(0, len(rows), step):
        chunk = rows[start : start + step]
        signs = list(_signs(chunk, extents))
        first, second = _products(signs[:split], len(chunk)), _products(signs[split:], len(chunk))
        if times is None:
            table += (first.T @ second).astype(np.int64)
        else:
            repeated = first.astype(np.float64) * times[start : start + step, None]
            table += (repeated.T @ second.astype(np.float64)).astype(np.int64)


def _signs(rows: Bytes, extents: Sequence[int]) -> Iterator[_Signs]:
    """Yield each dimension's entries as +1 and -1, float32 `(n, m_d)`, the last one +1."""
    bits = unpack(rows, sum(extents) - len(extents))
    start = 0
    for extent in extents:
        signs = np.ones((len(rows), extent), dtype=np.float32)
        np.multiply(bits[:, start : start + extent - 1], np.float32(2.0), out=signs[:, :-1])
        signs[:, :-1] -= 1.0
        yield signs
        start += extent - 1


def _products(signs: Sequence[_Signs], n: int) -> _Signs:
    """Return the products of n reports over some dimensions, float32 `(n, product of sizes)`."""
    table = np.ones((n, 1), dtype=np.float32)
    for following in signs:
        table = (table[:, :, None] * following[:, None, :]).reshape(n, -1)
    return table


@dataclass(frozen=True)
class L1Bits(StepMechanism):
    """One noisy bit for each index step; see `StepMechanism` for the fields.

    Reports are rows of packed bits, uint8 `(n, report_bytes)`: entries 0 to m - 2 of one dimension
    after the other, 1 for +1, the unused bits of the last byte 0 (`unpack`).

    Raises:
        SpecError: as for `StepMechanism`, and if epsilon is so small that reports carry no
            information or decoders exceed the range of floats, or if reports or statistics would be
            too large.
    """

    id: ClassVar[str] = "l1-bits"

    def __post_init__(self) -> None:
        super().__post_init__()
        if 2 * self.threshold <= WORD:
            raise SpecError("epsilon", f"a number of at least {SMALLEST_EPSILON}")
        # The noise of sums has a factor 1/t for each dimension, besides its own 1/t^2.
        if 3 * len(self.extents) * -math.log(self.contrast) > math.log(_LARGEST_SUM):
            raise SpecError("epsilon", f"a larger number in {len(self.extents)} dimensions")

    @classmethod
    def check_shape(cls, shape: tuple[int, ...], path: str) -> None:
        extents = tuple(extent for extent in shape if extent > 1)
        longest = 8 * _LONGEST_REPORT_BYTES
        bits = sum(extents) - len(extents)
        if bits > longest:
            raise SpecError(path, f"at most {longest} bits a report, one a position, got {bits}")
        most = min(_MOST_VALUES, _MOST_NOISE_TERMS >> len(extents))
        size = math.prod(extents)
        if size > most:
            raise SpecError(
                path,
                f"at most {most} values in {len(extents)} dimensions, as every report adds to a "
                f"sum for each, got {size}",
            )

    def sum_out(self, table: Statistic) -> Statistic:
        """Return the sums with the entry of the last weight, which is 1."""
        return table[:, -1].copy()

    @cached_property
    def threshold(self) -> int:
        """The probability of keeping an entry in units of 2^-64: T of `dyadic.sign_threshold`."""
        return sign_threshold(self.policy.step)

    @property
    def contrast(self) -> float:
        """The realised t, the mean of an entry of +1: `(2 T - 2^64) / 2^64`."""
        return (2 * self.threshold - WORD) / WORD

    @property
    def report_bits(self) -> int:
        """Number of noisy entries of a report."""
        return sum(self.extents) - len(self.extents)

    @property
    def report_bytes(self) -> int:
        """Length of a report: one bit for each noisy entry, in whole bytes."""
        return -(-self.report_bits // 8)

    @property
    def statistic_size(self) -> int:
        """Length of the statistic: a sum for each combination of entries, one of each dimension."""
        return self.size

    def possible_reports(self) -> Reports:
        """Return all rows of bits, the numbers `0..2^bits - 1` little-endian."""
        if self.report_bits > _MOST_LISTED_BITS:
            raise ValueError(f"the 2^{self.report_bits} reports are too many to list")
        numbers = np.arange(1 << self.report_bits, dtype="<i8")
        rows: Reports = numbers.view(np.uint8).reshape(-1, 8)[:, : self.report_bytes].copy()
        return rows

    def channel(self) -> Channel:
        reports = self.possible_reports()
        if self.size * len(reports) > _MOST_CHANNEL_ENTRIES:
            raise ValueError(f"the channel of {self.size} values is too large to enumerate")
        keep = Fraction(self.threshold, WORD)
        powers = [
            keep ** (self.report_bits - flips) * (1 - keep) ** flips
            for flips in range(self.report_bits + 1)
        ]
        plain = self._plain(np.arange(self.size))
        flips = np.bitwise_count(plain[:, None, :] ^ reports).sum(axis=2, dtype=np.int64)
        rows = [{y: powers[count] for y, count in enumerate(row)} for row in flips.tolist()]
        return Channel(tuple(rows), len(reports))

    def certify(self) -> Certificate:
        """Prove the realised loss: by enumeration if values and reports are few, else by structure.

        By structure: entries are independent, and one step of one coordinate changes the sign of
        exactly one of them, whose two probabilities have the ratio `T / (2^64 - T)`. Steps add up
        as in `certify_steps`.
        """
        policy, ratio = self.policy, Fraction(self.threshold, WORD - self.threshold)
        if self.size <= ENUMERATION_LIMIT and self.report_bits <= _MOST_LISTED_BITS:
            return certify_by_enumeration(self.id, policy, self.channel(), self.disclosed())
        return certify_steps(self.id, policy, ratio, self.disclosed())

    def randomise(self, values: NDArray[np.int64], entropy: Entropy) -> Reports:
        """Randomise values, int64 of shape `(n,)`, into reports, uint8 `(n, report_bytes)`.

        The coins, 1 for an entry that is kept, come from `packed_bernoulli`, for many reports at
        once.
        """
        keep = Fraction(self.threshold, WORD)
        reports = np.empty((len(values), self.report_bytes), dtype=np.uint8)
        step = max(1, _CHUNK_BYTES // self.report_bytes)
        for start in range(0, len(values), step):
            plain = self._plain(values[start : start + step])
            reports[start : start + step] = _flipped(plain, keep, self._used, entropy)
        return reports

    def chain(self, epsilon: object) -> tuple[Self, "BitChain"]:
        """Return the mechanism of a permanent draw, and the chain from it to reports.

        Each bit is flipped again independently. A step of one coordinate changes one bit, so that
        the loss of two values is exactly the sum over their steps.
        """
        permanent = replace(self, epsilon=read_larger(epsilon, self.epsilon))
        share = Fraction(permanent.threshold, WORD)
        blend = blend_of((2, 1), (share, 1 - share), Fraction(self.threshold, WORD))
        return permanent, BitChain(blend, self._used, self.report_bits)

    def _plain(self, values: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Return the rows of values without noise: ones from the coordinate on, by dimension."""
        rows = np.zeros((len(values), self.report_bytes), dtype=np.uint8)
        ends = np.cumsum([extent - 1 for extent in self.extents])
        rest = values
        for extent, end in zip(self.extents[::-1], ends[::-1], strict=True):
            rest, coordinate = np.divmod(rest, extent)
            rows ^= ones_from(end - (extent - 1) + coordinate, self.report_bytes)
            rows ^= ones_from(np.array([end]), self.report_bytes)
        return rows

    @cached_property
    def _used(self) -> NDArray[np.uint8]:
        """The bits that a report uses, as a row."""
        used: NDArray[np.uint8] = ~ones_from(np.array([self.report_bits]), self.report_bytes)[0]
        return used

    def encode(self, reports: Reports) -> NDArray[np.uint8]:
        return np.ascontiguousarray(reports, dtype=np.uint8)

    def decode(self, payload: NDArray[np.uint8]) -> tuple[Reports, NDArray[np.bool_]]:
        """Return the payload and which rows are reports: those whose unused bits are 0."""
        unused = payload[:, -1] & ~self._used[-1]
        return payload, unused == 0

    def accumulate(self, statistic: Statistic, reports: Reports) -> None:
        """Add the products of the entries of reports, uint8 `(n, report_bytes)`, in place."""
        add_products(statistic, reports, self.extents)

    def accumulate_times(
        self, statistic: Statistic, reports: Reports, times: NDArray[np.int64]
    ) -> None:
        """Add the products of report i `times[i]` times, int64 `(n,)` in 0..2^24, in place."""
        add_products(statistic, reports, self.extents, times)

    @locked_cached_property
    def decoder(self) -> L1BitsDecoder:
        return L1BitsDecoder(self.threshold, self.extents)


@dataclass(frozen=True, eq=False)
class BitChain(Chain):
    """The chain of `l1-bits`: each bit stays, or is replaced by a fair coin.

    `blend` describes one bit, `used` marks the bits of a report, uint8 `(report_bytes,)`, and
    `steps` is their number: opposite corners differ in all of them.
    """

    blend: Blend
    used: Bytes
    steps: int

    @property
    def shared_noise(self) -> float:
        """The part of one bit: no function of independent ones shares more (Witsenhausen 1975)."""
        return self.blend.shared_noise

    @property
    def stay(self) -> Fraction:
        """The probability that a bit equals that of the permanent row."""
        return (1 + self.blend.keep) / 2

    def again(self, reports: Bytes, entropy: Entropy) -> Bytes:
        return _flipped(reports, self.stay, self.used, entropy)

    def canonical(self) -> Sequence[Json]:
        return [str(self.stay)]

    def ratio(self, reports: int) -> Fraction:
        """Return the exact largest ratio of two values that differ in one bit."""
        return self.blend.ratio(reports)


def _flipped(rows: Bytes, keep: Fraction, used: Bytes, entropy: Entropy) -> Bytes:
    """Return rows, uint8 `(n, size)`, whose used bits stay with probability `keep` < 1 each."""
    unchanged = packed_bernoulli(entropy, keep, rows.size).reshape(rows.shape)
    flipped: Bytes = rows ^ (~unchanged & used)
    return flipped

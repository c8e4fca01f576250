"""One noisy bit for each position of an ordered domain ([ML] Section IV; docs/theory.md section 5).

In each dimension of m values, x becomes the vector `b = (-1, .., -1, +1, .., +1)` with +1 from
entry x on. Neighbours differ in one entry, which is flipped with probability `1/(e^epsilon + 1)`.
Sums of products of entries over the dimensions give all ranges. The paper flips and sends the last
entry too. It is always +1, so that here it is not sent and has no noise, and every marginal comes
for free.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

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
from ldpstream.mechanisms.families.l1.bit_rows import (
    Bytes,
    add_products,
    ones_from,
    packed_bernoulli,
    row_bytes,
)
from ldpstream.mechanisms.families.l1.bits_decoder import L1BitsDecoder
from ldpstream.mechanisms.families.l1.step import StepMechanism, certify_steps
from ldpstream.mechanisms.interface.chain import Chain, blend_of, read_larger
from ldpstream.mechanisms.interface.mechanism import Reports, Statistic

_LONGEST_REPORT_BYTES = 8192
_MOST_VALUES = 1 << 20
_MOST_NOISE_TERMS = 1 << 24
_MOST_LISTED_BITS = 10
_MOST_CHANNEL_ENTRIES = 1 << 17
_CHUNK_BYTES = 1 << 22
_LARGEST_SUM = 1e240


@dataclass(frozen=True)
class L1Bits(StepMechanism):
    """One noisy bit for each index step; see `StepMechanism` for the fields.

    Reports are rows of packed bits, uint8 `(n, report_bytes)`: entries 0 to m - 2 of one dimension
    after the other, 1 for +1, the unused bits of the last byte 0 (`bit_rows`).

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
        return row_bytes(self.report_bits)

    @property
    def statistic_size(self) -> int:
        """Length of the statistic: a sum for each combination of entries, one of each dimension."""
        return self.size

    def possible_reports(self) -> Reports:
        """Return all rows of bits, the numbers `0..2^bits - 1` little-endian.

        Raises:
            ValueError: if there are more than 1024.
        """
        if self.report_bits > _MOST_LISTED_BITS:
            raise ValueError(f"the 2^{self.report_bits} reports are too many to list")
        numbers = np.arange(1 << self.report_bits, dtype="<i8")
        rows: Reports = numbers.view(np.uint8).reshape(-1, 8)[:, : self.report_bytes].copy()
        return rows

    def channel(self) -> Channel:
        """Return the realised channel in exact rationals.

        Raises:
            ValueError: if there are more than 1024 reports, or 2^17 pairs of value and report.
        """
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

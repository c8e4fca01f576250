"""Rows of bits that are drawn from a permanent row by flipping each bit independently."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.channels.held import Blend
from ldpstream.mechanisms.exact.entropy import Entropy
from ldpstream.mechanisms.families.l1.bit_rows import Bytes, packed_bernoulli
from ldpstream.mechanisms.interface.chain import Chain


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
        """Return the reports that are sent for permanent ones, uint8 `(n, report_bytes)` both."""
        return flip(reports, self.stay, self.used, entropy)

    def canonical(self) -> Sequence[Json]:
        """Return the probability that a bit stays, as an exact fraction."""
        return [str(self.stay)]

    def ratio(self, reports: int) -> Fraction:
        """Return the exact largest ratio of two values that differ in one bit."""
        return self.blend.ratio(reports)


def flip(rows: Bytes, keep: Fraction, used: Bytes, entropy: Entropy) -> Bytes:
    """Return rows, uint8 `(n, size)`, whose used bits stay with probability `keep` < 1 each."""
    kept = packed_bernoulli(entropy, keep, rows.size).reshape(rows.shape)
    flipped: Bytes = rows ^ (~kept & used)
    return flipped

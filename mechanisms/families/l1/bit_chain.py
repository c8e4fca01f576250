"""Rows of bits that are flipped again out of a permanent row, each bit by itself."""

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
    """M of `l1-bits`: a bit stays, or is a fair coin, which flips it half as often.

    `blend` is that of one bit, `used` marks the bits of a report, uint8 `(report_bytes,)`, and
    `steps` is their number: opposite corners differ in all of them.
    """

    blend: Blend
    used: Bytes
    steps: int

    @property
    def stay(self) -> Fraction:
        """The probability with which a bit is that of the permanent row."""
        return (1 + self.blend.keep) / 2

    def again(self, reports: Bytes, entropy: Entropy) -> Bytes:
        """Return what is sent for permanent reports, uint8 `(n, report_bytes)` both."""
        return flip(reports, self.stay, self.used, entropy)

    def canonical(self) -> Sequence[Json]:
        """Return the probability with which a bit stays, as an exact fraction."""
        return [str(self.stay)]

    def ratio(self, reports: int) -> Fraction:
        """Return the largest ratio of two values of which one bit differs, exactly."""
        return self.blend.ratio(reports)


def flip(rows: Bytes, keep: Fraction, used: Bytes, entropy: Entropy) -> Bytes:
    """Return rows, uint8 `(n, size)`, of whose used bits each stays with a probability below 1."""
    kept = packed_bernoulli(entropy, keep, rows.size).reshape(rows.shape)
    flipped: Bytes = rows ^ (~kept & used)
    return flipped

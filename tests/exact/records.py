"""Records of several attributes: how they are placed and sent, and the whole channel."""

from collections.abc import Sequence
from fractions import Fraction

from ldpstream.mechanisms import CollectionSpec
from ldpstream.mechanisms.domains.attributes import Attributes
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.families.sampled.sampled import Sampled
from ldpstream.mechanisms.interface.mechanism import Mechanism
from ldpstream.mechanisms.policies.policy import BlockPolicy

Record = tuple[int, ...]
"""The index of its value in each part."""


def sampled(spec: CollectionSpec) -> tuple[Attributes, Sampled]:
    """Return domain and mechanism of a collection of records."""
    assert isinstance(spec.domain, Attributes)
    assert isinstance(spec.mechanism, Sampled)
    return spec.domain, spec.mechanism


def block_policy(mechanism: Mechanism) -> BlockPolicy:
    """Return the policy of an attribute or a pair that protects its values in blocks."""
    assert isinstance(mechanism.policy, BlockPolicy)
    return mechanism.policy


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

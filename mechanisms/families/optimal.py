"""A channel from a file, designed for a policy and a workload (docs/theory.md section 8).

`ldpstream plan --optimise FILE` writes the file: the channel of least variance that a policy allows
(pairs of values, a graph's metric, or localized information privacy of k values), rounded to
multiples of 2^-64 so that the policy holds exactly. A certificate proves this at every report.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from math import expm1
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.arrays import Floats, Integers
from ldpstream.mechanisms.base.canonical import Json, canonical_json, text_table
from ldpstream.mechanisms.base.checks import read_epsilon
from ldpstream.mechanisms.base.errors import SpecError, within
from ldpstream.mechanisms.base.lazy import locked_cached_property
from ldpstream.mechanisms.channels.certificate import Certificate
from ldpstream.mechanisms.channels.channel import Channel
from ldpstream.mechanisms.channels.designed import DesignedChannel, load_channel
from ldpstream.mechanisms.exact.dyadic import budget
from ldpstream.mechanisms.exact.entropy import WORD, Entropy, choose_by_words
from ldpstream.mechanisms.interface.chain import MixtureChain, read_larger, too_near
from ldpstream.mechanisms.interface.mechanism import Reports
from ldpstream.mechanisms.interface.settings import Settings
from ldpstream.mechanisms.interface.symbols import DenseDecoder, SymbolMechanism
from ldpstream.mechanisms.policies.config import refuse_rounding
from ldpstream.mechanisms.policies.policy import Policy

_MARGIN = 1.0 - 2.0**-20
"""Reduces a share from its floating-point value; the result is proved exactly."""


@dataclass(frozen=True)
class Optimal(SymbolMechanism):
    """The mechanism of a designed channel; a report is the number of a column."""

    id: ClassVar[str] = "optimal"
    design: DesignedChannel

    @classmethod
    def configure(cls, settings: Settings) -> Self:
        """Build the mechanism from a collection's keys: `channel`, the path of a channel file.

        The policy is proved here, within a second for 256 values, so that no device uses a file
        that violates it.
        """
        settings.only(cls.id, "channel")
        # The file's policy holds for the grid's values, not for the numbers between them.
        refuse_rounding(settings.domain, settings.path)
        raw = settings.keys.get("channel")
        path = f"{settings.path}.channel"
        with within(settings.path):
            design = load_channel(raw, settings.base)
        if design.policy.size != settings.domain.size:
            raise SpecError(
                path, f"a channel of {settings.domain.size} values, got {design.policy.size}"
            )
        mechanism = cls(design)
        violation = mechanism.certify().violation
        if violation is not None:
            raise SpecError(path, f"a channel that keeps its policy, got {violation}")
        return mechanism

    @property
    def size(self) -> int:
        return self.design.policy.size

    @property
    def outputs(self) -> int:
        return self.design.outputs

    @property
    def policy(self) -> Policy:
        return self.design.policy

    def parameters(self) -> Mapping[str, Json]:
        return {"outputs": self.outputs, "channel": {"sha256": self.design.digest}}

    def tables(self) -> Mapping[str, Json]:
        return text_table("channel", canonical_json(self.design.content()))

    def channel(self) -> Channel:
        return self.design.channel

    def certify(self) -> Certificate:
        """Return a certificate of the policy at every output, for pairs that imply all others."""
        return self._certificate

    @locked_cached_property
    def _certificate(self) -> Certificate:
        return self.design.certify(self.id, self.disclosed())

    def randomise(self, values: Integers, entropy: Entropy) -> Reports:
        """Randomise values, int64 of shape `(n,)` in `0..k-1`, into reports of shape `(n,)`.

        Takes one word for each value: each report owns an interval of the value's 2^64 words.
        """
        words = entropy.words(len(values))
        reports = np.empty(len(values), dtype=np.int64)
        for value in np.unique(values).tolist():
            outputs, ends = self._intervals[value]
            places = np.flatnonzero(values == value) if len(values) > 1 else slice(None)
            reports[places] = outputs[np.searchsorted(ends, words[places], side="right")]
        return reports

    @cached_property
    def _intervals(self) -> tuple[tuple[Integers, NDArray[np.uint64]], ...]:
        """For each value, the possible reports, and the ends of their intervals but the last."""
        intervals = []
        for row in self.design.weights:
            outputs = np.array([y for y, weight in enumerate(row) if weight], dtype=np.int64)
            weights = np.array([row[y] for y in outputs[:-1]], dtype=np.uint64)
            ends = np.cumsum(weights, dtype=np.uint64)
            intervals.append((outputs, ends))
        return tuple(intervals)

    def chain(self, epsilon: object) -> "tuple[Optimal, SharedChain]":
        design, share, chain = _permanent_channel(self.design, epsilon)
        return Permanent(design, self, read_epsilon(epsilon, "hold.epsilon"), share), chain

    @locked_cached_property
    def decoder(self) -> "TableDecoder":
        """The decoder of least variance for the design prior, unbiased for any other."""
        return TableDecoder(self.design)

    def disclosed(self) -> list[str]:
        unprotected = self.policy.unprotected
        return [] if unprotected is None else [unprotected]


@dataclass(frozen=True)
class Permanent(Optimal):
    """The permanent draw of reports of `like`: its channel minus a share of the common part."""

    like: Optimal
    epsilon: float
    share: int

    def parameters(self) -> Mapping[str, Json]:
        """Return the file's parameters, the largest budget, and the share in units of 2^-64."""
        return {**self.like.parameters(), "epsilon": self.epsilon, "share": hex(self.share)}

    def tables(self) -> Mapping[str, Json]:
        """Return the tables of the file, from which this channel follows."""
        return self.like.tables()

    def randomise(self, values: Integers, entropy: Entropy) -> Reports:
        """Randomise values, int64 of shape `(n,)` in `0..k-1`, into reports of shape `(n,)`.

        Takes one word for each value, rarely more. The ends of all reports are compared with it,
        also of those that the value cannot produce.
        """
        words = entropy.words(len(values))
        reports = np.empty(len(values), dtype=np.int64)
        for value in np.unique(values).tolist():
            here = np.flatnonzero(values == value)
            row = self.design.weights[value]
            ends = [Fraction(end, self.design.total) for end in accumulate(row[:-1])]
            reports[here] = choose_by_words(entropy, ends, words[here])
        return reports


class TableDecoder(DenseDecoder):
    """`h_x(y) = (I^-1 v_y)[x]`, `v_y = Q[., y] / P(y)`, `I = sum_y P(y) v_y v_y^T`.

    Of all h with `Q h = 1`, which are unbiased whatever values follow, it has the least
    `sum_y P(y) h_x(y)^2`: the least variance if they follow the design prior. With
    `A = Q / sqrt(P(y))` it is the transposed pseudoinverse of A over `sqrt(P(y))`. This is more
    accurate than inverting I, whose condition number is that of A squared.
    """

    def __init__(self, design: DesignedChannel) -> None:
        inverse = np.linalg.pinv(design.whitened, rcond=0.0).T
        h: Floats = inverse / np.sqrt(design.probabilities)
        # One step of refinement makes Q h = 1 to the last digits.
        refined = h + (np.eye(len(h)) - design.matrix @ h.T).T @ h
        super().__init__(refined, design.matrix)


class SharedChain(MixtureChain):
    """A chain that devices derive from the file and the share."""

    def canonical(self) -> Sequence[Json]:
        """Return nothing, since devices derive the chain themselves."""
        return []


def _permanent_channel(
    design: DesignedChannel, raw: object
) -> tuple[DesignedChannel, int, SharedChain]:
    """Return the channel of a permanent draw, its share in units of 2^-64, and the chain.

    Every value gives report y at least the probability `m[y] = min_x Q[x, y]`. Subtracting a share
    of these leaves, up to a constant, another channel Q1 that reveals more:
    `Q = lambda Q1 + (1 - lambda) 1 beta^T`, with `beta` proportional to m. A report is therefore
    the permanent one with probability lambda, and otherwise drawn from beta. The share is the
    largest with which Q1 keeps its budgets, which are those of the file times one factor.

    `raw` is the budget of the permanent draw for the two values that the file protects least.
    """
    policy = design.policy
    if policy.by_entries() is not policy or policy.unprotected is not None:
        raise SpecError(
            "hold.epsilon",
            "no such key with a channel for priors, or for a policy that leaves values "
            "unprotected: hold = H repeats its reports",
        )
    largest = policy.largest_loss()
    epsilon = budget(read_larger(raw, float(largest)))
    allowed = policy.scaled(epsilon / largest)
    shared = [min(column) for column in zip(*design.weights, strict=True)]
    share = int(_largest_share(design, shared, allowed) * WORD)
    floors = [weight * share >> 64 for weight in shared]
    rest = WORD - sum(floors)
    if rest == WORD:
        raise too_near()
    rows = tuple(
        tuple(weight - less for weight, less in zip(row, floors, strict=True))
        for row in design.weights
    )
    permanent = DesignedChannel(allowed, rows, design.prior, total=rest)
    if permanent.channel.satisfies(allowed) is not None:
        raise too_near()
    columns = [(max(column), min(column)) for column in zip(*rows, strict=True)]
    chain = SharedChain(
        keep=Fraction(rest, WORD),
        others=tuple(Fraction(weight, WORD) for weight in floors),
        extremes=tuple(
            (y, Fraction(more, rest), Fraction(less, rest))
            for y, (more, less) in enumerate(columns)
            if more > less
        ),
        largest=tuple(Fraction(more, rest) for more, _ in columns),
    )
    return permanent, share, chain


def _largest_share(design: DesignedChannel, shared: list[int], allowed: Policy) -> float:
    """Return the largest share, below 1, with which the remaining channel keeps the budgets."""
    rows, least = design.matrix, np.array(shared, dtype=np.float64) / WORD
    most = 1.0
    for value, other, larger in allowed.constraints():
        grown = expm1(float(larger))
        room = grown * rows[other] + (rows[other] - rows[value])
        most = min(most, float((room / (grown * least)).min()))
    return max(most, 0.0) * _MARGIN

"""A channel from a file, designed for a policy and a workload (docs/theory.md section 8).

`ldpstream plan --optimise FILE` writes the file: the channel of least variance that a policy allows
(pairs of values, a graph's metric, or localized information privacy of k values), rounded to
multiples of 2^-64 so that the policy holds exactly. A certificate proves this at every report.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.canonical import canonical_json
from ldpstream.mechanisms.base.checks import read_epsilon
from ldpstream.mechanisms.base.errors import SpecError, within
from ldpstream.mechanisms.base.once import once
from ldpstream.mechanisms.channels.certificate import Certificate
from ldpstream.mechanisms.channels.channel import Channel
from ldpstream.mechanisms.channels.channel_file import load_channel
from ldpstream.mechanisms.channels.designed import DesignedChannel
from ldpstream.mechanisms.exact.entropy import Entropy, choose_rational
from ldpstream.mechanisms.families.optimal_held import SharedChain, held_channel
from ldpstream.mechanisms.interface.dense_decoder import DenseDecoder
from ldpstream.mechanisms.interface.mechanism import Json, Reports
from ldpstream.mechanisms.interface.settings import Settings
from ldpstream.mechanisms.interface.symbols import SymbolMechanism
from ldpstream.mechanisms.interface.tables import text_table
from ldpstream.mechanisms.policies.keys import refuse_rounding
from ldpstream.mechanisms.policies.policy import Policy


class TableDecoder(DenseDecoder):
    """`h_x(y) = (I^-1 v_y)[x]`, `v_y = Q[., y] / P(y)`, `I = sum_y P(y) v_y v_y^T`.

    Of all unbiased decoders it has the least variance if values follow the design prior
    (docs/theory.md section 8), and it is unbiased whatever they follow. With `A = Q / sqrt(P(y))`
    it is the transposed pseudoinverse of A over `sqrt(P(y))`. This is more accurate than inverting
    I, whose condition number is that of A squared.
    """

    def __init__(self, design: DesignedChannel) -> None:
        inverse = np.linalg.pinv(design.whitened, rcond=0.0).T
        h: NDArray[np.float64] = inverse / np.sqrt(design.probabilities)
        # One step of refinement makes Q h = 1 to the last digits.
        refined = h + (np.eye(len(h)) - design.matrix @ h.T).T @ h
        super().__init__(refined, design.matrix)


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

        Raises:
            SpecError: if the file is invalid, has another number of values, or violates its own
                policy, naming the pair of values and the report.
        """
        settings.only(cls.id, "channel")
        # The file's policy holds for the grid's values, not for the numbers between them.
        refuse_rounding(settings.domain, settings.path)
        given = settings.keys.get("channel")
        path = f"{settings.path}.channel"
        with within(settings.path):
            design = load_channel(given, settings.base)
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

    @once
    def certify(self) -> Certificate:
        """Return a certificate of the policy at every output, for pairs that imply all others."""
        return self.design.certify(self.id, self.disclosed())

    def randomise(self, values: NDArray[np.int64], entropy: Entropy) -> Reports:
        """Randomise values, int64 of shape `(n,)` in `0..k-1`, into reports of shape `(n,)`.

        Takes one word for each value: each report owns an interval of the value's 2^64 words.
        """
        words = entropy.words(len(values))
        reports = np.empty(len(values), dtype=np.int64)
        for value in np.unique(values).tolist():
            outputs, ends = self._intervals[value]
            own = np.flatnonzero(values == value) if len(values) > 1 else slice(None)
            reports[own] = outputs[np.searchsorted(ends, words[own], side="right")]
        return reports

    @cached_property
    def _intervals(self) -> tuple[tuple[NDArray[np.int64], NDArray[np.uint64]], ...]:
        """For each value, the possible reports, and the ends of their intervals but the last."""
        intervals = []
        for row in self.design.weights:
            outputs = np.array([y for y, weight in enumerate(row) if weight], dtype=np.int64)
            ends = np.cumsum(np.array([row[y] for y in outputs[:-1]], dtype=np.uint64))
            intervals.append((outputs, ends))
        return tuple(intervals)

    def chain(self, epsilon: object) -> "tuple[Optimal, SharedChain]":
        design, share, chain = held_channel(self.design, epsilon)
        return Permanent(design, self, read_epsilon(epsilon, "hold.epsilon"), share), chain

    @once
    def decoder(self) -> TableDecoder:
        """Return the decoder of least variance for the design prior, unbiased for any other."""
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

    def randomise(self, values: NDArray[np.int64], entropy: Entropy) -> Reports:
        """Randomise values, int64 of shape `(n,)` in `0..k-1`, into reports of shape `(n,)`.

        Values are drawn in ascending order, by `choose_rational` with the ends of all reports, also
        of those that the value cannot produce.
        """
        reports = np.empty(len(values), dtype=np.int64)
        for value in np.unique(values).tolist():
            here = np.flatnonzero(values == value)
            row = self.design.weights[value]
            ends = [Fraction(end, self.design.total) for end in accumulate(row[:-1])]
            reports[here] = choose_rational(entropy, ends, here.size)
        return reports

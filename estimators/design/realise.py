"""Rounding of a design to a channel that keeps its policy exactly.

Probabilities become multiples of 2^-64. A column is first mixed with a little of the column of
ones, which is inside every cone, so that rounding down violates no budget; the amount grows until
the integers keep the policy exactly. The remainder of every row goes to one more report, with
nearly the same probability for all values, whose share grows until it keeps the policy too. Rows
then sum to 1 exactly, and the decoder is that of the rounded channel.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from ldpstream.estimators.design.cone import DesignError
from ldpstream.estimators.design.optimise import Design
from ldpstream.mechanisms.base.arrays import Floats
from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.channels.designed import DesignedChannel, save_channel, tabled
from ldpstream.mechanisms.exact.dyadic import exp_floor
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.policies.policy import Policy
from ldpstream.mechanisms.policies.prior import PriorPolicy

Keeps = Callable[[list[int]], bool]

_NEGLIGIBLE = 2.0**-40
_LEAST_SHARE, _MOST_SHARE = 2.0**-38, 2.0**-8
_LEAST_MIXED, _MOST_MIXED = 2.0**-50, 2.0**-6


def realise(design: Design) -> DesignedChannel:
    """Return the design's channel, rounded so that it keeps its policy exactly.

    Raises:
        DesignError: if no rounding keeps it, since budgets are too small for multiples of 2^-64.
        SpecError: if the policy has more values than channel files hold.
    """
    policy = tabled(design.policy)
    keeps = _keeper(policy)
    share = _LEAST_SHARE
    while share <= _MOST_SHARE:
        columns = [
            _round(column * weight * (1.0 - share), keeps)
            for column, weight in zip(design.columns, design.weights, strict=True)
            if weight > _NEGLIGIBLE
        ]
        rest = [WORD - sum(row) for row in zip(*columns, strict=True)]
        if min(rest) > 0 and keeps(rest):
            return DesignedChannel(
                policy=policy,
                weights=tuple(zip(*columns, rest, strict=True)),
                prior=tuple(design.prior.tolist()),
                record=_record(design),
            )
        share *= 16.0
    raise DesignError("no convergence: no rounding to multiples of 2^-64 keeps the policy")


def write_channel(path: str | Path, design: Design) -> DesignedChannel:
    """Realise a design, write its channel file, and return what was written."""
    channel = realise(design)
    save_channel(Path(path), channel)
    return channel


def _keeper(policy: Policy) -> Keeps:
    """Return an exact test of whether a report, numerators of `Q[., y]`, keeps a policy."""
    if isinstance(policy, PriorPolicy):
        limit = exp_floor(policy.budget)

        def keeps_prior(column: list[int]) -> bool:
            ratio, _ = policy.worst_ratio(column)
            return ratio is not None and ratio <= limit

        return keeps_prior
    floors = {budget: exp_floor(budget) for _, _, budget in policy.constraints()}
    limits = [
        (value, other, floors[budget].numerator, floors[budget].denominator)
        for value, other, budget in policy.constraints()
    ]

    def keeps_pairs(column: list[int]) -> bool:
        return all(column[x] * bottom <= top * column[z] for x, z, top, bottom in limits)

    return keeps_pairs


def _round(column: Floats, keeps: Keeps) -> list[int]:
    """Return numerators over 2^64 of a column of probabilities that keep the policy."""
    possible = column > 0.0
    mixed = _LEAST_MIXED
    while mixed <= _MOST_MIXED:
        level = mixed * float(column[possible].mean())
        inside = np.where(possible, (1.0 - mixed) * column + level, 0.0)
        rounded = [int(entry) for entry in np.ldexp(inside, 64)]
        if keeps(rounded):
            return rounded
        mixed *= 4.0
    raise DesignError("no convergence: no rounding to multiples of 2^-64 keeps the policy")


def _record(design: Design) -> dict[str, Json]:
    return {
        "workload": design.workload.name,
        "queries": design.workload.queries,
        "population_variance": design.population,
        "respondents_variance": design.respondents,
        "gap": design.gap,
        "status": design.status,
        "starts": design.starts,
    }

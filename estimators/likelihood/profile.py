"""Bounds by profile likelihood: all shares, or quantiles, that the reports do not contradict.

A share psi of a set is excluded if the largest likelihood with that share is far below the largest
of all. A position t is below the q-quantile if `F(t) >= q` is excluded, and above it if
`F(t - 1) <= q` is. Every exclusion is proved for the given counts (`solver.Tangent`), and what
cannot be proved stays inside, so that numerical errors only widen bounds. How far is far comes from
simulations: no proof is known.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

import numpy as np

from ldpstream.estimators.bounds.likelihood_rule import choose_likelihood, threshold
from ldpstream.estimators.bounds.options import Options
from ldpstream.estimators.bounds.two_valued import quantile
from ldpstream.estimators.bounds.types import Estimate, Sums
from ldpstream.estimators.likelihood.line import Line
from ldpstream.estimators.likelihood.solver import Fit, Tangent, maximise
from ldpstream.mechanisms.base.arrays import Bools, Integers

_TRIALS: Final = 16
_NEAR: Final = 0.02
"""How far out an end may be, as a fraction of its distance from the estimate."""
_ENOUGH: Final = 0.1
"""Fraction of the limit; this close to it, tangents cross it where the likelihood does."""
_SLACK: Final = 0.03
"""Fraction of a difference of likelihoods to which a solution need not be exact."""
_TINY: Final = 1e-6
_HALVINGS: Final = 30


@dataclass(frozen=True)
class Profile:
    """Bounds by likelihood, for counts of at least one report; they hold one at a time.

    A hypothesis is excluded if its largest log-likelihood is further below that of the `best`
    shares than `share_limit`, for sets, or `quantile_limit`.
    """

    line: Line
    best: Fit
    share_limit: float
    quantile_limit: float

    @classmethod
    def of(cls, line: Line, confidence: float) -> Self:
        """Return the bounds with a confidence up to 0.99."""
        most = threshold(confidence)
        if most is None:
            raise ValueError(f"confidence: expected at most 0.99, got {confidence:g}")
        far = quantile(1.0 - confidence) ** 2
        return cls(line, maximise(line), most / 2.0, far / 2.0)

    def share(self, members: Bools) -> tuple[float, float]:
        """Return bounds on the share of some values, bool `(k,)`, but neither none nor all."""
        return self._low(members), 1.0 - self._low(~members)

    def position(self, q: float, positions: Integers) -> tuple[int, int]:
        """Return bounds on the q-quantile, q in (0, 1), as positions.

        `positions` holds that of each value, int64 `(k,)`, >= 0.
        """
        cumulative = np.cumsum(np.bincount(positions, self.best.shares))
        size = cumulative.size
        middle = min(int(np.searchsorted(cumulative, q)), size - 1)
        low, inside = -1, middle
        while inside - low > 1:
            t = (low + inside) // 2
            if self._excludes(positions <= t, q, above=True):
                low = t
            else:
                inside = t
        outside, last = size, middle
        while outside - last > 1:
            t = (outside + last) // 2
            if self._excludes(positions < t, q, above=False):
                outside = t
            else:
                last = t
        return inside, last

    def _excludes(self, members: Bools, q: float, *, above: bool) -> bool:
        """Return whether it is proved that a share is below q (`above`), or above q."""
        share = float(self.best.shares[members].sum())
        if (share >= q) if above else (share <= q):
            return False
        bound = maximise(self.line, members, q, self._settled).bound
        return self.best.value - bound > self.quantile_limit

    def _settled(self, fit: Fit) -> bool:
        """Return whether a better fit could not change the result."""
        limit = self.quantile_limit
        return self.best.value - fit.bound > limit or self.best.value - fit.value <= limit

    def _low(self, members: Bools) -> float:
        """Return a share below which all are excluded, by Newton's method from outside.

        The largest likelihood is concave in the share, and each solution's tangent bounds it at
        every share: what the tangents exclude is excluded.
        """
        limit = self.share_limit
        estimate = float(self.best.shares[members].sum())
        low, inside = 0.0, estimate
        root = self.best.value - self.best.bound
        trial = estimate / 2.0
        for _ in range(_TRIALS):
            if inside - low <= max(_NEAR * (estimate - low), _TINY):
                break
            fit = maximise(self.line, members, trial, self._is_close)
            low = max(low, self._crossing(fit.tangent, low, inside))
            excess = self.best.value - fit.value
            if abs(excess - limit) <= _ENOUGH * limit:
                break
            if excess <= limit:
                inside = min(inside, trial)
            # The square root of the excess is nearly linear.
            slope = math.sqrt(max(excess - root, 1e-9)) / (estimate - trial)
            trial = estimate - math.sqrt(max(limit - root, 0.0)) / slope
            trial = min(max(trial, low + 0.02 * (inside - low)), low + 0.98 * (inside - low))
        return low

    def _is_close(self, fit: Fit) -> bool:
        """Return whether a better fit would hardly change the distance from the best one."""
        return fit.gap <= _SLACK * (self.best.value - fit.bound)

    def _crossing(self, tangent: Tangent, low: float, high: float) -> float:
        """Return the share up to which a tangent excludes all shares from `low` on."""

        def outside(psi: float) -> bool:
            return self.best.value - tangent.at(psi) > self.share_limit

        # If only one end is excluded, there is one crossing.
        if not outside(low) or outside(high):
            return low
        for _ in range(_HALVINGS):
            middle = (low + high) / 2.0
            low, high = (middle, high) if outside(middle) else (low, middle)
        return low


def with_likelihood(
    estimate: Estimate,
    sums: Sums,
    line: Line,
    options: Options,
    sets: Sequence[Integers] | Integers,
    many: int,
) -> Estimate:
    """Return estimates of sets, with bounds by likelihood where `choose_likelihood` says so.

    `sets[i]` are the values of the i-th set, and `many` is the length of the list from which the
    sets are taken.
    """
    chosen = choose_likelihood(sums, estimate.n, estimate.form, options, many=many)
    if not chosen.any():
        return estimate
    profile = Profile.of(line, options.confidence)
    low, high, form = estimate.low.copy(), estimate.high.copy(), estimate.form.copy()
    for place in np.flatnonzero(chosen).tolist():
        inside = np.zeros(line.size, dtype=np.bool_)
        inside[sets[place]] = True
        low[place], high[place] = profile.share(inside)
        form[place] = options.method
    lowest = np.where(chosen, low, estimate.lowest)
    highest = np.where(chosen, high, estimate.highest)
    return replace(estimate, low=low, high=high, lowest=lowest, highest=highest, form=form)

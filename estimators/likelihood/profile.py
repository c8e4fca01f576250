"""Bounds by profile likelihood: all shares, or quantiles, that the reports do not contradict.

A share psi of a set is excluded if the largest likelihood with that share is far below the largest
of all. A position t is below the q-quantile if `F(t) >= q` is excluded, and above it if
`F(t - 1) <= q` is. Every exclusion is proved for the given counts (`solver.Tangent`), and what
cannot be proved stays inside, so that numerical errors only widen bounds.

`calibrated` uses thresholds from simulations, for which no proof is known. `proved` is universal
inference (Wasserman, Ramdas, Balakrishnan 2020) with two halves of the reports: it holds at every
n, and for all sets and quantiles together, since all are compared with the same shares. `curve` is
a smooth curve of high likelihood within these bounds, for display.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from typing import Final, Self

import numpy as np

from ldpstream.estimators.bounds.likelihood_rule import choose_likelihood, threshold
from ldpstream.estimators.bounds.options import Method, Options
from ldpstream.estimators.bounds.two_valued import quantile
from ldpstream.estimators.bounds.types import Estimate, Sums
from ldpstream.estimators.likelihood.line import Line
from ldpstream.estimators.likelihood.solver import Fit, Tangent, maximise
from ldpstream.mechanisms.base.arrays import Bools, Floats, Integers

_TRIALS: Final = 16
_NEAR: Final = 0.02
"""How far out an end may be, as a fraction of its distance from the estimate."""
_ENOUGH: Final = 0.1
"""Fraction of the limit; this close to it, tangents cross it where the likelihood does."""
_SLACK: Final = 0.03
"""Fraction of a difference of likelihoods to which a solution need not be exact."""
_TINY: Final = 1e-6
_HALVINGS: Final = 30
_STEPS: Final = 3_000
_SMOOTHINGS: Final = 40


@dataclass(frozen=True)
class _Part:
    """Reports on which likelihoods are compared, with their `best` shares.

    `reference` is the log-likelihood to which others are compared.
    """

    line: Line
    best: Fit
    reference: float


@dataclass(frozen=True)
class Profile:
    """Bounds by likelihood, for counts of at least one report.

    Likelihoods are compared part by part. A hypothesis is excluded if the mean over the parts of
    `exp(reference - largest)` is above `exp(limit)`, with `share_limit` for sets and
    `quantile_limit` for quantiles. `best` are the best shares of all reports, which are never
    excluded.
    """

    best: Fit
    parts: tuple[_Part, ...]
    share_limit: float
    quantile_limit: float

    @classmethod
    def of(cls, line: Line, method: Method, confidence: float) -> Self:
        """Return the bounds of `profile` or `profile-exact`."""
        make = cls.proved if method == "profile-exact" else cls.calibrated
        return make(line, confidence)

    @classmethod
    def calibrated(cls, line: Line, confidence: float) -> Self:
        """Return bounds with a confidence up to 0.99, which hold one at a time.

        Raises:
            ValueError: if no threshold was calibrated.
        """
        most = threshold(confidence)
        if most is None:
            raise ValueError(f"confidence: expected at most 0.99, got {confidence:g}")
        best = maximise(line)
        far = quantile(1.0 - confidence) ** 2
        return cls(best, (_Part(line, best, best.value),), most / 2.0, far / 2.0)

    @classmethod
    def proved(cls, line: Line, confidence: float) -> Self:
        """Return bounds with any confidence, which hold simultaneously."""
        both = halves(line)
        fits = [maximise(half) if half.n else None for half in both]
        guesses = [
            np.full(line.size, 1.0 / line.size)
            if fit is None
            else curve(half, 0.95, best=fit).shares
            for half, fit in zip(both, fits, strict=True)
        ]
        proofs = tuple(
            _Part(half, fit, half.value(half.mix(other)))
            for half, fit, other in zip(both, fits, reversed(guesses), strict=True)
            if fit is not None
        )
        # A half without reports carries no information: its ratio is 1.
        limit = -math.log(1.0 - confidence)
        if len(proofs) == 1:
            limit = math.log(2.0 * math.exp(limit) - 1.0)
        return cls(maximise(line), proofs, limit, limit)

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
        bounds = [fold.best.bound for fold in self.parts]
        for place, fold in enumerate(self.parts):
            share = float(fold.best.shares[members].sum())
            if (share >= q) if above else (share <= q):
                continue
            enough = partial(self._settled, bounds, place)
            bound = maximise(fold.line, members, q, enough).bound
            # The best shares are not exactly optimal; better ones may lie beyond q.
            bounds[place] = max(bound, fold.best.bound) if bound >= fold.best.value else bound
        return self._excess(bounds) > self.quantile_limit

    def _settled(self, bounds: Sequence[float], place: int, fit: Fit) -> bool:
        """Return whether a better fit of this part could not change the result."""
        least, most = ([*bounds] for _ in range(2))
        least[place], most[place] = fit.value, fit.bound
        if self._excess(most) > self.quantile_limit:
            return True
        return len(bounds) == 1 and self._excess(least) <= self.quantile_limit

    def _excess(self, values: Sequence[float]) -> float:
        """Return the logarithm of the mean of `exp(reference - value)` over the parts."""
        gaps = [fold.reference - value for fold, value in zip(self.parts, values, strict=True)]
        largest = max(gaps)
        return largest + math.log(sum(math.exp(gap - largest) for gap in gaps) / len(gaps))

    def _low(self, members: Bools) -> float:
        """Return a share below which all are excluded, by Newton's method from outside.

        The largest likelihood is concave in the share, and each solution's tangent bounds it at
        every share: what the tangents exclude is excluded.
        """
        limit = self.share_limit
        estimate = float(self.best.shares[members].sum())
        low, inside = 0.0, estimate
        root = self._excess([fold.best.bound for fold in self.parts])
        trial = estimate / 2.0
        for _ in range(_TRIALS):
            if inside - low <= max(_NEAR * (estimate - low), _TINY):
                break
            fits = [
                maximise(fold.line, members, trial, partial(_is_close, fold.reference))
                for fold in self.parts
            ]
            low = max(low, self._crossing([fit.tangent for fit in fits], low, inside))
            excess = self._excess([fit.value for fit in fits])
            if abs(excess - limit) <= _ENOUGH * limit:
                break
            if excess <= limit:
                inside = min(inside, trial)
            # The square root of the excess is nearly linear.
            slope = math.sqrt(max(excess - root, 1e-9)) / (estimate - trial)
            trial = estimate - math.sqrt(max(limit - root, 0.0)) / slope
            trial = min(max(trial, low + 0.02 * (inside - low)), low + 0.98 * (inside - low))
        return low

    def _crossing(self, tangents: Sequence[Tangent], low: float, high: float) -> float:
        """Return the share up to which these tangents exclude all shares from `low` on."""

        def outside(psi: float) -> bool:
            return self._excess([tangent.at(psi) for tangent in tangents]) > self.share_limit

        # The excess is convex: if only one end is excluded, there is one crossing.
        if not outside(low) or outside(high):
            return low
        for _ in range(_HALVINGS):
            middle = (low + high) / 2.0
            low, high = (middle, high) if outside(middle) else (low, middle)
        return low


def _is_close(reference: float, fit: Fit) -> bool:
    """Return whether a better fit would hardly change the distance from the reference."""
    return fit.gap <= _SLACK * (reference - fit.bound)


def halves(line: Line) -> tuple[Line, Line]:
    """Return the likelihoods of two random halves of the reports.

    The split is seeded by a hash of the counts, so that the same counts give the same halves.
    """
    counts = line.counts.astype("<i8")
    coins = np.random.default_rng(int.from_bytes(sha256(counts.tobytes()).digest()))
    first = coins.binomial(counts, 0.5).astype(np.float64)
    return replace(line, counts=first), replace(line, counts=line.counts - first)


@dataclass(frozen=True)
class Curve:
    """Shares, float64 `(k,)`, >= 0, that sum to 1; NaN without reports.

    `deviance` bounds twice the distance of their log-likelihood from the largest; NaN likewise.
    """

    shares: Floats
    deviance: float


def curve(line: Line, confidence: float, *, best: Fit | None = None) -> Curve:
    """Return shares of high likelihood: biased, but without the maximum's spikes.

    Expectation maximisation (Dempster, Laird, Rubin 1977) from uniform shares, stopped at the first
    shares that the reports do not contradict: `2 (L* - L(p)) <= z^2`. Each of their quantiles
    therefore lies within the profile's bounds of the same confidence, in (0, 1). `best` is the
    maximum, if it is known.
    """
    if line.n == 0.0:
        return Curve(np.full(line.size, np.nan), float("nan"))
    top = maximise(line) if best is None else best
    most = quantile(1.0 - confidence) ** 2
    # Shares of the outputs, so that a step multiplies by the gradient.
    shares = np.full(line.size, 1.0 / line.size)
    for _ in range(_STEPS):
        u = line.mix(shares)
        deviance = 2.0 * (top.bound - line.value(u))
        if deviance <= most:
            return Curve(shares, max(deviance, 0.0))
        shares = shares * (line.gradient(u) / line.n)
        shares /= shares.sum()
    return _between(line, shares, top, most)


def _between(line: Line, shares: Floats, top: Fit, most: float) -> Curve:
    """Return the first mixture of shares with the best ones that is close enough."""
    low, high = 0.0, 1.0
    for _ in range(_SMOOTHINGS):
        middle = (low + high) / 2.0
        mixed = (1.0 - middle) * shares + middle * top.shares
        near = 2.0 * (top.bound - line.value(line.mix(mixed))) <= most
        low, high = (low, middle) if near else (middle, high)
    mixed = (1.0 - high) * shares + high * top.shares
    return Curve(mixed, max(2.0 * (top.bound - line.value(line.mix(mixed))), 0.0))


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
    profile = Profile.of(line, options.method, options.confidence)
    low, high, form = estimate.low.copy(), estimate.high.copy(), estimate.form.copy()
    for place in np.flatnonzero(chosen).tolist():
        inside = np.zeros(line.size, dtype=np.bool_)
        inside[sets[place]] = True
        low[place], high[place] = profile.share(inside)
        form[place] = options.method
    lowest = np.where(chosen, low, estimate.lowest)
    highest = np.where(chosen, high, estimate.highest)
    return replace(estimate, low=low, high=high, lowest=lowest, highest=highest, form=form)

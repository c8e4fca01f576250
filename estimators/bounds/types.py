"""What bounds are computed from, sums over reports, and what they are part of, estimates.

Values with equal shares have equal estimates, which are computed once (`Distinct`).
"""

from dataclasses import dataclass, replace
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from ldpstream.estimators.bounds.options import Method
from ldpstream.mechanisms.base.arrays import Floats, Integers, map_arrays
from ldpstream.mechanisms.interface.decoder import Decoder

Pair = tuple[Floats, Floats]
Forms = NDArray[np.object_]
"""Names of forms (`options.Form`), one for each query."""
_FEWEST_VALUES: Final = 1 << 11
"""From this many values on, finding equal shares takes less time than bounding each of them."""


@dataclass(frozen=True)
class Noise:
    """What reports add at random to their users' weights, in sums of q queries' decoders `h`.

    The noise of one user is `v(x) = (Q h^2)[x] - w[x]^2`. Arrays are float64 `(q,)`.

    - `floor` and `ceiling` bound the noise `sum_i v(x_i)` over all data that agree with what the
      reports disclose: `sum_g N_g min_{x in g} v(x)`, and max.
    - `slope` is the largest difference in noise between two users of one group.
    - `reports` counts the reports of groups with noise.
    - `moment` is at least `sum_g N_g max_{x in g} (Q h^2)[x]`, and `peak` is the largest of these
      maxima.
    - `typical` is roughly the mean noise of one report of uniform data.
    - `deviation` is as in `Query`.
    - `heaviest` is the worst noise of any possible user if `ceiling` uses the respondents' public
      weights; None if it does not, and `ceiling / n` is the worst noise.
    """

    floor: Floats
    ceiling: Floats
    slope: Floats
    reports: Floats
    moment: Floats
    peak: Floats
    typical: Floats
    deviation: Floats
    heaviest: Floats | None = None

    @classmethod
    def in_groups(
        cls,
        reports: Integers,
        extremes: Pair,
        moments: Floats,
        *,
        typical: Floats,
        deviation: Floats,
    ) -> Self:
        """Return the noise of queries about one group each, with this many reports.

        `extremes` are the least and the largest noise of a user in the group, `moments` the largest
        `(Q h^2)[x]`.
        """
        quietest, noisiest = extremes
        return cls(
            floor=reports * quietest,
            ceiling=reports * noisiest,
            slope=noisiest - quietest,
            reports=np.where(noisiest > 0.0, reports, 0.0),
            moment=reports * moments,
            peak=moments,
            typical=typical,
            deviation=deviation,
        )


@dataclass(frozen=True)
class Limits:
    """What is known of q queries without reports, or from disclosed groups alone: float64 `(q,)`.

    `least` and `largest` are `min h` and `max h` over the outputs, `bottom` and `top` the least and
    largest weight, `fewest` and `most` the bounds on `sum_i w(x_i)` that disclosed groups give.
    """

    least: Floats
    largest: Floats
    bottom: Floats
    top: Floats
    fewest: Floats
    most: Floats


@dataclass(frozen=True)
class Coins:
    """The two coins of two-valued queries (`bounds.two_valued`), float64 `(q,)`.

    `tosses` is how often they are tossed, `own` and `other` are their probabilities; all are 0 for
    other queries.
    """

    tosses: Floats
    own: Floats
    other: Floats


@dataclass(frozen=True)
class Sums:
    """Sums over n reports of q queries' decoders `h`, arrays float64 of shape `(q,)`.

    - `total` is `sum_i h(y_i)`, `squares` is `sum_i h(y_i)^2`, and `offset` is an unbiased estimate
      of `sum_i w(x_i)^2` (for an indicator, `total` itself).
    - `typical_sampling` is the variance of w for one report of uniform data.
    - `coins` is None if no query is two-valued.
    - `disclosed` says whether the channel discloses groups, `indicators` whether all weights are 0
      or 1.
    - `reach` is `max w - min w` if the statistic does not determine `sum_i h(y_i)^2`, so that
      `squares` is an estimate; None if it does.
    """

    total: Floats
    squares: Floats
    offset: Floats
    noise: Noise
    limits: Limits
    typical_sampling: Floats
    disclosed: bool
    indicators: bool
    reach: Floats | None = None
    coins: Coins | None = None

    @property
    def spread(self) -> Floats:
        """The length of the interval of decoded reports, `max h - min h`."""
        return self.limits.largest - self.limits.least

    def sample_variance(self, n: int) -> Floats:
        """Return the sample variance of the decoded reports, float64 `(q,)`; NaN for n < 2."""
        if n < 2:
            return np.full_like(self.total, np.nan)
        centred = (self.squares - self.total * (self.total / n)) / (n - 1)
        return np.maximum(centred, 0.0)

    def thinned(self, factor: float) -> Self:
        """Return the sums of 1/factor of the reports, with the same means."""

        def divided(record: Any, *names: str) -> Any:
            return replace(record, **{name: getattr(record, name) / factor for name in names})

        sums: Self = divided(self, "total", "squares", "offset")
        return replace(
            sums,
            noise=divided(self.noise, "floor", "ceiling", "reports", "moment"),
            limits=divided(self.limits, "fewest", "most"),
            coins=None if self.coins is None else divided(self.coins, "tosses"),
        )


@dataclass(frozen=True)
class Estimate:
    """Estimates of q shares from n reports.

    `value`, `se`, `low`, `high` and `influence` are float64 of shape `(q,)`. NaN means undefined:
    everything at n = 0; at n = 1 the population's standard error, and `bernstein` bounds of counted
    symbols that are not known exactly. `influence` is the most that one forged report moves the
    value. `form` names the kind of bound of each query, text `(q,)`, empty at n = 0. `lowest` and
    `highest` are the bounds before they are cut to the range of shares.
    """

    value: Floats
    se: Floats
    low: Floats
    high: Floats
    influence: Floats
    lowest: Floats
    highest: Floats
    form: Forms
    n: int
    method: Method

    def take(self, queries: Integers | slice) -> Self:
        """Return the estimates of some queries, in that order."""
        # Some columns share one array; take from it once.
        columns: dict[int, NDArray[Any]] = {}

        def part(column: NDArray[Any]) -> NDArray[Any]:
            if id(column) not in columns:
                columns[id(column)] = taken(column, queries)
            return columns[id(column)]

        return map_arrays(part, self)


@dataclass(frozen=True)
class Distinct:
    """One value for each different share.

    `values` is int64 `(d,)`; `places`, int64 `(k,)`, is the entry with the share of each value.
    """

    values: Integers
    places: Integers

    @classmethod
    def of(cls, decoder: Decoder, totals: Floats) -> Self | None:
        """Return the distinct ones of the sums of all single values' decoders, float64 `(k,)`.

        None if estimates do not follow from shares alone (`Decoder.in_steps`), if there could be
        half as many different shares as values, or if values are so few that this saves no time.
        """
        if decoder.step is None or totals.size < _FEWEST_VALUES:
            return None
        every = np.arange(totals.size)
        alike, of_these = every, totals
        if decoder.in_steps is not None:
            alike, of_these = decoder.in_steps, totals[decoder.in_steps]
        steps = of_these - of_these.min()
        steps /= decoder.step
        most = float(steps.max()) + 1.0
        if not 2.0 * (most + totals.size - alike.size) < totals.size:
            return None
        step = np.rint(steps, out=steps).astype(np.int64)
        owner = np.full(round(most), -1, dtype=np.int64)
        owner[step] = alike
        some = owner >= 0
        values, places = owner[some], (np.cumsum(some) - 1).take(step)
        if alike.size == totals.size:
            return cls(values, places)
        others = np.setdiff1d(every, alike, assume_unique=True)
        every[alike] = places
        every[others] = values.size + np.arange(others.size)
        return cls(np.concatenate((values, others)), every)


def repeat_form(form: str, shape: tuple[int, ...]) -> Forms:
    """Return an array of this form alone; `np.full` would make a text for each entry."""
    forms = np.empty(shape, dtype=np.object_)
    forms.fill(form)
    return forms


def distinct_columns(rows: Floats) -> tuple[Integers, Integers]:
    """Return where each different column of `(m, q)` stands, and which of them each column equals.

    Values with equal sums have equal bounds, which are then computed once.
    """
    # Most rows are constant, and sorting takes longest.
    varied = (rows != rows[:, :1]).any(axis=1)
    varied[0] |= not varied.any()
    rows = rows[varied]
    places = np.argsort(rows[0]) if len(rows) == 1 else np.lexsort(rows)
    ascending = rows[:, places]
    starts = np.ones(places.size, dtype=np.bool_)
    starts[1:] = (ascending[:, 1:] != ascending[:, :-1]).any(axis=0)
    place = np.empty_like(places)
    place[places] = np.cumsum(starts) - 1
    return places[starts], place


def taken(array: NDArray[Any], places: Integers | slice) -> NDArray[Any]:
    """Return these entries; if all are equal and places are many, as a read-only broadcast view."""
    if isinstance(places, slice) or len(places) <= array.size or (array != array[0]).any():
        return array[places] if isinstance(places, slice) else array.take(places)
    return np.broadcast_to(array[0], len(places))

"""The rule that chooses the bounds of a query, by method, estimand and kind of report.

| method | query | bounds |
|---|---|---|
| any | no noise and no sampling error | `known`: low = high = the estimate |
| `padded` | two-valued, one group, population | `wilson`; `clopper-pearson` for few, and in lists |
| | two-valued, respondents | `score`; `enumerated` where the noise is below 3 reports |
| | a value of a disclosed block, population | `block`; `product` where the block has few reports |
| | any other, population | `padded` |
| | any other, respondents | `noise` |
| `exact` | two-valued, as above | `clopper-pearson`, `enumerated`, `product`: proved at every n |
| | any other | `bernstein`: proved at every n |
| `profile` | where `pays` says so | `profile`, by likelihood; elsewhere as `padded` |
| `profile-exact` | where `pays` says so | `profile-exact`; elsewhere as `exact` |
| others | any other | the method's own, by its name |

With fewer than 5 reports `padded` and `noise` become `range`: from the least weight to the largest,
which is known without reports. Likelihoods need more than sums: `pays` has their rule, and
`estimate` applies it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple, assert_never

import numpy as np
from numpy.typing import NDArray

from ldpstream.estimators.bounds.anytime import anytime_distances, sampling_ceiling
from ldpstream.estimators.bounds.intervals import (
    bernstein_half_width,
    bernstein_worst_half_width,
    joint_normal_half_width,
    noise_bounds,
    normal_half_width,
    padded_bounds,
    sample_variance,
    skewness_half_width,
)
from ldpstream.estimators.bounds.options import Form, Options
from ldpstream.estimators.bounds.two_valued import (
    FEW,
    FEW_IN_BLOCK,
    Pair,
    Tosses,
    clopper_pearson,
    enumerated,
    in_block,
    noise_deviation,
    product,
    quantile,
    score,
    wilson,
)
from ldpstream.estimators.bounds.types import Sums
from ldpstream.mechanisms.base.arrays import Bools, Floats

Forms = NDArray[np.object_]
"""Names of forms (`options.Form`), one for each query."""

_FEWEST: Final = 5
"""With fewer reports, many-valued queries have no bounds but their range."""
_SMOOTH: Final = 3.0
"""Standard deviation of the noise, in reports, from which on the score interval is close enough to
the exact one. In lists, which need tails further out, it is `z^2/4` times as much."""


@dataclass(frozen=True)
class Ends:
    """Bounds on q shares, float64 `(q,)` each, and their forms, text of shape `(q,)`.

    `lowest` and `highest` are the bounds before they are cut to the range of shares.
    """

    low: Floats
    high: Floats
    lowest: Floats
    highest: Floats
    form: Forms


def choose_bounds(sums: Sums, n: int, se: Floats, options: Options) -> Ends:
    """Return the bounds of queries over n >= 1 reports, by the rule above."""
    level = options.error_level(se.shape[-1])
    # Among respondents, a query whose worst noise is 0 is known exactly and needs no bound: a block
    # of one value, a whole block, a block that nobody reported.
    value = sums.total / n
    noiseless = np.broadcast_to(sums.ceiling <= 0.0, value.shape)
    known = noiseless & (options.estimand != "population")
    if options.method not in ("padded", "exact"):
        low, high = _by_name(sums, n, se, level, options)
        low, high = (np.where(known, value, end) for end in (low, high))
        form = np.where(known, "known", np.full(known.shape, options.method, dtype=np.object_))
        return Ends(low, high, low, high, form)
    known = known | (sums.spread <= 0.0) if options.estimand == "population" else known
    rule = _padded if options.method == "padded" else _proved
    chosen = rule(sums, n, level, options)
    lowest, highest = (np.where(known, value, end) for end in (chosen.low, chosen.high))
    if options.estimand == "population":
        bottom, top = sums.bottom, sums.top
    else:
        bottom, top = sums.fewest / n, sums.most / n
    low, high = (np.where(known, end, np.clip(end, bottom, top)) for end in (lowest, highest))
    return Ends(
        # Bounds that are not cut share one array.
        low=lowest if np.array_equal(low, lowest) else low,
        high=highest if np.array_equal(high, highest) else high,
        lowest=lowest,
        highest=highest,
        form=np.where(known, "known", chosen.form),
    )


def _by_name(sums: Sums, n: int, se: Floats, level: float, options: Options) -> Pair:
    """Return the bounds of the methods that have a single form."""
    value = sums.total / n
    match options.method:
        case "anytime" | "anytime-exact":
            below, above = anytime_distances(sums, n, level, options)
        case "bernstein":
            below = above = _bernstein(sums, n, level, options)
        case "normal":
            below = above = _normal(sums, n, se, level, options)
        case "padded" | "exact" | "profile" | "profile-exact":
            raise ValueError(f"{options.method} has a form for each query")
        case other:
            assert_never(other)
    return value - below, value + above


def _bernstein(sums: Sums, n: int, level: float, options: Options) -> Floats:
    if sums.reach is None:
        return bernstein_half_width(sample_variance(sums, n), sums.spread, n, level)
    # The empirical bound needs the decoded reports' variance itself, not an estimate of it.
    worst, off = sums.ceiling, sums.deviation
    if options.estimand == "population":
        worst, level = sampling_ceiling(sums, n, level)
        # Under the population the weight is random too, and with disclosed groups the group.
        off = sums.spread if sums.disclosed else np.maximum(off, sums.reach)
    return bernstein_worst_half_width(worst / n, off, n, level)


def _normal(sums: Sums, n: int, se: Floats, level: float, options: Options) -> Floats:
    if not (options.simultaneous and sums.indicators):
        return normal_half_width(se, level)
    skewed = skewness_half_width(sums.spread, n, level)
    # An error in w moves the noise by the slope, and also w^2 or w, which plug-ins subtract.
    slope = np.maximum(sums.slope, 1.0)
    if options.estimand == "population":
        slope = np.maximum(slope, 2.0 * np.abs(sums.total) / n)
        return joint_normal_half_width(se**2, slope, n, level) + skewed
    most = normal_half_width(np.sqrt(sums.ceiling) / n, level)
    return np.minimum(joint_normal_half_width(se**2, slope, n, level), most) + skewed


def _padded(sums: Sums, n: int, level: float, options: Options) -> "_Filled":
    """Return the bounds of `padded` before they are cut, and their forms."""
    tosses, two = _tosses(sums)
    many, z = ~two, quantile(level)
    if n < _FEWEST:
        rest = _Rule(many, "range", lambda _: (sums.bottom, sums.top))
    elif options.estimand == "population":
        rest = _Rule(many, "padded", lambda _: padded_bounds(sums, n, z))
    else:
        rest = _Rule(many, "noise", lambda _: noise_bounds(sums, n, z))
    if not two.any():
        return _fill(rest)
    if options.estimand == "respondents":
        # A group without reports has no noise: its share is known, and it has no score interval.
        some = two & (sums.ceiling > 0.0)
        smooth = some & (noise_deviation(tosses) >= _SMOOTH * max(1.0, z**2 / 4.0))
        ends = score(tosses, z)
        smooth &= np.isfinite(ends[0])
        part = tosses.reports / n
        return _fill(
            rest,
            _Rule(smooth, "score", lambda _: (ends[0] * part, ends[1] * part)),
            _Rule(some & ~smooth, "enumerated", lambda at: _enumerated(tosses, ends, at, n, level)),
        )
    blocks = two & _in_blocks(sums)
    alone = two & ~blocks
    few = np.minimum(tosses.decisive, tosses.reports - tosses.decisive) < FEW * z**2
    proved = few | options.simultaneous
    ends = in_block(tosses, n, z)
    scored = blocks & (tosses.reports >= FEW_IN_BLOCK * z**2) & np.isfinite(ends[0])
    return _fill(
        rest,
        _Rule(alone & ~proved, "wilson", lambda _: wilson(tosses, z)),
        _Rule(alone & proved, "clopper-pearson", lambda at: clopper_pearson(tosses.at(at), level)),
        _Rule(scored, "block", lambda _: ends),
        _Rule(blocks & ~scored, "product", lambda at: product(tosses.at(at), n, level)),
    )


def _proved(sums: Sums, n: int, level: float, options: Options) -> "_Filled":
    """Return the bounds of `exact` before they are cut, which are proved at every n."""
    tosses, two = _tosses(sums)
    value = sums.total / n

    def bernstein(_: Bools) -> Pair:
        half = np.broadcast_to(_bernstein(sums, n, level, options), value.shape)
        # A single report has no variance; the range of the weights still holds.
        unknown = np.isnan(half)
        low, high = np.where(unknown, sums.bottom, value - half), value + half
        return low, np.where(unknown, sums.top, high)

    rest = _Rule(~two, "bernstein", bernstein)
    if options.estimand == "respondents":
        some, ends = two & (sums.ceiling > 0.0), score(tosses, quantile(level))
        exact = _Rule(some, "enumerated", lambda at: _enumerated(tosses, ends, at, n, level))
        return _fill(rest, exact)
    blocks = two & _in_blocks(sums)
    return _fill(
        rest,
        _Rule(two & ~blocks, "clopper-pearson", lambda at: clopper_pearson(tosses.at(at), level)),
        _Rule(blocks, "product", lambda at: product(tosses.at(at), n, level)),
    )


def _in_blocks(sums: Sums) -> Bools:
    """Return which two-valued queries ask about noisy values of a disclosed block."""
    noisy_values = (sums.own < 1.0) | (sums.other > 0.0)
    return np.broadcast_to(noisy_values & sums.disclosed, sums.total.shape)


def _enumerated(tosses: Tosses, scores: Pair, places: Bools, n: int, level: float) -> Pair:
    tosses = tosses.at(places)
    low, high = enumerated(tosses, level)
    # An end at 0 or 1 was cut to the range; the score interval says how far beyond it would be.
    low = np.where(low <= 0.0, np.fmin(scores[0][places], 0.0), low)
    high = np.where(high >= 1.0, np.fmax(scores[1][places], 1.0), high)
    part = tosses.reports / n
    return low * part, high * part


def _tosses(sums: Sums) -> tuple[Tosses, Bools]:
    """Return queries as coin tosses, and which of them are two-valued and hence tosses."""
    shape = sums.total.shape
    two = np.broadcast_to(sums.own > sums.other, shape)
    own, other, reports = (
        np.broadcast_to(column, shape) for column in (sums.own, sums.other, sums.tossed)
    )
    own = np.where(two, own, 1.0)
    decisive = np.rint(sums.total * (own - other) + other * reports)
    # Queries that are no tosses get one report as a placeholder, which is not used.
    some = np.where(two, reports, 1.0)
    return Tosses(some, np.where(two, np.clip(decisive, 0.0, some), 0.0), own, other), two


class _Rule(NamedTuple):
    """A form at some places, with its ends for all queries `(q,)` or for these places `(m,)`."""

    places: Bools
    form: Form
    ends: Callable[[Bools], Pair]


class _Filled(NamedTuple):
    """Ends and forms of all queries."""

    low: Floats
    high: Floats
    form: Forms


def _fill(*rules: _Rule) -> _Filled:
    """Apply rules whose places are disjoint."""
    shape = rules[0].places.shape
    low, high = np.full(shape, np.nan), np.full(shape, np.nan)
    forms = np.full(shape, "", dtype=np.object_)
    for places, form, ends in rules:
        if not places.any():
            continue
        for out, end in zip((low, high), ends(places), strict=True):
            column = np.asarray(end)
            of_these = column.shape == (np.count_nonzero(places),) and column.shape != places.shape
            out[places] = column if of_these else np.broadcast_to(column, places.shape)[places]
        forms[places] = form
    return _Filled(low, high, forms)

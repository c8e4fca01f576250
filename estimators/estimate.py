"""Unbiased estimates of values and sets, with bounds (docs/theory.md section 0).

Estimates are not clipped to [0, 1]; projections are a separate step (`bounds.projection`,
`power_law`).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Unpack

import numpy as np

from ldpstream.estimators.bounds.bounded import Estimate, bound
from ldpstream.estimators.bounds.options import FALLBACK, OptionKeywords, Options
from ldpstream.estimators.bounds.pays import pays
from ldpstream.estimators.likelihood.line import Line
from ldpstream.estimators.likelihood.profile import Profile
from ldpstream.estimators.queries.counts import prepare_sets
from ldpstream.estimators.queries.queries import Distinct, PreparedSets
from ldpstream.estimators.queries.sums import (
    Sums,
    check_counts,
    query_sums,
    share_sums,
    value_sums,
)
from ldpstream.mechanisms.base.arrays import Floats, Integers
from ldpstream.mechanisms.interface.mechanism import Mechanism, Statistic


def estimate_values(
    mechanism: Mechanism,
    statistic: Statistic,
    n: int,
    *,
    values: Integers | None = None,
    decoded: Floats | None = None,
    **options: Unpack[OptionKeywords],
) -> Estimate:
    """Estimate the share of every value, q = k, or of values given by index, int64 `(q,)`.

    Estimates of some values equal, bit for bit, what `take` returns from those of all. Simultaneous
    bounds always hold over all values, since listed values may be post-selected. `decoded` are the
    `share_sums` of all values, if the caller has them.

    Raises:
        ValueError: if the statistic does not count n reports, or an option is invalid.
    """
    many = mechanism.size
    if options.get("simultaneous") and options.get("family") is None:
        options["family"] = many
    if values is None:
        decoded = share_sums(mechanism, statistic, n) if decoded is None else decoded
        if (distinct := Distinct.of(mechanism.decoder(), decoded)) is not None:
            found = estimate_values(
                mechanism, statistic, n, values=distinct.values, decoded=decoded, **options
            )
            del decoded
            return found.take(distinct.places)
    # For a single column numpy adds the rows in another order; estimate it twice instead.
    asked = np.repeat(values, 2) if values is not None and values.size == 1 else values
    sums = value_sums(mechanism, statistic, n, values=asked, decoded=decoded)
    chosen = Options(**options)
    found = bound(sums, n, chosen)
    if chosen.method in FALLBACK:
        line, listed = Line.of(mechanism, statistic), np.arange(many) if asked is None else asked
        found = _with_likelihood(found, sums, line, chosen, listed, many)
    return found if asked is values else found.take(slice(1))


def estimate_sets(
    mechanism: Mechanism,
    statistic: Statistic,
    n: int,
    sets: Sequence[Integers],
    **options: Unpack[OptionKeywords],
) -> Estimate:
    """Estimate the shares of sets of values, each an int64 array of value indices.

    In each group whose total the reports disclose (all values if they disclose nothing), the less
    noisy of two decoders is used: the sum of the set's values, or the total minus the others.
    Whole blocks are therefore exact among respondents, the whole domain is always 1, and a set that
    holds the smaller part of each group is estimated by the sum of its values' estimates.

    Raises:
        ValueError: if an index is outside the domain, the statistic does not count n reports, or an
            option is invalid.
    """
    check_counts(mechanism, statistic, n)
    prepared = prepare_sets(mechanism, sets)
    return estimate_prepared(mechanism, statistic, n, sets, prepared, **options)


def estimate_prepared(
    mechanism: Mechanism,
    statistic: Statistic,
    n: int,
    sets: Sequence[Integers],
    prepared: PreparedSets,
    **options: Unpack[OptionKeywords],
) -> Estimate:
    """Do the same as `estimate_sets`, given the `prepare_sets` of these sets.

    The statistic must count n reports, which is not checked.

    Raises:
        ValueError: if an option is invalid.
    """
    queries, of_sets = prepared
    sums = query_sums(queries, statistic, of_sets, indicators=True)
    chosen = Options(**options)
    found = bound(sums, n, chosen)
    if chosen.method in FALLBACK:
        line = Line.of(mechanism, statistic)
        found = _with_likelihood(found, sums, line, chosen, sets, len(sets))
    return found


def _with_likelihood(
    found: Estimate,
    sums: Sums,
    line: Line,
    options: Options,
    sets: Sequence[Integers] | Integers,
    many: int,
) -> Estimate:
    """Return estimates of sets, with bounds by likelihood for those that pay (`bounds.pays`).

    `sets[i]` are the values of the i-th set, and `many` is the length of the list from which the
    sets are taken.
    """
    chosen = pays(sums, found.n, found.form, options, many=many)
    if not chosen.any():
        return found
    profile = Profile.of(line, options.method, options.confidence)
    low, high, form = found.low.copy(), found.high.copy(), found.form.copy()
    for place in np.flatnonzero(chosen).tolist():
        inside = np.zeros(line.size, dtype=np.bool_)
        inside[sets[place]] = True
        low[place], high[place] = profile.share(inside)
        form[place] = options.method
    lowest = np.where(chosen, low, found.lowest)
    highest = np.where(chosen, high, found.highest)
    return replace(found, low=low, high=high, lowest=lowest, highest=highest, form=form)

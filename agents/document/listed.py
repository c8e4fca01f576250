"""The values that a document lists, and their estimates."""

from dataclasses import dataclass

import numpy as np

from ldpstream.agents.document.basis import Basis
from ldpstream.estimators.bounds.bounded import Estimate
from ldpstream.estimators.bounds.projection import project_blocks, project_simplex
from ldpstream.estimators.estimate import estimate_sets, estimate_values, project_power
from ldpstream.estimators.queries.queries import known_totals
from ldpstream.estimators.queries.sums import check_counts, share_sums
from ldpstream.mechanisms.base.arrays import Bools, Floats, Integers


@dataclass(frozen=True)
class Listed:
    """The listed values: indices `(q,)`, their estimates, all projected shares `(k,)` if asked.

    `estimate` is None if no value is listed.
    """

    indices: Integers
    estimate: Estimate | None
    projected: Floats | None
    simultaneous: bool


def list_values(basis: Basis) -> Listed:
    """Choose the listed values, largest shares first; the whole domain is in its own order.

    A list shorter than the domain is post-selected, so its bounds must hold for all values of the
    domain at once. It has none of the `hidden` values, whose shares count as equal.
    """
    mechanism, statistic, n = basis.mechanism, basis.statistic, basis.n
    options, size, hidden = basis.options, basis.domain.size, basis.hidden
    by_looking = options.top is not None and 0 < options.top < size
    simultaneous = options.simultaneous or by_looking
    keywords = basis.keywords | {"simultaneous": simultaneous}
    nothing = np.zeros(0, dtype=np.int64)
    if options.top == 0 and options.project == "none":
        check_counts(mechanism, statistic, n)
        return Listed(nothing, None, None, simultaneous)
    if basis.given is not None:
        # Devices report more than the value, so each value is a set of what they report.
        sets = [np.flatnonzero(basis.given == value) for value in range(size)]
        everything = estimate_sets(mechanism, statistic, n, sets, **keywords)
        projected = _project(basis, everything.value)
        indices = _choose(options.top, everything.value, projected, None)
        return Listed(indices, everything.take(indices), projected, simultaneous)
    # Decode only shares for all values: bounds take many times their memory, and are per value.
    decoded = share_sums(mechanism, statistic, n)
    shares = decoded / n if n else np.full_like(decoded, np.nan)
    if hidden is not None:
        shares[hidden] = basis.merged_reports / n / hidden.sum()
    projected = _project(basis, shares)
    indices = _choose(options.top, shares, projected, hidden)
    del shares
    if indices.size == 0:
        return Listed(nothing, None, projected, simultaneous)
    values = None if options.top is None else indices
    estimate = estimate_values(mechanism, statistic, n, values=values, decoded=decoded, **keywords)
    return Listed(indices, estimate, projected, simultaneous)


def _project(basis: Basis, shares: Floats) -> Floats | None:
    if basis.fitted is not None:
        return basis.fitted.shares
    if basis.options.project == "none":
        return None
    # What devices report in addition may be disclosed, but is not a block of values: the only known
    # total is that of all.
    if basis.options.project == "simplex" or basis.given is not None:
        return project_simplex(shares)
    if basis.options.project == "power":
        mechanism, statistic = basis.mechanism, basis.statistic
        return project_power(mechanism, statistic, basis.n, shares, **basis.keywords)
    return project_blocks(shares, *known_totals(basis.mechanism, basis.statistic, basis.n))


def _choose(
    top: int | None, shares: Floats, projected: Floats | None, hidden: Bools | None
) -> Integers:
    """Return the listed values: all in order, or the `top` largest that are not hidden."""
    if top is None:
        return np.arange(shares.size)
    # Projection makes ties, mostly at 0: there the unprojected shares decide.
    first = shares if projected is None else projected
    if hidden is None:
        return largest(first, shares, top)
    shown = np.flatnonzero(~hidden)
    return shown[largest(first[shown], shares[shown], top)]


def largest(first: Floats, then: Floats, number: int) -> Integers:
    """Return the indices of the largest, by `first`, `then`, and index, `(min(number, k),)`.

    Undefined ones come last. A list is much shorter than a large domain, in which many values may
    be equal, so only the list is sorted.
    """
    if number >= first.size:
        places = np.arange(first.size)
    else:
        places, alike = _split(first, number)
        if first is not then:
            more, others = _split(then[alike], number - places.size)
            places, alike = np.concatenate([places, alike[more]]), alike[others]
        places = np.sort(np.concatenate([places, alike[: number - places.size]]))
    return places[np.lexsort((-then[places], -first[places]))]


def _split(numbers: Floats, wanted: int) -> tuple[Integers, Integers]:
    """Return the indices above the `wanted`-th largest (fewer), and of those equal to it."""
    if wanted == 0:
        nowhere = np.zeros(0, dtype=np.int64)
        return nowhere, nowhere
    turned = -numbers
    turned.partition(wanted - 1)
    last = -turned[wanted - 1]
    del turned
    if np.isnan(last):
        return np.flatnonzero(~np.isnan(numbers)), np.flatnonzero(np.isnan(numbers))
    return np.flatnonzero(numbers > last), np.flatnonzero(numbers == last)

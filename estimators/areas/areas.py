"""The areas that could be shown, and the choice of those that differ from their surroundings.

All bounds hold simultaneously. Each of the L levels gets an L-th of the error, for every area of
the level that could have been shown, named or not. Roots that reports disclose are exact among
respondents, and take no part of the error.

At first every root is one area with an even share. Let the rest r of an area be the area without
the areas named in it. Every candidate v in r, again without what is named in it, is compared with
its even share of r, where s are numbers of values: `|w_v - w_r s_v/s_r|` in units of the sum of
their half-widths. The candidate with the largest score is named if the score is above 1, that is if
the two bounds exclude each other. This is repeated in r and in v. Half-widths add up, so that all
bounds follow from those of the levels and hold together with them, whatever is named.
"""

import heapq
from dataclasses import dataclass, replace
from typing import Final, Unpack

import numpy as np

from ldpstream.estimators.areas.sums import area_sums, tally_areas
from ldpstream.estimators.areas.tree import AreaTree
from ldpstream.estimators.bounds.bounded import bound
from ldpstream.estimators.bounds.e_values import use_e_values, with_e_values
from ldpstream.estimators.bounds.options import UNCUT, OptionKeywords, Options
from ldpstream.estimators.bounds.types import Estimate
from ldpstream.estimators.queries import SetDecoder, prepare_queries
from ldpstream.mechanisms.base.arrays import Bools, Floats, Integers, joined
from ldpstream.mechanisms.interface.mechanism import Mechanism, Statistic

MOST_NAMED: Final = 2_000
"""Most areas below the roots, as many as a picture can show; those that differ most come first."""
_ROUNDING: Final = 1e-12


@dataclass(frozen=True)
class NamedAreas:
    """The named areas: places in the tree, int64 `(a,)`, including every root, in tree order.

    `inside` is the entry of the area around each, -1 for roots. `estimate` is for whole areas.
    `rest`, `rest_low` and `rest_high`, float64 `(a,)`, are for the `rest_size` values that are in
    no area named inside. `family` is the number of areas that could have been shown, and `levels`
    is the number of parts of the error.
    """

    places: Integers
    inside: Integers
    estimate: Estimate
    rest: Floats
    rest_low: Floats
    rest_high: Floats
    rest_size: Integers
    family: int
    levels: int


def estimate_areas(
    mechanism: Mechanism,
    statistic: Statistic,
    n: int,
    tree: AreaTree,
    *,
    divided: Bools | None = None,
    **options: Unpack[OptionKeywords],
) -> NamedAreas:
    """Estimate areas at the resolution that n reports allow; all bounds hold simultaneously.

    `divided`, bool `(groups,)`, says inside which roots areas are searched for, by default all.
    """
    rests = _Rests(tree, bound_areas(mechanism, statistic, n, tree, **options))
    rests.name(divided)
    return rests.areas(error_levels(tree, Options(**options)))


def bound_areas(
    mechanism: Mechanism,
    statistic: Statistic,
    n: int,
    tree: AreaTree,
    **options: Unpack[OptionKeywords],
) -> Estimate:
    """Estimate all areas that could be shown, in tree order; all bounds hold simultaneously."""
    chosen = Options(**options)
    confidence = 1.0 - (1.0 - chosen.confidence) / error_levels(tree, chosen)
    queries, bounds = prepare_queries(mechanism), []
    for level in range(int(tree.level.max()) + 1):
        places = np.flatnonzero(tree.level == level)
        each = replace(chosen, confidence=confidence, simultaneous=True, family=places.size)
        sums = area_sums(mechanism, statistic, n, tree, places)
        estimate = bound(sums, n, each)
        many = np.flatnonzero(estimate.form == "bernstein")
        if isinstance(queries, SetDecoder) and use_e_values(chosen):
            tallies = tally_areas(queries, statistic, tree, places[many])
            estimate = with_e_values(estimate, sums, each, many.tolist(), tallies)
        bounds.append((places, estimate))
    back = np.argsort(np.concatenate([places for places, _ in bounds]))
    return joined([estimate for _, estimate in bounds]).take(back)


def error_levels(tree: AreaTree, options: Options) -> int:
    """Return into how many parts the error is split; roots that are exact have none."""
    exact = options.estimand == "respondents" or int((tree.level == 0).sum()) == 1
    return tree.levels + (not exact)


class _Rests:
    """The areas named so far, and the rest of every area: share, half-widths and size, `(m,)`.

    `owner` is the innermost named area around each area, -1 for roots.
    """

    def __init__(self, tree: AreaTree, estimate: Estimate) -> None:
        self._tree, self._estimate = tree, estimate
        self._share = estimate.value.copy()
        self._whole_below = estimate.value - estimate.lowest
        self._whole_above = estimate.highest - estimate.value
        self._below, self._above = self._whole_below.copy(), self._whole_above.copy()
        self._size = tree.end - tree.start
        self._named = tree.level == 0
        roots = np.flatnonzero(self._named)
        self._owner = np.repeat(roots, np.diff(roots, append=tree.start.size))
        self._owner[roots] = -1

    def name(self, divided: Bools | None) -> None:
        """Name areas, beginning with the one that differs most, until none differs."""
        heap: list[tuple[float, int, int]] = []
        for root in np.flatnonzero(self._named).tolist():
            if divided is None or divided[self._tree.group[root]]:
                self._look(root, heap)
        named = 0
        while heap and named < MOST_NAMED:
            _, area, inner = heapq.heappop(heap)
            self._name(area, inner)
            named += 1
            self._look(area, heap)
            self._look(inner, heap)

    def _look(self, area: int, heap: list[tuple[float, int, int]]) -> None:
        """Push the area that differs most from the rest of this one, if any differs."""
        inside = slice(area + 1, self._tree.last(area))
        rest = float(self._size[area])
        candidates = (self._owner[inside] == area) & ~self._named[inside]
        candidates &= (self._size[inside] > 0) & (self._size[inside] < rest)
        places = area + 1 + np.flatnonzero(candidates)
        if places.size == 0:
            return
        share = self._size[places] / rest
        gap = self._share[places] - share * self._share[area]
        more = gap > 0.0
        width = np.where(more, self._below[places], self._above[places])
        width += share * np.where(more, self._above[area], self._below[area])
        gap = np.where(np.abs(gap) > _ROUNDING, np.abs(gap), 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            score = np.nan_to_num(gap / width, nan=0.0, posinf=np.inf)
        best = int(score.argmax())
        if score[best] > 1.0:
            heapq.heappush(heap, (-float(score[best]), area, int(places[best])))

    def _name(self, area: int, inner: int) -> None:
        tree, inside = self._tree, slice(inner + 1, self._tree.last(inner))
        owner = self._owner[inside]
        owner[owner == area] = inner
        self._named[inner] = True
        # What is already named inside it was subtracted from all areas around it before.
        around = area + np.flatnonzero(tree.end[area:inner] >= tree.end[inner])
        self._share[around] -= self._share[inner]
        self._size[around] -= self._size[inner]
        above = self._whole_below[inner] - (self._above[inner] - self._whole_above[inner])
        below = self._whole_above[inner] - (self._below[inner] - self._whole_below[inner])
        self._below[around] += below
        self._above[around] += above

    def areas(self, levels: int) -> NamedAreas:
        """Return all named areas, and cut the bounds of rests as those of whole areas are."""
        places = np.flatnonzero(self._named)
        estimate = self._estimate.take(places)
        entry = np.full(self._tree.start.size, -1, dtype=np.int64)
        entry[places] = np.arange(places.size)
        owner = self._owner[places]
        share = self._share[places]
        low, high = share - self._below[places], share + self._above[places]
        if estimate.method != UNCUT:
            low, high = np.maximum(low, 0.0), np.minimum(high, estimate.high)
        return NamedAreas(
            places=places,
            inside=np.where(owner < 0, -1, entry[owner]),
            estimate=estimate,
            rest=share,
            rest_low=low,
            rest_high=high,
            rest_size=self._size[places],
            family=entry.size,
            levels=levels,
        )

"""Linear queries, quantiles and areas of a document: estimated only if they are asked for.

Areas are shares at the resolution that the reports support.
"""

import math
from functools import lru_cache
from typing import Final

import numpy as np

from ldpstream.agents.document.estimates import Basis, Entry, finite, numbers, prepared_prefixes
from ldpstream.estimators.areas.areas import NamedAreas, estimate_areas
from ldpstream.estimators.areas.tree import prepare_tree
from ldpstream.estimators.quantiles.prefixes import Prefixes
from ldpstream.estimators.quantiles.quantiles import estimate_quantiles, positions
from ldpstream.estimators.weights import estimate_linear
from ldpstream.mechanisms.base.arrays import Bools, Floats, Integers
from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.domains.base import Domain
from ldpstream.mechanisms.interface.mechanism import Mechanism

_RULE: Final = "bounds exclude the even share of what surrounds it"
_ENDS: Final = ("value", "low", "high")
_MEANS: Final = ("mean", "total", "se", "low", "high", "influence", "forged", "bound")


def linear_estimates(basis: Basis, projected: Floats | None) -> list[Entry]:
    """Return the means that were asked for, from the projected shares `(k,)` if there are any.

    What devices report in addition to the value does not change its weight. A query that gives
    `hidden` values different weights has no numbers.
    """
    queries, n = basis.options.linear, basis.n
    weights = np.stack([query.weights for query in queries])
    means = None if projected is None else weights @ projected
    own_weights = weights if basis.given is None else weights[:, basis.given]
    estimate = estimate_linear(basis.mechanism, basis.statistic, n, own_weights, **basis.keywords)
    shown = None if basis.hidden is None else whole_queries(basis.hidden, weights)
    rows = numbers(estimate, n, means, shown, names=_MEANS)
    return [{"name": query.name, **row} for query, row in zip(queries, rows, strict=True)]


def whole_queries(hidden: Bools, weights: Floats) -> Bools:
    """Return which linear queries `(q, k)` give all hidden values one weight."""
    inside = weights[:, hidden]
    whole: Bools = (inside == inside[:, :1]).all(axis=1)
    return whole


def axis_quantiles(basis: Basis) -> list[Entry]:
    """Return the quantiles that were asked for along each axis of several dimensions."""
    shape, shares = basis.domain.shape, basis.options.quantiles
    entries: list[Entry] = []
    for axis, extent in enumerate(shape):
        if extent < 2:
            continue
        # The values that differ from the first along this axis alone.
        step = math.prod(shape[axis + 1 :])
        labels = basis.domain.labels(np.arange(extent) * step)
        places = [label[axis] if isinstance(label, list) else label for label in labels]
        bounds: tuple[Floats, Floats, Floats] = (np.full(len(shares), np.nan),) * 3
        if basis.hidden is None:
            prefixes = _axis_prefixes(basis.mechanism, basis.own, axis)
            quantiles = estimate_quantiles(
                basis.mechanism,
                basis.statistic,
                basis.n,
                shares,
                prefixes=prefixes,
                **basis.keywords,
            )
            bounds = quantiles.value, quantiles.low, quantiles.high
        for p, *ends in zip(shares, *bounds, strict=True):
            named = [places[int(end)] if math.isfinite(end) else None for end in ends]
            entries.append({"axis": axis, "p": p, **dict(zip(_ENDS, named, strict=True))})
    return entries


@lru_cache(maxsize=16)
def _axis_prefixes(mechanism: Mechanism, domain: Domain, axis: int) -> Prefixes:
    shape, given = domain.estimated.shape, domain.estimated_indices
    values = np.arange(domain.estimated.size) if given is None else given
    return Prefixes.of(mechanism, np.unravel_index(values, shape)[axis])


def quantile_estimates(basis: Basis, projected: Floats | None) -> list[Entry]:
    """Return the quantiles that were asked for, from shares in order if these are asked for.

    Else they are those of the monotone cumulative curve.
    """
    shares, domain = basis.options.quantiles, basis.domain
    if basis.hidden is not None:
        return [{"p": p, "value": None, "low": None, "high": None} for p in shares]
    prefixes = prepared_prefixes(basis.mechanism, basis.own)
    quantiles = estimate_quantiles(
        basis.mechanism, basis.statistic, basis.n, shares, prefixes=prefixes, **basis.keywords
    )
    values = quantiles.value
    if basis.options.project == "ordered" and projected is not None:
        values = np.clip(positions(projected, shares), quantiles.low, quantiles.high)
    rows = zip(quantiles.p, values, quantiles.low, quantiles.high, strict=True)
    return [
        {
            "p": float(p),
            "value": label_at(domain, value),
            "low": label_at(domain, low),
            "high": label_at(domain, high),
        }
        for p, value, low, high in rows
    ]


def label_at(domain: Domain, position: float) -> Json:
    """Return the label at a position of one dimension; null where it is undefined."""
    return domain.label(int(position)) if math.isfinite(position) else None


def find_areas(basis: Basis) -> Entry:
    """Return the areas of a collection's values.

    Hidden blocks have no numbers, and no areas inside.
    """
    domain, hidden = basis.domain, basis.hidden
    tree = prepare_tree(basis.mechanism, domain.shape, ordered=domain.ordered)
    roots = np.flatnonzero(tree.level == 0)
    shown = np.ones(roots.size, dtype=np.bool_)
    if hidden is not None:
        shown[tree.group[roots]] = ~hidden[tree.order[tree.start[roots]]]
    named = estimate_areas(
        basis.mechanism,
        basis.statistic,
        basis.n,
        tree,
        divided=None if hidden is None else shown,
        **basis.keywords,
    )
    groups = tree.group[named.places]
    rows = numbers(named.estimate, basis.n, None, shown[groups])
    divided = np.bincount(named.inside[named.inside >= 0], minlength=groups.size) > 0
    blocks = (basis.mechanism.marginal or basis.mechanism).policy.disclosed_blocks
    names = [f"block {block}" for block in range(roots.size)] if roots.size > 1 else ["all values"]
    if blocks is not None and blocks.names is not None and blocks.count == roots.size > 1:
        names = list(blocks.names)
    areas = []
    for entry, (place, row) in enumerate(zip(named.places.tolist(), rows, strict=True)):
        values = tree.values(place)
        inside = int(named.inside[entry])
        root = inside < 0
        block = int(groups[entry])
        name = names[block] if root else _name(domain, values, names[block])
        areas.append(
            {
                "name": name,
                **row,
                "block": block if roots.size > 1 else None,
                "inside": None if root else inside,
                "box": _box(domain, values),
                "values": values.size,
                "rest": _remaining_area(named, entry) if divided[entry] else None,
            }
        )
    return {"rule": _RULE, "family": named.family, "levels": named.levels, "entries": areas}


def _box(domain: Domain, values: Integers) -> list[list[int]] | None:
    if not domain.ordered:
        return None
    places = np.stack(np.unravel_index(values, domain.shape))
    ends = np.stack([places.min(axis=1), places.max(axis=1)], axis=1)
    box: list[list[int]] = ends.tolist()
    return box


def _name(domain: Domain, values: Integers, block: str) -> str:
    """Return an area's name: for ordered values, the range that queries it.

    If only a part of the box belongs to the block, the name says so.
    """
    box = _box(domain, values)
    if box is None:
        return str(domain.label(int(values[0])))
    first, last = (
        domain.label(int(np.ravel_multi_index(tuple(end), domain.shape)))
        for end in zip(*box, strict=True)
    )
    flat = len(domain.shape) == 1
    lows, highs = ([first], [last]) if flat else (first, last)
    assert isinstance(lows, list), "a label has an entry for each dimension"
    assert isinstance(highs, list), "a label has an entry for each dimension"
    full = math.prod(last - first + 1 for first, last in box) == values.size
    return ("" if full else f"{block} in ") + ",".join(
        f"{_end(low, 0)}..{_end(high, -1)}" for low, high in zip(lows, highs, strict=True)
    )


def _end(label: object, end: int) -> str:
    """Return a coordinate, or the first or last edge of a bin, as a query writes it."""
    return str(label[end] if isinstance(label, list | tuple) else label)


def _remaining_area(found: NamedAreas, entry: int) -> Entry:
    columns = {"share": found.rest, "low": found.rest_low, "high": found.rest_high}
    numbers = {name: finite(float(column[entry])) for name, column in columns.items()}
    return {"values": int(found.rest_size[entry]), **numbers}

"""Areas in a document: shares at the resolution that the reports support."""

from math import prod
from typing import Final

import numpy as np

from ldpstream.agents.document.basis import Basis, numbers
from ldpstream.agents.document.entries import AreaEstimate, AreaRest, Areas, Number
from ldpstream.estimators.areas.areas import Areas as FoundAreas
from ldpstream.estimators.areas.areas import estimate_areas
from ldpstream.estimators.areas.tree import prepare_tree
from ldpstream.mechanisms.base.arrays import Integers
from ldpstream.mechanisms.domains.base import Domain

_RULE: Final = "bounds exclude the even share of what surrounds it"


def find_areas(basis: Basis) -> Areas:
    """Return the areas of a collection's values.

    Hidden blocks have no numbers, and no areas inside.
    """
    domain, hidden = basis.domain, basis.hidden
    tree = prepare_tree(basis.mechanism, domain.shape, ordered=domain.ordered)
    roots = np.flatnonzero(tree.level == 0)
    shown = np.ones(roots.size, dtype=np.bool_)
    if hidden is not None:
        shown[tree.group[roots]] = ~hidden[tree.order[tree.start[roots]]]
    found = estimate_areas(
        basis.mechanism,
        basis.statistic,
        basis.n,
        tree,
        divided=None if hidden is None else shown,
        **basis.keywords,
    )
    groups = tree.group[found.places]
    rows = numbers(found.estimate, basis.n, None, shown[groups])
    divided = np.bincount(found.inside[found.inside >= 0], minlength=groups.size) > 0
    areas = []
    for entry, (place, row) in enumerate(zip(found.places.tolist(), rows, strict=True)):
        values = tree.values(place)
        inside = int(found.inside[entry])
        root = inside < 0
        block = int(groups[entry])
        name = _root_name(block, roots.size) if root else _name(domain, values, block)
        areas.append(
            AreaEstimate(
                name=name,
                block=block if roots.size > 1 else None,
                inside=None if root else inside,
                box=_box(domain, values),
                values=values.size,
                **row,
                rest=_rest(found, entry) if divided[entry] else None,
            )
        )
    return Areas(rule=_RULE, family=found.family, levels=found.levels, entries=areas)


def _root_name(group: int, roots: int) -> str:
    return f"block {group}" if roots > 1 else "all values"


def _box(domain: Domain, values: Integers) -> list[list[int]] | None:
    if not domain.ordered:
        return None
    places = np.stack(np.unravel_index(values, domain.shape))
    ends = np.stack([places.min(axis=1), places.max(axis=1)], axis=1)
    box: list[list[int]] = ends.tolist()
    return box


def _name(domain: Domain, values: Integers, block: int) -> str:
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
    full = prod(last - first + 1 for first, last in box) == values.size
    return ("" if full else f"block {block} in ") + ",".join(
        f"{_end(low, 0)}..{_end(high, -1)}" for low, high in zip(lows, highs, strict=True)
    )


def _end(label: object, end: int) -> str:
    """Return a coordinate, or the first or last edge of a bin, as a query writes it."""
    return str(label[end] if isinstance(label, list | tuple) else label)


def _rest(found: FoundAreas, entry: int) -> AreaRest:
    columns = (found.rest, found.rest_low, found.rest_high)
    share, low, high = (_number(column[entry]) for column in columns)
    return AreaRest(values=int(found.rest_size[entry]), share=share, low=low, high=high)


def _number(value: float) -> Number:
    return float(value) if np.isfinite(value) else None

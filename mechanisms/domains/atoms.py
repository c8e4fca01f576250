"""Domains of atoms: sets of values that the published queries do not tell apart.

Where any two values have the same budget, reports on atoms answer these queries with the least
error that any reports on values could (docs/theory.md section 8), and nothing but them:

>>> from ldpstream.mechanisms.domains.lattice import Size
>>> hours = atoms_of(Size(24), [np.arange(8), np.arange(4, 16)], [])
>>> hours.labels(np.arange(4)), hours.index([5, 23]).tolist()
(['0..3', '4..7', '8..15', '16..23'], [1, 3])
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.arrays import Bools, Floats, Indices, Integers
from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.base.checks import describe, number_text
from ldpstream.mechanisms.base.errors import QueryError, SpecError, within
from ldpstream.mechanisms.domains.base import Domain
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.domains.queries import make_linear, make_range, make_set, range_values

_SHOWN: Final = 4
"""The most parts of an atom in its name, and of atoms in a refusal."""
_SETS_A_WORD: Final = 60
"""The number of sets that one int64 distinguishes, a bit for each."""


@dataclass(frozen=True)
class Atoms(Domain):
    """Sets of the values of a domain, numbered as they first occur; `parts` maps values to them."""

    ordered: ClassVar[bool] = False
    of: Domain
    parts: Blocks

    def __post_init__(self) -> None:
        if self.parts.count < 2:
            raise SpecError("workload", "published queries that tell at least two values apart")

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.parts.count,)

    @property
    def expected(self) -> str:
        return self.of.expected

    @property
    def written(self) -> Domain:
        return self.of

    def index(self, labels: Sequence[Any] | NDArray[Any]) -> Indices:
        return self.parts.of_value[self.of.index(labels)]

    def parse_columns(self, rows: Sequence[Sequence[str]]) -> Indices:
        return self.parts.of_value[self.of.parse_columns(rows)]

    def label(self, index: int) -> Json:
        """Return the name of an atom: the ranges or labels that it consists of."""
        order, ends = self._members
        return _name(self.of, order[ends[index] - self.parts.sizes[index] : ends[index]])

    @cached_property
    def _members(self) -> tuple[Indices, Indices]:
        """The values, atom after atom, ascending in each, and where each atom ends."""
        order = np.argsort(self.parts.of_value, kind="stable")
        return order, np.cumsum(self.parts.sizes)

    def canonical(self) -> Json:
        """Return the values' form, and the atom and length of each run of values."""
        runs: list[Json] = [[atom, length] for atom, length in self.parts.runs()]
        return {"atoms": runs, "of": self.of.canonical()}

    def merge(self, values: Integers) -> Integers:
        inside = np.zeros(self.parts.size, dtype=np.bool_)
        inside[values] = True
        counts = np.bincount(self.parts.of_value, inside)
        divided = np.flatnonzero((counts > 0) & (counts < self.parts.sizes))
        if divided.size:
            raise QueryError("range", f"{self.unions}, got a part of {self.label(int(divided[0]))}")
        return np.flatnonzero(counts)

    def merge_weights(self, weights: Floats) -> Floats:
        merged: Floats = weights[self._first]
        divided = np.flatnonzero(weights != merged[self.parts.of_value])
        if divided.size:
            name = self.label(int(self.parts.of_value[divided[0]]))
            raise QueryError("linear", f"{self.unions}, got different weights in {name}")
        return merged

    def merge_blocks(self, blocks: Blocks) -> Blocks:
        """Return the blocks of the atoms, none of which may be in two."""
        return Blocks(blocks.of_value[self._first], blocks.names)

    @property
    def _first(self) -> Indices:
        """The first value of each atom."""
        order, ends = self._members
        first: Indices = order[ends - self.parts.sizes]
        return first

    @property
    def unions(self) -> str:
        """Return which queries can be answered, in words."""
        names = [str(self.label(atom)) for atom in range(min(self.size, _SHOWN))]
        more = f" and {self.size - _SHOWN:,} more" if self.size > _SHOWN else ""
        return f'only unions of {"; ".join(names)}{more}, as workload = "published" merges values'


def _name(domain: Domain, members: Indices) -> str:
    """Return a set's name: its values as boxes, or as labels where there is no order."""
    names: list[str] = []
    uncovered = np.ones(members.size, dtype=np.bool_)
    while len(names) < _SHOWN and uncovered.any():
        names.append(_box_name(domain, _take_box(domain, members, uncovered)))
    if uncovered.any():
        names.append(f"{np.count_nonzero(uncovered):,} more")
    *all_but_last, end = names
    return f"{', '.join(all_but_last)} and {end}" if all_but_last else end


def _take_box(domain: Domain, members: Indices, uncovered: Bools) -> list[tuple[int, int]]:
    """Return a box of members that are `uncovered`, and mark them as taken.

    It grows from the first of them, along the last dimension first.
    """
    at, shape = int(uncovered.argmax()), domain.shape
    box = [(int(place), int(place)) for place in np.unravel_index(members[at], shape)]
    if not domain.ordered:
        uncovered[at] = False
        return box
    ahead = members[at : at + shape[-1] - box[-1][0]]
    joined = (ahead == members[at] + np.arange(ahead.size)) & uncovered[at : at + ahead.size]
    length = ahead.size if joined.all() else int(joined.argmin())
    box[-1] = (box[-1][0], box[-1][0] + length - 1)
    for axis in reversed(range(len(shape) - 1)):
        while (after := box[axis][1] + 1) < shape[axis]:
            beside = range_values(shape, [*box[:axis], (after, after), *box[axis + 1 :]])
            places = np.minimum(np.searchsorted(members, beside), members.size - 1)
            if not ((members[places] == beside) & uncovered[places]).all():
                break
            box[axis] = (box[axis][0], after)
    uncovered[np.searchsorted(members, range_values(shape, box))] = False
    return box


def _box_name(domain: Domain, box: Sequence[tuple[int, int]]) -> str:
    if domain.axes:
        edges = zip(domain.axes, box, strict=True)
        ends = [(axis.edge(first), axis.edge(last + 1)) for axis, (first, last) in edges]
        return ",".join(f"{number_text(low)}..{number_text(high)}" for low, high in ends)
    if all(first == last for first, last in box):
        return str(domain.label(int(range_values(domain.shape, box)[0])))
    return ",".join(f"{first}..{last}" for first, last in box)


def atoms_of(
    domain: Domain,
    sets: Sequence[Integers],
    weights: Sequence[Floats],
    blocks: Blocks | None = None,
) -> Atoms:
    """Return the atoms of sets of values and of functions of the value, inside blocks if any.

    Raises:
        SpecError: naming `workload`, if no two values differ.
    """
    atom = np.zeros(domain.size, dtype=np.int64) if blocks is None else blocks.of_value
    for start in range(0, len(sets), _SETS_A_WORD):
        bits = np.zeros(domain.size, dtype=np.int64)
        for place, values in enumerate(sets[start : start + _SETS_A_WORD]):
            bits[values] |= 1 << place
        atom = _refined(atom, bits)
    for row in weights:
        atom = _refined(atom, row)
    _, first, inverse = np.unique(atom, return_index=True, return_inverse=True)
    return Atoms(domain, Blocks(np.argsort(np.argsort(first))[inverse]))


def _refined(atom: Integers, values: NDArray[Any]) -> Integers:
    """Return a partition that also tells values with different entries apart."""
    distinct, inverse = np.unique(values, return_inverse=True)
    joint: Integers = np.unique(atom * len(distinct) + inverse, return_inverse=True)[1]
    return joint


def read_atoms(domain: Domain, blocks: Blocks | None, publish: object, path: str) -> Atoms:
    """Return the atoms of the queries of a `publish` table: its ranges, sets and linear queries.

    `path` is the key path of the table that holds it.

    Raises:
        SpecError: naming the query and what was expected, or that there is none.
    """
    tables = publish if isinstance(publish, dict) else {}
    ranges, sets, linear = (
        _read(make, tables.get(key, {}), domain, f"{path}.publish.{key}")
        for key, make in (("ranges", make_range), ("sets", make_set), ("linear", make_linear))
    )
    if not (ranges or sets or linear):
        what = '"published" with ranges, sets or linear queries in publish, got none'
        raise SpecError(f"{path}.workload", what)
    boxes = [query.values(domain.shape) for query in (*ranges, *sets)]
    with within(path):
        return atoms_of(domain, boxes, [query.weights for query in linear], blocks)


def _read(
    make: Callable[[str, Any, Domain], Any], raw: object, domain: Domain, path: str
) -> list[Any]:
    if not isinstance(raw, dict):
        raise SpecError(path, f"a table of queries by name, got {describe(raw)}")
    queries = []
    for name, written in raw.items():
        if not isinstance(written, list) and not (
            make is make_linear and isinstance(written, dict)
        ):
            raise SpecError(f"{path}.{name}", f"a list, got {describe(written)}")
        try:
            queries.append(make(name, written, domain))
        except QueryError as error:
            raise SpecError(f"{path}.{name}", error.expected) from None
    return queries

"""Policies given by a graph: edges have budgets, which add up along paths.

Budgets are shortest paths (Dijkstra); pairs without a path are counted by strong components.
"""

import heapq
import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache

from ldpstream.mechanisms.base.canonical import Json, canonical_json
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.domains.base import check_size
from ldpstream.mechanisms.exact.dyadic import budget
from ldpstream.mechanisms.policies.policy import ListedPolicy, Policy

Edge = tuple[int, int, Fraction]
_Successors = Sequence[Collection[int]]
_SOURCES_KEPT = 64
"""Shortest paths are cached for this many start values; for all they would take k^2 numbers."""


@dataclass(frozen=True)
class GraphPolicy(ListedPolicy):
    """`E[x, x']` is the length of the shortest path from x to x' along `edges`.

    An edge `(i, j, budget)` bounds `E[i, j]`, and `E[j, i]` too unless `directed`. Of two edges
    between the same values, the smaller budget holds. A pair without a path is unprotected: its
    entry is infinite. Budgets along a path add up ([ML] I-A), so that `pairs` yields only the edges
    and no `k x k` matrix is built. Practical for some thousands of values.

    Raises:
        SpecError: if there is no edge, or one leaves `0..values-1`, joins a value to itself or has
            a negative budget; the path is `edges[place]`.

    >>> line = GraphPolicy(3, ((0, 1, Fraction(1)), (1, 2, Fraction(2))))
    >>> line.entry(2, 0)
    Fraction(3, 1)
    """

    values: int
    edges: tuple[Edge, ...]
    directed: bool = False

    def __post_init__(self) -> None:
        check_size(self.values, "values")
        if not self.edges:
            raise SpecError("edges", "at least one edge")
        for place, (start, end, length) in enumerate(self.edges):
            if not (0 <= start < self.values and 0 <= end < self.values) or start == end:
                raise SpecError(
                    f"edges[{place}]",
                    f"two different values in 0..{self.values - 1}, got {start} and {end}",
                )
            if length < 0:
                raise SpecError(f"edges[{place}]", f"a budget of at least 0, got {float(length)}")

    @property
    def size(self) -> int:
        return self.values

    @cached_property
    def arcs(self) -> dict[tuple[int, int], Fraction]:
        """The budget of each ordered pair that an edge joins; pairs ascend."""
        arcs: dict[tuple[int, int], Fraction] = {}
        for start, end, length in self.edges:
            for pair in [(start, end)] if self.directed else [(start, end), (end, start)]:
                arcs[pair] = min(length, arcs.get(pair, length))
        return dict(sorted(arcs.items()))

    def entry(self, value: int, other: int) -> Fraction | None:
        length = self._lengths(value).get(other)
        return None if length is None else Fraction(length, self._unit)

    def pairs(self) -> Iterator[tuple[int, int]]:
        """Yield the edges, in both directions unless directed; all other budgets are sums."""
        return iter(self.arcs)

    def constraints(self) -> Iterator[tuple[int, int, Fraction]]:
        """Yield the edges with their budgets, even where another path is shorter."""
        return ((value, other, length) for (value, other), length in self.arcs.items())

    @cached_property
    def unprotected_pairs(self) -> int:
        return self.size**2 - _reachable_pairs(self._successors)

    @property
    def few_pairs(self) -> bool:
        return True

    def is_within(self, value: int, other: int, allowed: Fraction) -> bool:
        # If an edge is short enough, no shorter path has to be searched for.
        arc = self.arcs.get((value, other))
        return (arc is not None and arc <= allowed) or super().is_within(value, other, allowed)

    def least_budgets(self) -> Iterator[Fraction]:
        return iter(self.arcs.values())

    def largest_loss(self) -> Fraction:
        self._check_listed(" to add up budgets that are given one by one")
        lengths = (max(self._shortest(source).values()) for source in range(self.size))
        return Fraction(max(lengths), self._unit)

    @property
    def unprotected(self) -> str | None:
        return "values that no path of edges joins" if self.unprotected_pairs else None

    def _times(self, factor: float | Fraction) -> Policy:
        exact = factor if isinstance(factor, Fraction) else budget(factor)
        edges = tuple((start, end, length * exact) for start, end, length in self.edges)
        return replace(self, edges=edges)

    @property
    def content(self) -> bytes:
        """The size and the ordered pairs with their budgets as fractions, in canonical JSON."""
        return canonical_json([self.size, self._listed_arcs])

    @property
    def _listed_arcs(self) -> list[Json]:
        return [[x, other, str(length)] for (x, other), length in self.arcs.items()]

    def document(self) -> dict[str, Json]:
        return {"kind": "graph", "size": self.size, "edges": self._listed_arcs}

    def describe(self) -> dict[str, Json]:
        return {
            "kind": "metric",
            "metric": "graph",
            "size": self.size,
            "directed": self.directed,
            "edges": len(self.arcs) if self.directed else len(self.arcs) // 2,
            "smallest": float(min(self.arcs.values())),
            "largest": float(max(self.arcs.values())),
            "sha256": self.digest,
        }

    @cached_property
    def _unit(self) -> int:
        """The common denominator of all budgets, so that lengths of paths are integers."""
        return math.lcm(*(length.denominator for length in self.arcs.values()))

    @cached_property
    def _successors(self) -> list[dict[int, int]]:
        """The values that edges lead to from each value, with their lengths in `1 / _unit`."""
        successors: list[dict[int, int]] = [{} for _ in range(self.size)]
        for (x, other), length in self.arcs.items():
            successors[x][other] = int(length * self._unit)
        return successors

    @cached_property
    def _lengths(self) -> Callable[[int], dict[int, int]]:
        return lru_cache(maxsize=_SOURCES_KEPT)(self._shortest)

    def __getstate__(self) -> dict[str, object]:
        # A cache cannot be pickled, as is done for proofs and costly answers in another process.
        return {name: value for name, value in vars(self).items() if name != "_lengths"}

    def _shortest(self, source: int) -> dict[int, int]:
        """Return the length of the shortest path to every reachable value (Dijkstra)."""
        lengths: dict[int, int] = {}
        waiting = [(0, source)]
        while waiting:
            length, value = heapq.heappop(waiting)
            if value in lengths:
                continue
            lengths[value] = length
            for other, step in self._successors[value].items():
                if other not in lengths:
                    heapq.heappush(waiting, (length + step, other))
        return lengths


def _reachable_pairs(successors: _Successors) -> int:
    """Return the number of pairs `(x, x')` with a path from x to x', including x' = x.

    `successors[x]` are the ends of the edges from x. Values of one strong component reach the same
    values, so that one bit set for each component suffices, computed from the sinks up.
    """
    component, count = _components(successors)
    members = [0] * count
    after: list[set[int]] = [set() for _ in range(count)]
    for x, ends in enumerate(successors):
        members[component[x]] |= 1 << x
        after[component[x]].update(component[end] for end in ends)
    total = 0
    reach = [0] * count
    for c in range(count):
        # Edges between components lead to smaller numbers only.
        reach[c] = members[c]
        for later in after[c] - {c}:
            reach[c] |= reach[later]
        total += members[c].bit_count() * reach[c].bit_count()
    return total


def _components(successors: _Successors) -> tuple[list[int], int]:
    """Return the strong component of each value, sinks numbered first, and how many there are.

    Kosaraju's algorithm: components are the trees of a search against the edges that starts from
    the values in reverse order of their completion in a search along the edges.
    """
    size = len(successors)
    predecessors: list[list[int]] = [[] for _ in range(size)]
    for x, ends in enumerate(successors):
        for end in ends:
            predecessors[end].append(x)
    component = [-1] * size
    count = 0
    for root in reversed(_finished(successors)):
        if component[root] < 0:
            waiting = [root]
            component[root] = count
            while waiting:
                for before in predecessors[waiting.pop()]:
                    if component[before] < 0:
                        component[before] = count
                        waiting.append(before)
            count += 1
    # They were found from the sources on.
    return [count - 1 - c for c in component], count


def _finished(successors: _Successors) -> list[int]:
    """Return the values in the order in which a depth-first search completes them."""
    visited = [False] * len(successors)
    finished: list[int] = []
    for root in range(len(successors)):
        if visited[root]:
            continue
        visited[root] = True
        path = [(root, iter(successors[root]))]
        while path:
            x, ends = path[-1]
            for end in ends:
                if not visited[end]:
                    visited[end] = True
                    path.append((end, iter(successors[end])))
                    break
            else:
                path.pop()
                finished.append(x)
    return finished

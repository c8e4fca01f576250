"""The number of ordered pairs of a directed graph that a path joins."""

from collections.abc import Collection, Sequence

Successors = Sequence[Collection[int]]


def reachable_pairs(successors: Successors) -> int:
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


def _components(successors: Successors) -> tuple[list[int], int]:
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


def _finished(successors: Successors) -> list[int]:
    """Return the values in the order in which a depth-first search completes them."""
    seen = [False] * len(successors)
    order: list[int] = []
    for root in range(len(successors)):
        if seen[root]:
            continue
        seen[root] = True
        path = [(root, iter(successors[root]))]
        while path:
            x, ends = path[-1]
            for end in ends:
                if not seen[end]:
                    seen[end] = True
                    path.append((end, iter(successors[end])))
                    break
            else:
                path.pop()
                order.append(x)
    return order

"""Plain implementations of published mechanisms, to compare with; none is part of ldpstream.

Each draws the reports of users and returns what its paper estimates from them: shares of the
population, or of ranges. Reports of unary encoding and of local hashing support each value
independently, so that their counts are binomial.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ldpstream.estimators.projection import project_simplex

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Oracle = Callable[[Integers], Floats]
"""From the number of users with each value to estimates of their shares."""


def unary_encoding(epsilon: float, generator: np.random.Generator) -> Oracle:
    """Return optimised unary encoding (Wang et al. 2017): a half supports its value."""
    return _supports(0.5, 1.0 / (np.exp(epsilon) + 1.0), generator)


def local_hashing(epsilon: float, generator: np.random.Generator) -> Oracle:
    """Return optimised local hashing (Wang et al. 2017)."""
    cells = round(np.exp(epsilon)) + 1
    support = np.exp(epsilon) / (np.exp(epsilon) + cells - 1.0)
    return _supports(support, 1.0 / cells, generator)


def _supports(support: float, other: float, generator: np.random.Generator) -> Oracle:
    def estimate(counts: Integers) -> Floats:
        n = counts.sum()
        supporting = generator.binomial(counts, support) + generator.binomial(n - counts, other)
        return np.asarray((supporting / max(n, 1) - other) / (support - other))

    return estimate


def utility_optimised_subsets(
    epsilon: float, sensitive: int, chosen: int, generator: np.random.Generator
) -> Oracle:
    """Return uSS, whose reports hold `chosen` of the first `sensitive` values, or a plain value.

    With one value it is uRR (Murakami, Kawamoto 2019).
    """
    e, s, d = np.exp(epsilon), sensitive, chosen
    supporting, plain = d * e / (d * e + s - d), d * (e - 1.0) / (d * e + s - d)
    other = (supporting * (d - 1) + (1.0 - supporting) * d) / (s - 1)

    def estimate(counts: Integers) -> Floats:
        n, values = counts.sum(), np.repeat(np.arange(s), counts[:s])
        plain_counts = generator.binomial(counts[s:], plain)
        hidden = np.concatenate([values, np.full(n - plain_counts.sum() - values.size, -1)])
        # The d smallest of random keys; the user's own comes first or last.
        keys = generator.uniform(size=(hidden.size, s))
        rows = np.arange(values.size)
        keys[rows, values] = np.where(generator.uniform(size=rows.size) < supporting, -1.0, 2.0)
        supported = np.bincount(np.argpartition(keys, d - 1, axis=1)[:, :d].ravel(), minlength=s)
        among = (hidden.size - (1.0 - plain) * n) / plain
        blanket = (n - among) * (1.0 - plain) * d / s
        shares = (supported - among * other - blanket) / (supporting - other)
        return np.asarray(np.concatenate([shares, plain_counts / plain]) / n)

    return estimate


def hio(
    epsilon: float, counts: Integers, ranges: Integers, generator: np.random.Generator
) -> Floats:
    """Return what HIO (Wang et al. 2019) estimates for ranges `(q, 2)`, ends excluded.

    Users report a node of one of the levels, whose nodes have four children.
    """
    levels, hashed = round(np.log2(counts.size) / 2), local_hashing(epsilon, generator)
    estimates = np.zeros(len(ranges))
    covered = np.zeros((len(ranges), 2), dtype=np.int64)
    for number, level_counts in enumerate(_split(counts, levels, generator), 1):
        width = 4 ** (levels - number)
        prefixes = np.append(0.0, hashed(level_counts.reshape(-1, width).sum(axis=1)).cumsum())
        first, last = -(-ranges[:, 0] // width), ranges[:, 1] // width
        last = np.maximum(first, last)
        estimates += prefixes[last] - prefixes[first]
        estimates -= prefixes[covered[:, 1] * 4] - prefixes[covered[:, 0] * 4]
        covered = np.stack([first, last], axis=1)
    return estimates


def ahead(epsilon: float, counts: Integers, generator: np.random.Generator) -> Floats:
    """Return the shares that AHEAD (Du et al. 2021) estimates: halves of what seems frequent.

    Each level has its own users, who report the interval of their value by unary encoding. A level
    halves the intervals of the one before whose share exceeds the threshold; levels are made
    consistent by least squares, and shares are even inside intervals.
    """
    size, levels = counts.size, round(np.log2(counts.size))
    unary, e = unary_encoding(epsilon, generator), np.exp(epsilon)
    noise = 4.0 * e / ((e - 1.0) ** 2 * counts.sum() / levels)
    edges, shares = [np.array([0, size])], [np.ones(1)]
    for level_counts in _split(counts, levels, generator):
        starts, width = edges[-1][:-1], np.diff(edges[-1])
        halved = (shares[-1] > np.sqrt(3.0 * noise)) & (width > 1)
        edges.append(np.union1d(edges[-1], (starts + width // 2)[halved]))
        shares.append(project_simplex(unary(np.add.reduceat(level_counts, edges[-1][:-1]))))
    # Up: weigh a node with the sum of its children. Down: spread what is left over.
    best, variance = [shares[-1]], [np.full(shares[-1].size, noise)]
    for level in range(levels - 1, 0, -1):
        first = np.searchsorted(edges[level + 1], edges[level][:-1])
        below, other = np.add.reduceat(best[0], first), np.add.reduceat(variance[0], first)
        weight = other / (other + noise)
        best.insert(0, weight * shares[level] + (1.0 - weight) * below)
        variance.insert(0, weight * noise)
    consistent = np.ones(1)
    for level, (node, noisy) in enumerate(zip(best, variance, strict=True), 1):
        first = np.searchsorted(edges[level], edges[level - 1][:-1])
        missing = (consistent - np.add.reduceat(node, first)) / np.add.reduceat(noisy, first)
        children = np.diff(np.append(first, node.size))
        consistent = node + np.repeat(missing, children) * noisy
    width = np.diff(edges[-1])
    return np.repeat(consistent / width, width)


def _split(counts: Integers, parts: int, generator: np.random.Generator) -> list[Integers]:
    """Return the counts of equal random parts of the users."""
    values = generator.permutation(np.repeat(np.arange(counts.size), counts))
    return [np.bincount(part, minlength=counts.size) for part in np.array_split(values, parts)]


def square_wave(epsilon: float, counts: Integers, generator: np.random.Generator) -> Floats:
    """Return the shares that Square Wave with EMS estimates (Li et al. 2020)."""
    size, values = counts.size, np.repeat(np.arange(counts.size), counts)
    e = np.exp(epsilon)
    half = (epsilon * e - e + 1.0) / (2.0 * e * (e - 1.0 - epsilon))
    far = 1.0 / (2.0 * half * e + 1.0)
    place = (values + generator.uniform(size=values.size)) / size
    inside = generator.uniform(size=values.size) < 2.0 * half * e * far
    near = place + generator.uniform(-half, half, values.size)
    # A uniform place of the output interval without the window, by jumping over the window.
    other = generator.uniform(-half, 1.0 - half, values.size)
    other = np.where(other > place - half, other + 2.0 * half, other)
    edges = np.linspace(-half, 1.0 + half, size + 1)
    reports = np.histogram(np.where(inside, near, other), edges)[0]
    middle = ((np.arange(size) + 0.5) / size)[:, None]
    overlap = np.minimum(edges[1:], middle + half) - np.maximum(edges[:-1], middle - half)
    channel = far * (np.diff(edges) + (e - 1.0) * np.maximum(overlap, 0.0))
    shares, last = np.full(size, 1.0 / size), -np.inf
    for _ in range(10_000):
        mixture = shares @ channel
        likelihood = float(reports @ np.log(mixture))
        shares = shares * (channel @ (reports / mixture)) / values.size
        padded = np.pad(shares, 1, mode="edge")
        shares = (padded[:-2] + 2.0 * shares + padded[2:]) / 4.0
        shares /= shares.sum()
        if likelihood - last < 1e-3 * e:
            break
        last = likelihood
    return shares

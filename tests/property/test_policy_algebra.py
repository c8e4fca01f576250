"""Closure, composition and order of policies, against brute force, exactly."""

from fractions import Fraction
from itertools import pairwise, permutations, product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ldpstream.mechanisms.channels.channel import Channel
from ldpstream.mechanisms.channels.error_region import ErrorRegion, channel_boundary
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.exact.dyadic import exp_bounds
from ldpstream.mechanisms.policies.composition import closure
from ldpstream.mechanisms.policies.graph import GraphPolicy
from ldpstream.mechanisms.policies.implication import implies
from ldpstream.mechanisms.policies.matrix import MatrixPolicy
from ldpstream.mechanisms.policies.metric import MetricPolicy
from ldpstream.mechanisms.policies.policy import BlockPolicy, HighLowPolicy, Policy
from tests.exact.specs import entries_of
from tests.soak import chosen

Table = list[list[Fraction | None]]

budgets = st.one_of(
    st.none(), st.integers(0, 6).map(Fraction), st.fractions(0, 3, max_denominator=1 << 70)
)
sizes = st.integers(2, 5)


@st.composite
def matrices(draw: st.DrawFn, size: int | None = None) -> MatrixPolicy:
    k = size or draw(sizes)
    return MatrixPolicy(
        tuple(tuple(Fraction(0) if x == z else draw(budgets) for z in range(k)) for x in range(k))
    )


@st.composite
def channels(draw: st.DrawFn, size: int) -> Channel:
    outputs = draw(st.integers(1, 4))
    rows = []
    for _ in range(size):
        weights = draw(st.lists(st.integers(0, 9), min_size=outputs, max_size=outputs))
        assume(any(weights))
        total = sum(weights)
        rows.append({y: Fraction(w, total) for y, w in enumerate(weights) if w})
    return Channel(tuple(rows), outputs)


def at_most(first: Fraction | None, second: Fraction | None) -> bool:
    return second is None or (first is not None and first <= second)


def least_over_chains(policy: Policy) -> Table:
    """Return the least sum of entries over all chains between two values, each tried."""

    def length(chain: tuple[int, ...]) -> Fraction | None:
        steps = [policy.entry(x, z) for x, z in pairwise(chain)]
        return None if None in steps else sum((s for s in steps if s is not None), Fraction(0))

    k = policy.size
    table: Table = [[Fraction(0)] * k for _ in range(k)]
    for x, z in permutations(range(k), 2):
        between = [v for v in range(k) if v not in (x, z)]
        chains = [(x, *m, z) for r in range(k - 1) for m in permutations(between, r)]
        lengths = [found for chain in chains if (found := length(chain)) is not None]
        table[x][z] = min(lengths, default=None)
    return table


@given(matrices())
def test_the_closure_is_the_least_over_all_chains(policy: MatrixPolicy):
    closed = closure(policy)
    assert entries_of(closed) == least_over_chains(policy)
    assert closure(closed) == closed
    assert implies(policy, closed) is None


@given(matrices())
def test_a_graph_of_all_entries_is_the_closure(policy: MatrixPolicy):
    edges = tuple((x, z, e) for x, z in policy.pairs() if (e := policy.entry(x, z)) is not None)
    assume(edges)
    graph = GraphPolicy(policy.size, edges, directed=True)
    assert entries_of(graph) == entries_of(closure(policy)) == entries_of(closure(graph))
    assert graph.unprotected_pairs == closure(policy).unprotected_pairs


@st.composite
def kept(draw: st.DrawFn, channel: Channel) -> MatrixPolicy:
    """A policy with just enough, or a little more, or no protection for each pair of a channel."""
    k = channel.size
    table: Table = [[Fraction(0)] * k for _ in range(k)]
    for x, z in permutations(range(k), 2):
        row, other = channel.rows[x], channel.rows[z]
        ratio = None if set(row) - set(other) else max(p / other[y] for y, p in row.items())
        slack = draw(st.sampled_from([Fraction(0), Fraction(1, 7), None]))
        if ratio is not None and slack is not None:
            table[x][z] = least_budget(ratio) + slack
        else:
            table[x][z] = None
    return MatrixPolicy(tuple(tuple(row) for row in table))


def least_budget(ratio: Fraction) -> Fraction:
    """The least multiple of 1/64 whose exponential is at least a ratio of at most 81."""
    low, high = -1, 5 << 6
    while high - low > 1:
        middle = (low + high) // 2
        enough = middle >= 0 and exp_bounds(Fraction(middle, 1 << 6))[0] >= ratio
        low, high = (low, middle) if enough else (middle, high)
    return Fraction(high, 1 << 6)


@settings(deadline=None)
@given(st.data(), sizes)
def test_a_channel_that_keeps_a_policy_keeps_its_closure_and_what_it_implies(
    data: st.DataObject, size: int
):
    channel = data.draw(channels(size))
    policy = data.draw(kept(channel))
    assert channel.satisfies(policy) is None
    assert channel.satisfies(closure(policy)) is None
    weaker = data.draw(matrices(size))
    if implies(policy, weaker) is None:
        assert channel.satisfies(weaker) is None


@settings(deadline=None)
@given(st.data(), sizes)
def test_a_violation_is_the_worst_pair_and_output(data: st.DataObject, size: int):
    channel, policy = data.draw(channels(size)), data.draw(matrices(size))
    violation = channel.satisfies(policy)
    broken = {}
    for x, z in policy.pairs():
        entry = policy.entry(x, z)
        for y, p in channel.rows[x].items():
            q = channel.rows[z].get(y, Fraction(0))
            if entry is not None and p > exp_bounds(entry)[0] * q:
                log_excess = np.inf if not q else np.log(float(p / q)) - float(entry)
                broken[x, z, y] = log_excess
    if violation is None:
        assert not broken
    else:
        found = broken[violation.value, violation.other, violation.output]
        assert found == max(broken.values()) or abs(found - max(broken.values())) < 1e-12


@settings(deadline=None)
@given(st.data())
def test_the_test_region_decides_like_the_definition(data: st.DataObject):
    channel, policy = data.draw(channels(2)), data.draw(matrices(2))
    boundary = channel_boundary(channel, 0, 1)
    region = ErrorRegion.of(policy, 0, 1)
    assert (region.first_outside(boundary) is None) == (channel.satisfies(policy) is None)
    # Beyond its first vertex the boundary is the least P_MD of all tests with this P_FA.
    assert (boundary[0], boundary[-1]) == ((0, 1), (1, 0))
    for alarm, missed in boundary[1:]:
        assert missed == 1 - hits(channel, alarm)


def hits(channel: Channel, alarm: Fraction) -> Fraction:
    """The largest P(say 0 | 0) of all deterministic tests with this P(say 0 | 1)."""
    best = Fraction(-1)
    for zeros in product([False, True], repeat=channel.outputs):
        said = [sum((p for y, p in row.items() if zeros[y]), Fraction(0)) for row in channel.rows]
        if said[1] == alarm:
            best = max(best, said[0])
    return best


shapes = st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple)
epsilons = st.sampled_from([0.25, 0.5, 1.0, 2.0, 3.0])


@st.composite
def structured(draw: st.DrawFn, shape: tuple[int, ...]) -> Policy:
    size = int(np.prod(shape))
    epsilon = draw(epsilons)
    kind = draw(st.sampled_from(["block", "high-low", "metric", "scaled", "graph"]))
    if kind == "block":
        names = draw(st.lists(st.integers(0, 2), min_size=size, max_size=size))
        return BlockPolicy(epsilon, Blocks(np.unique(names, return_inverse=True)[1]))
    if kind == "high-low":
        sensitive = draw(st.frozensets(st.integers(0, size - 1), min_size=1))
        return HighLowPolicy(
            epsilon, size, draw(st.sampled_from([sensitive, frozenset(range(size))]))
        )
    if kind == "graph":
        ends = st.tuples(st.integers(0, size - 1), st.integers(0, size - 1))
        pairs = draw(st.lists(ends.filter(lambda e: e[0] != e[1]), min_size=1, max_size=8))
        return GraphPolicy(size, tuple((x, z, Fraction(epsilon)) for x, z in pairs))
    scale = None
    if kind == "scaled":
        scale = tuple(draw(st.sampled_from([0.5, 1.0, 2.0])) for _ in shape)
    return MetricPolicy(epsilon, shape, p=draw(st.sampled_from([1, 2, 3, np.inf])), scale=scale)


@pytest.mark.soak
@settings(deadline=None, max_examples=chosen(100, soak=5_000, check=20))
@given(st.data(), shapes.filter(lambda shape: 2 <= np.prod(shape) <= 24))
def test_a_few_pairs_decide_like_all_of_them(data: st.DataObject, shape: tuple[int, ...]):
    stronger, weaker = data.draw(structured(shape)), data.draw(structured(shape))
    worse = {
        (x, z)
        for x, z in permutations(range(stronger.size), 2)
        if not at_most(stronger.entry(x, z), weaker.entry(x, z))
    }
    found = implies(stronger, weaker)
    assert (found is None) == (not worse)
    assert found is None or found in worse

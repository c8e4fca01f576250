"""Composition in exact arithmetic: what several reports lose together, and what repeating costs."""

import math
from fractions import Fraction
from itertools import product

import pytest

from ldpstream.mechanisms import (
    BinaryPolicy,
    BlockPolicy,
    Blocks,
    Channel,
    GraphPolicy,
    HighLowPolicy,
    MatrixPolicy,
    Mechanism,
    MetricPolicy,
    Policy,
    compose,
)
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.policies.composition import PublicWeightPolicy, closure
from tests.conformance.instances import LIP
from tests.exact.wire.test_vectors import spec_of

THREE = {
    "classical": 'mechanism = "randomized-response"\nepsilon = 0.7\ndomain = { size = 3 }',
    "blocks": 'mechanism = "block-hadamard"\nepsilon = 1.1\ndomain = { size = 3, blocks = 2 }',
    "line": 'mechanism = "l1-geometric"\nepsilon = 0.4\ndomain = { size = 3 }',
    "sensitive": 'mechanism = "high-low"\nepsilon = 0.5\ndomain = { size = 3 }\nsensitive = [1]',
    "subsets": 'mechanism = "subset-selection"\nepsilon = 0.9\ndomain = { size = 3 }',
}
PAIRS = [(a, b) for a in THREE for b in THREE if a <= b]


def mechanism_of(name: str) -> Mechanism:
    return spec_of({"toml": f"[collection.x]\n{THREE[name]}\n"}).mechanism


def together(first: Channel, second: Channel, sequences: list[tuple[int, int]]) -> Channel:
    """Return the channel of two independent reports, one row for each pair of values."""
    rows = tuple(
        {
            y * second.outputs + z: p * q
            for y, p in first.rows[x].items()
            for z, q in second.rows[w].items()
        }
        for x, w in sequences
    )
    return Channel(rows, first.outputs * second.outputs)


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_two_reports_of_one_value_lose_the_sum(one: str, other: str):
    first, second = mechanism_of(one), mechanism_of(other)
    both = together(first.channel(), second.channel(), [(x, x) for x in range(3)])
    composed = compose(first.policy, second.policy)
    assert both.satisfies(composed) is None
    for x, z in product(range(3), repeat=2):
        # No less would do: the worst ratios of both are taken at one pair of outputs.
        ratios = [worst(channel, x, z) for channel in (first.channel(), second.channel())]
        expected = None if None in ratios else math.prod(r for r in ratios if r is not None)
        assert worst(both, x, z) == expected


def worst(channel: Channel, x: int, z: int) -> Fraction | None:
    rows = channel.rows[x], channel.rows[z]
    if any(p and not rows[1].get(y) for y, p in rows[0].items()):
        return None
    return max(p / rows[1][y] for y, p in rows[0].items() if p)


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_two_reports_of_different_values_lose_the_sum_over_their_pairs(one: str, other: str):
    first, second = mechanism_of(one), mechanism_of(other)
    sequences = list(product(range(3), repeat=2))
    both = together(first.channel(), second.channel(), sequences)
    entries = tuple(
        tuple(
            None
            if (a := first.policy.entry(x, u)) is None or (b := second.policy.entry(w, v)) is None
            else a + b
            for u, v in sequences
        )
        for x, w in sequences
    )
    assert both.satisfies(MatrixPolicy(entries)) is None


@pytest.mark.parametrize("name", sorted(THREE))
def test_a_repeated_report_loses_nothing_and_a_second_draw_does(name: str):
    mechanism = mechanism_of(name)
    channel, policy = mechanism.channel(), mechanism.policy
    repeated = Channel(
        tuple({y * channel.outputs + y: p for y, p in row.items()} for row in channel.rows),
        channel.outputs**2,
    )
    assert repeated.satisfies(policy) is None
    drawn_again = together(channel, channel, [(x, x) for x in range(3)])
    assert drawn_again.satisfies(policy) is not None
    assert drawn_again.satisfies(compose(policy, policy)) is None


POLICIES: list[tuple[Policy, Fraction]] = [
    (BlockPolicy(0.5, Blocks.one(4)), Fraction(1, 2)),
    (HighLowPolicy(0.25, 4, frozenset({0, 2})), Fraction(1, 4)),
    (HighLowPolicy(0.25, 4, frozenset({2})), Fraction(1, 4)),
    (BinaryPolicy(0.5, math.inf), Fraction(1, 2)),
    (BinaryPolicy(0.5, 2.0), Fraction(2)),
    (MetricPolicy(0.5, (2, 3)), Fraction(3, 2)),
    (GraphPolicy(3, ((0, 1, Fraction(1)), (1, 2, Fraction(1, 2)))), Fraction(3, 2)),
    (MatrixPolicy.of([[0, 5, 1], [1, 0, 1], [1, 1, 0]]), Fraction(2)),
    (PublicWeightPolicy(MetricPolicy(0.5, (3,)), 2), Fraction(1)),
]


@pytest.mark.parametrize(("policy", "loss"), POLICIES)
def test_the_largest_loss_is_that_of_the_worst_protected_pair(policy: Policy, loss: Fraction):
    assert policy.largest_loss() == loss


def test_the_largest_loss_of_a_large_domain_takes_no_list():
    assert MetricPolicy(0.5, (1000, 1000)).largest_loss() == 999
    blocks = Blocks([i // 7 for i in range(70_000)])
    assert BlockPolicy(1.0, blocks).largest_loss() == 1
    with pytest.raises(SpecError, match="1000 values"):
        GraphPolicy(1001, ((0, 1, Fraction(1)),)).largest_loss()


@pytest.mark.parametrize("name", LIP)
def test_the_largest_loss_of_priors_is_that_of_all_pairs(name: str):
    policy = LIP[name].policy
    assert policy.largest_loss() == max(budget for *_, budget in policy.constraints())


@pytest.mark.parametrize("directed", [False, True])
def test_the_largest_loss_of_a_graph_is_that_of_its_longest_path(directed: bool):
    edges = (
        (0, 1, Fraction(1, 3)),
        (1, 2, Fraction(1, 2)),
        (0, 2, Fraction(2)),
        (3, 4, Fraction(1)),
    )
    policy = GraphPolicy(5, edges, directed)
    entries = [entry for row in closure(policy).entries for entry in row if entry is not None]
    assert policy.largest_loss() == max(entries) == 1
    assert GraphPolicy(5, edges[:3], directed).largest_loss() == Fraction(5, 6)

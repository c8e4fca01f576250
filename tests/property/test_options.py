"""Queries as users write them: ranges, quantiles, lists, and what does not fit a domain."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldpstream.agents.config.query.capabilities import read_options
from ldpstream.agents.config.query.options import EstimateOptions
from ldpstream.agents.config.query.queries import parse_range
from ldpstream.mechanisms.base.errors import QueryError
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.domains.parse import Domain, Grid, Labels, Size, Sizes, parse_domain
from ldpstream.mechanisms.domains.queries import Range, make_range, range_values
from ldpstream.mechanisms.families.block.hadamard import BlockHadamard
from ldpstream.mechanisms.wire.spec import CollectionSpec


def spec_of(domain: Domain) -> CollectionSpec:
    blocks = Blocks(np.zeros(domain.size, dtype=np.int64))
    return CollectionSpec("c", "c", domain, BlockHadamard(1.0, blocks), 1_000)


def domain_of(**table: Any) -> Domain:
    return parse_domain(table, path="domain", base=Path())[0]


@pytest.mark.parametrize(
    ("domain", "text", "inside"),
    [
        (Size(10), "3..5", [3, 4, 5]),
        (Size(10), "7..7", [7]),
        (Grid(3, 4), "0..1,2..3", [(0, 2), (0, 3), (1, 2), (1, 3)]),
        (Sizes((2, 2, 2)), "0..1,1..1,0..0", [(0, 1, 0), (1, 1, 0)]),
        (domain_of(interval=[0.0, 1.0], bins=10), "0.1..0.3", [0.15, 0.25]),
        (domain_of(interval=[-1.0, 1.0], bins=4), "-0.5..1", [-0.3, 0.2, 0.7]),
        (domain_of(interval=[0, 100], bins=4), "0..25", [10.0]),
    ],
)
def test_a_range_holds_the_values_between_its_ends(domain: Domain, text: str, inside: list[Any]):
    found = parse_range(text, domain)
    assert found.name == text
    np.testing.assert_array_equal(range_values(domain.shape, found.bounds), domain.index(inside))


@settings(deadline=None)
@given(
    sizes=st.lists(st.integers(1, 6), min_size=1, max_size=3).filter(lambda s: np.prod(s) > 1),
    data=st.data(),
)
def test_configured_and_written_ranges_agree_with_the_domain(sizes: list[int], data: Any):
    domain = Sizes(tuple(sizes))
    ends = [sorted(data.draw(st.lists(st.integers(0, n - 1), min_size=2, max_size=2)))
            for n in sizes]  # fmt: skip
    written = parse_range(",".join(f"{low}..{high}" for low, high in ends), domain)
    assert make_range("r", ends, domain).bounds == written.bounds
    labels = [domain.label(i) for i in range(domain.size)]
    points = [label if isinstance(label, list) else [label] for label in labels]
    inside = [all(low <= c <= high for c, (low, high) in zip(p, ends, strict=True)) for p in points]
    np.testing.assert_array_equal(
        range_values(domain.shape, written.bounds), np.flatnonzero(inside)
    )


@pytest.mark.parametrize(
    ("domain", "asked", "message"),
    [
        (Labels(("a", "b")), {"range": ["0..1"]}, "range: expected a domain with an order"),
        (Size(10), {"range": ["3"]}, "range: expected LO..HI, one per dimension"),
        (Size(10), {"range": ["a..b"]}, "range: expected LO..HI with numbers, got 'a..b'"),
        (Size(10), {"range": ["3..10"]}, "range: expected whole numbers in 0..9, got 3..10"),
        (Size(10), {"range": ["5..2"]}, "range: expected low <= high, got 5..2"),
        (Size(10), {"range": ["1..2,3..4"]}, "range: expected [low, high], of numbers"),
        (Size(10), {"range": ["1..nan"]}, "range: expected LO..HI with numbers"),
        (Size(10), {"range": ["0.5..2"]}, "range: expected whole numbers in 0..9"),
        (Grid(3, 4), {"range": ["0..1"]}, "range: expected 2 pairs [low, high], of numbers"),
        (
            domain_of(interval=[0.0, 1.0], bins=4),
            {"range": ["0.3..1"]},
            "range: expected edges of bins, got 0.3; the nearest edge is 0.25",
        ),
        (
            domain_of(interval=[0.0, 1.0], bins=4),
            {"range": ["0.25..0.25"]},
            "range: expected at least one bin, got 0.25..0.25",
        ),
        (Size(10), {"quantile": ["2"]}, "quantile: expected a number above 0 and below 1, got 2"),
        (Size(10), {"quantile": ["x"]}, "quantile: expected a number above 0 and below 1, got x"),
        (Size(10), {"quantile": ["0.5", ".5"]}, "quantile: expected each number once"),
        (Size(10), {"confidence": ["1"]}, "confidence: expected a number above 0 and below 1"),
        (Size(10), {"confidence": ["nan"]}, "confidence: expected a number above 0 and below 1"),
        (Size(10), {"top": ["-1"]}, 'top: expected a whole number or "all", got -1'),
        (Size(10), {"top": ["some"]}, 'top: expected a whole number or "all", got some'),
        (Size(10), {"method": ["wilson"]}, "method: expected one of padded, exact, normal, "),
        (Size(10), {"estimand": ["x"]}, "estimand: expected one of respondents, population"),
        (
            Size(10),
            {"project": ["x"]},
            "project: expected one of none, ordered, simplex, blocks, got x",
        ),
    ],
)
def test_impossible_queries_are_refused_by_name(
    domain: Domain, asked: dict[str, Any], message: str
):
    with pytest.raises(QueryError) as caught:
        read_options(EstimateOptions(), spec_of(domain), asked)
    assert str(caught.value).startswith(message)


def test_given_options_replace_their_own_defaults_alone():
    spec = spec_of(Size(10))
    defaults = EstimateOptions(ranges=(Range("r", ((0, 1),)),), quantiles=(0.5,), top=3)
    assert read_options(defaults, spec, {}) == defaults
    asked = read_options(defaults, spec, {"top": ["all"], "range": ["2..3"], "confidence": ["0.9"]})
    assert asked.top is None
    assert asked.ranges == (Range("2..3", ((2, 3),)),)
    assert asked.confidence == 0.9
    assert (asked.quantiles, asked.method, asked.estimand) == ((0.5,), "padded", "respondents")
    assert read_options(defaults, spec, {"quantile": ["0.1"]}).quantiles == (0.1,)

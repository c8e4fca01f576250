"""Edges are the decimals of the configuration, and numbers the decimals that they were read as."""

import math
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldpstream.agents.config.query.queries import parse_range
from ldpstream.mechanisms import Domain, Interval, ValueOutsideDomainError
from ldpstream.mechanisms.base.errors import QueryError
from ldpstream.mechanisms.domains.axis import Axis, Numbers, shortest_doubles
from ldpstream.mechanisms.domains.fitting import nearest
from ldpstream.mechanisms.domains.parse import parse_domain
from tests.seeded import SeededEntropy

DECIMALS = [
    ((0.0, 1.0), 10),
    ((0.0, 5.0), 50),
    ((-0.3, 0.7), 10),
    ((0.1, 0.7), 6),
    ((-1000.0, 1000.0), 20_000),
    ((1e9, 1e9 + 1), 100),
    ((0.001, 0.007), 6),
    ((20.5, 42.0), 215),
    ((1e-9, 7e-9), 6),
    ((1700000000.1, 1700000000.8), 7),
]
"""Intervals whose edges are short decimals."""


def edges_of(bounds: tuple[float, float], bins: int) -> list[Decimal]:
    low, high = (Decimal(repr(end)) for end in bounds)
    return [low + (high - low) * place / bins for place in range(bins + 1)]


def forms(text: str) -> list[Any]:
    """The ways in which a program may give a decimal."""
    found: list[Any] = [float(text), Decimal(text), np.float64(text)]
    if "e" not in text.lower() and len(text.strip("-0.").replace(".", "")) <= 6:
        found.append(np.float32(text))
    return found


@pytest.mark.parametrize(("bounds", "bins"), DECIMALS)
def test_every_edge_begins_its_bin(bounds: tuple[float, float], bins: int):
    domain = Interval((bounds,), (bins,))
    edges = edges_of(bounds, bins)[:: max(1, bins // 300)]
    places = list(range(0, bins + 1, max(1, bins // 300)))
    expected = [min(place, bins - 1) for place in places]
    texts = [str(edge) for edge in edges]
    assert domain.parse_columns([[text] for text in texts]).tolist() == expected
    assert domain.index(np.array(edges, dtype=np.float64)).tolist() == expected
    for text, place in zip(texts, expected, strict=True):
        for one in forms(text):
            assert domain.index([one]).tolist() == [place], one
    assert [domain.label(place)[0] for place in places[:-1]] == [float(t) for t in texts[:-1]]


def test_large_integers_are_compared_with_all_their_digits():
    domain = Interval(((0.0, 1e18),), (10,))
    below, edge = 10**17 - 1, 10**17
    assert float(below) == float(edge)
    for given_ in ([below, edge], np.array([below, edge]), np.array([below, edge], np.uint64)):
        assert domain.index(given_).tolist() == [0, 1]
    assert domain.index([below, 0.5]).tolist() == [0, 0]
    assert domain.parse_columns([[str(below)], [str(edge)]]).tolist() == [0, 1]
    with pytest.raises(ValueOutsideDomainError):
        domain.index([10**18 + 1])
    with pytest.raises(ValueOutsideDomainError):
        domain.index(np.array([np.iinfo(np.int64).min]))


def test_a_plane_has_decimal_edges_in_each_dimension():
    domain = Interval(((0.0, 1.0), (-0.3, 0.7)), (10, 10))
    rows = [[i / 10, j / 10] for i in range(10) for j in range(-3, 7)]
    for given_ in (rows, np.array(rows), np.array(rows, dtype=np.float32), [*map(tuple, rows)]):
        assert domain.index(given_).tolist() == list(range(100))
    assert domain.parse_columns([[str(x), str(y)] for x, y in rows]).tolist() == list(range(100))


def test_rounding_goes_by_the_decimal_too():
    domain, _ = parse_domain(
        {"interval": [0.0, 1.0], "bins": 10, "rounding": "random"}, path="d", base=Path()
    )
    edges = [place / 10 for place in range(11)]
    for seed in range(20):
        placed = domain.place(edges * 20, entropy=SeededEntropy(seed))
        assert placed.tolist() == list(range(11)) * 20
    assert domain.index(edges).tolist() == list(range(11))
    # In the middle the upper edge is nearer, whatever the double says.
    assert domain.index([place / 10 + 0.05 for place in range(10)]).tolist() == list(range(1, 11))


def test_clamped_numbers_stay_in_the_domain():
    domain = Interval(((0.1, 0.7),), (6,))
    for given_, end in (("-5", 0.1), ("0.8", 0.7), (Decimal("0.8"), 0.7), (np.float32(0.05), 0.1)):
        moved = nearest(domain, [given_])
        assert moved == [end]
        assert domain.index(moved).tolist() == [0 if end == 0.1 else 5]


@pytest.mark.parametrize("copies", [1, 50])
@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16])
def test_bins_are_the_same_however_numpy_prints(kind: type[np.floating[Any]], copies: int):
    points = np.linspace(0.1, 0.7, 61).astype(kind)
    points = np.repeat(np.nextafter(points, kind(0.4)), copies)
    domain = Interval(((0.1, 0.7),), (60,))
    for labels in (points, [*points], [np.float64(0.25), *points]):
        expected = domain.index(labels)
        nearest_edges = domain.axes[0].nearest(Numbers.of_labels(labels))
        with np.printoptions(legacy="1.13", precision=2):
            assert np.array_equal(domain.index(labels), expected)
            again = domain.axes[0].nearest(Numbers.of_labels(labels))
        assert np.array_equal(again, nearest_edges)


def bins_of(exact: list[Fraction], low: float, high: float, bins: int) -> list[int]:
    """The definition: bins of decimals, the last of which is closed."""
    start, end = Fraction(repr(low)), Fraction(repr(high))
    width = (end - start) / bins
    return [min(math.floor((one - start) / width), bins - 1) for one in exact]


AXES = [
    *DECIMALS,
    ((0.0, 1.0), 3),
    ((-7.0, 1e6), 999),
    ((0.1, 0.1 + 1e-12), 9_000),
    ((1e15, 1e15 + 2), 7),
    ((0.0, 1e-40), 10),
    ((-1.6e308, 1e307), 64),
]


def near_edges(axis: Axis, rng: np.random.Generator, kind: type[np.floating[Any]]) -> Any:
    """Floats of a precision at edges, beside them and anywhere in an interval."""
    places = rng.integers(0, axis.steps + 1, 40)
    with np.errstate(over="ignore"):
        edges = np.array([axis.edge(place) for place in places.tolist()]).astype(kind)
        some = (axis.low + rng.random(200) * (axis.high - axis.low)).astype(kind)
        top = kind(np.inf)
        down, up = (np.nextafter(edges, end) for end in (-top, top))
        beside = down, up, np.nextafter(down, -top), np.nextafter(up, top)
    points = np.concatenate([edges, *beside, some])
    points = points[np.isfinite(points)]
    # What is outside is refused, by the same definition.
    exact = [Fraction(str(point)) for point in points]
    inside = [Fraction(repr(axis.low)) <= one <= Fraction(repr(axis.high)) for one in exact]
    assert axis.holds(Numbers(points)).tolist() == inside
    return points[inside]


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize(("bounds", "bins"), AXES)
def test_floats_are_in_the_bins_of_their_decimals(
    bounds: tuple[float, float], bins: int, kind: type[np.floating[Any]]
):
    rng = np.random.default_rng(bins)
    domain = Interval((bounds,), (bins,))
    if kind is np.float16:
        whole = np.arange(0, 1 << 16, 29, dtype=np.uint16).view(kind)
        points = whole[np.isfinite(whole)]
        points = points[domain.axes[0].holds(Numbers.of_labels(points))]
    else:
        points = near_edges(domain.axes[0], rng, kind)
    exact = [Fraction(str(point)) for point in points]
    expected = bins_of(exact, *bounds, bins)
    assert domain.index(points).tolist() == expected
    assert domain.index(np.repeat(points, 50)).tolist() == np.repeat(expected, 50).tolist()
    # Few at a time, and one by one.
    for size in (1, 3, 20):
        few = [domain.index(points[at : at + size]) for at in range(0, min(len(points), 60), size)]
        assert [*np.concatenate([*few, np.zeros(0)]).tolist()] == expected[: sum(map(len, few))]
    if kind is not np.float16:
        halves = bins_of(exact, *bounds, 2 * bins)
        last = Fraction(repr(bounds[1]))
        assert domain.axes[0].nearest(Numbers(points)).tolist() == [
            bins if one == last else (half + 1) // 2
            for one, half in zip(exact, halves, strict=True)
        ]


@pytest.mark.parametrize(("bounds", "bins"), AXES)
def test_numbers_in_the_middle_between_edges_are_nearest_to_the_upper_one(
    bounds: tuple[float, float], bins: int
):
    axis, halves = Axis(*bounds, bins), Axis(*bounds, 2 * bins)
    doubles = near_edges(halves, np.random.default_rng(bins), np.float64).tolist()
    # Also more digits than a double has, among doubles and in more than one portion.
    below = [
        Decimal(repr(one)) - Decimal(repr(axis.high - axis.low)) * Decimal("1e-21")
        for one in doubles[:40]
    ]
    numbers = Numbers.of_labels([*doubles, *below])
    inside = axis.holds(numbers)
    points = [one for one, is_in in zip([*doubles, *below], inside, strict=True) if is_in]
    exact = [Fraction(repr(one) if isinstance(one, float) else one) for one in points]
    start, end = Fraction(repr(bounds[0])), Fraction(repr(bounds[1]))
    width = (end - start) / bins
    expected = [math.floor((one - start) / width + Fraction(1, 2)) for one in exact]
    assert axis.nearest(Numbers.of_labels(points)).tolist() == expected
    many = np.resize(points[: len(doubles)], 40_000)
    assert (
        axis.nearest(Numbers.of_labels(many)).tolist()
        == np.resize(expected[: len(doubles)], 40_000).tolist()
    )


@given(
    st.sampled_from([np.float64, np.float32]),
    st.floats(-1e6, 1e6),
    st.floats(1e-3, 1e6),
    st.integers(2, 5000),
    st.integers(0, 2**32 - 1),
)
def test_any_interval_has_the_bins_of_decimals(
    kind: type[np.floating[Any]], low: float, length: float, bins: int, seed: int
):
    domain = Interval(((low, low + length),), (bins,))
    points = near_edges(domain.axes[0], np.random.default_rng(seed), kind)
    expected = bins_of([Fraction(str(point)) for point in points], low, low + length, bins)
    assert domain.index(points).tolist() == expected


@pytest.mark.parametrize(("bounds", "bins"), AXES)
def test_texts_of_any_length_are_in_the_bins_of_their_decimals(
    bounds: tuple[float, float], bins: int
):
    rng = np.random.default_rng(bins)
    domain, axis = Interval((bounds,), (bins,)), Interval((bounds,), (bins,)).axes[0]
    texts = []
    for place in [0, bins, *rng.integers(0, bins + 1, 40).tolist()]:
        edge = axis.start + place * axis.width
        for more in (Fraction(0), Fraction(1, 10**25), Fraction(-1, 10**25)):
            exact = edge + more * axis.width
            # 400 digits after the point, so that the text is on the right side of the edge.
            scaled = exact.numerator * 10**400 // exact.denominator
            sign, digits = "-" * (scaled < 0), str(abs(scaled)).rjust(401, "0")
            texts.append(f"{sign}{digits[:-400]}.{digits[-400:]}")
    texts += [repr(axis.low + share * (axis.high - axis.low)) for share in rng.random(40).tolist()]
    exact = [Fraction(Decimal(text)) for text in texts]
    low, high = Fraction(repr(bounds[0])), Fraction(repr(bounds[1]))
    # A text that is rounded to 0 stands for 0.
    exact = [one if float(one) else Fraction(0) for one in exact]
    inside = [low <= one <= high for one in exact]
    numbers = Numbers.of_texts(texts)
    assert axis.holds(numbers).tolist() == inside
    kept = [text for text, is_in in zip(texts, inside, strict=True) if is_in]
    expected = bins_of([one for one in exact if low <= one <= high], *bounds, bins)
    assert domain.parse_columns([[text] for text in kept]).tolist() == expected
    assert domain.index([Decimal(text) for text in kept]).tolist() == expected
    one_by_one = [int(domain.parse_columns([[text]])[0]) for text in kept]
    assert one_by_one == expected


def test_only_numbers_beside_edges_are_read_as_decimals(monkeypatch: pytest.MonkeyPatch):
    """Float32 and long texts that lie clearly in a bin need no second reading."""
    domain = Interval(((0.0, 1.0),), (1_000,))
    singles = np.random.default_rng(3).random(5_000).astype(np.float32)
    expected = bins_of([Fraction(str(one)) for one in singles], 0.0, 1.0, 1_000)
    domain.index(singles)
    read: list[int] = []

    def count(numbers: np.ndarray) -> np.ndarray:
        read.append(len(numbers))
        return shortest_doubles(numbers)

    monkeypatch.setattr("ldpstream.mechanisms.domains.axis.shortest_doubles", count)
    assert domain.index(singles).tolist() == expected
    assert sum(read) < 20
    monkeypatch.undo()
    monkeypatch.setattr(Numbers, "at", None)
    doubles = np.random.default_rng(3).random(500)
    texts = [[repr(one)] for one in doubles.tolist()]
    assert domain.parse_columns(texts).tolist() == domain.index(doubles).tolist()


@pytest.mark.parametrize(
    "domain", [Interval(((0.0, 1.0),), (100_000,)), Interval(((0.0, 5.0),), (50,))]
)
def test_arrays_take_no_step_for_each_number(domain: Domain, monkeypatch: pytest.MonkeyPatch):
    """Numbers are compared with edges, which are listed at once where they are decimals."""
    monkeypatch.setattr(Axis, "position", None)
    monkeypatch.setattr(Axis, "edge", None)
    points = np.random.default_rng(1).random(domain.size)
    assert len(domain.index(points)) == len(domain.labels(np.arange(domain.size))) == domain.size
    # Also if there are fewer numbers than edges.
    few = np.resize(points, max(11, domain.size // 8)).round(2)
    assert len(domain.index(few)) == len(domain.index([1, *few.tolist()])) - 1 == len(few)


def test_ranges_lie_between_decimal_edges():
    tenths = Interval(((0.0, 1.0),), (10,))
    assert parse_range("0.3..0.7", tenths).bounds == ((3, 6),)
    assert parse_range("0.33333333333..0.6666666666", Interval(((0.0, 1.0),), (3,))).bounds == (
        (1, 1),
    )
    hours = Interval(((1_700_000_000.0, 1_700_086_400.0),), (24,))
    with pytest.raises(QueryError) as caught:
        parse_range("1700000000.5..1700003600", hours)
    expected = "edges of bins, got 1700000000.5; the nearest edge is 1700000000"
    assert expected in str(caught.value)

"""Domains: labels and indices are inverse; values outside are refused and not repeated."""

import math
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldpstream.mechanisms import (
    Domain,
    Grid,
    Interval,
    Labels,
    Size,
    Sizes,
    SpecError,
    ValueOutsideDomainError,
)
from ldpstream.mechanisms.domains import parse

extents = st.integers(2, 9)
texts = st.text(min_size=1, max_size=6)
lattices = st.one_of(
    st.builds(Size, extents),
    st.builds(Grid, extents, extents),
    st.builds(lambda s: Sizes(tuple(s)), st.lists(extents, min_size=1, max_size=3)),
)
named = st.lists(texts, min_size=2, max_size=8, unique=True).map(lambda v: Labels(tuple(v)))


@given(st.one_of(lattices, named), st.data())
def test_labels_and_indices_are_inverse(domain: Domain, data: st.DataObject):
    indices = np.array(data.draw(st.lists(st.integers(0, domain.size - 1), max_size=12)), np.int64)
    labels = [domain.label(int(i)) for i in indices]
    assert np.array_equal(domain.index(labels), indices)
    rows = [
        [str(c) for c in label] if isinstance(label, list) else [str(label)] for label in labels
    ]
    parsed = domain.parse_columns(rows)
    assert parsed.dtype == np.int64
    assert np.array_equal(parsed, indices)
    if not isinstance(domain, Labels) and len(labels):
        assert np.array_equal(domain.index(np.array(labels)), indices)
        assert np.array_equal(domain.index(np.array(labels, dtype=np.uint16)), indices)


NAN = Decimal("sNaN")
OUTSIDE = {
    "labels": (Labels(("bus", "train", 7)), ["bus", "plane", 8, 7.0, True, None, ["bus"], ""]),
    "size": (Size(5), [4, 5, -1, 1.0, "1", None, 10**30, math.nan, [1]]),
    "grid": (Grid(3, 4), [[2, 3], [3, 0], [0, -1], [0], [0, 1, 2], 5, "01", [0, 1.0]]),
    "interval": (
        Interval(((0.0, 9.0),), (3,)),
        [9.0, 9.1, -0.1, math.nan, math.inf, True, "3", b"3", None, 10**400, [3.0], 1j, NAN],
    ),
    "intervals": (
        Interval(((0.0, 9.0), (0.0, 1.0)), (3, 2)),
        [(9.0, 1.0), (0.0, 1.5), (math.nan, 0.0), (1.0,), 1.0, None, (1.0, "1")],
    ),
}


@pytest.mark.parametrize(("domain", "labels"), OUTSIDE.values(), ids=OUTSIDE.keys())
def test_the_first_label_outside_is_named_by_position_only(domain: Domain, labels: list):
    good, *bad = labels
    assert len(domain.index([good])) == 1
    for label in bad:
        for position in (0, 3):
            with pytest.raises(ValueOutsideDomainError) as caught:
                domain.index([good] * position + [label, good])
            assert caught.value.position == position
            assert caught.value.expected == domain.expected
            assert str(caught.value) == f"value at position {position}: expected {domain.expected}"


ROWS = {
    "labels": (Labels(("bus", "train")), ["bus"], [["plane"], ["bus", "bus"], [], [""]]),
    "size": (Size(5), [" 4 "], [["5"], ["-1"], ["1.0"], ["x"], [], ["1", "2"], ["²"], ["9" * 30]]),
    "grid": (Grid(3, 4), ["2", "3"], [["2"], ["3", "0"], ["0", "x"], ["0", "0", "0"]]),
    "interval": (Interval(((0.0, 9.0),), (3,)), ["9"], [["nan"], ["inf"], ["x"], ["1", "2"], []]),
}


@pytest.mark.parametrize(("domain", "good", "bad"), ROWS.values(), ids=ROWS.keys())
def test_the_first_row_outside_is_named_by_position_only(
    domain: Domain, good: list[str], bad: list[list[str]]
):
    assert len(domain.parse_columns([good])) == 1
    for row in bad:
        with pytest.raises(ValueOutsideDomainError) as caught:
            domain.parse_columns([good, good, row, ["never reached"]])
        assert caught.value.position == 2


def test_booleans_are_not_numbers():
    for domain in (Size(5), Interval(((0.0, 9.0),), (3,))):
        with pytest.raises(ValueOutsideDomainError):
            domain.index([True, False])


def test_a_single_text_is_not_a_sequence_of_labels():
    with pytest.raises(TypeError, match="single text"):
        Labels(("a", "b")).index("ab")


def test_all_domains_but_labels_are_ordered():
    assert not Labels(("a", "b")).ordered
    for domain in (Size(2), Grid(2, 2), Sizes((2, 3)), Interval(((0.0, 1.0),), (2,))):
        assert domain.ordered


@pytest.mark.parametrize(
    ("make", "path"),
    [
        (lambda: Size(10**12), "size"),
        (lambda: Size(1), "size"),
        (lambda: Size(2.0), "size"),
        (lambda: Grid(10**6, 10**6), "grid"),
        (lambda: Grid(3, 0), "grid[1]"),
        (lambda: Sizes(()), "sizes"),
        (lambda: Sizes((2, True)), "sizes[1]"),
        (lambda: Sizes((1, 1)), "sizes"),
        (lambda: Labels(()), "values"),
        (lambda: Labels(("a",)), "values"),
        (lambda: Labels(("a", "")), "values[1]"),
        (lambda: Labels(("a", 1.5)), "values[1]"),
        (lambda: Labels(("1", "a", 1)), "values[2]"),
        (lambda: Labels(("a", "\ufeffa")), "values[1]"),
        (lambda: Labels(("a", "b\u200b", "\u00adb")), "values[2]"),
        (lambda: parse_domain({"interval": [0, 2**53 + 1], "bins": 2}), "domain.interval"),
        (lambda: Interval(((0.0, math.inf),), (4,)), "interval"),
        (lambda: Interval(((0.0, 1.0), (1.0, math.nan)), (4, 4)), "interval[1]"),
        (lambda: Interval(((1.0, 1.0),), (4,)), "interval"),
        (lambda: Interval(((-1e308, 1e308),), (4,)), "interval"),
        (lambda: Interval(((1.0, 1.0 + 1e-15),), (1000,)), "bins"),
        (lambda: Interval(((0.0, 1.0),), (0,)), "bins[0]"),
        (lambda: Interval(((0.0, 1.0),), (10**12,)), "bins"),
        (lambda: Interval(((0.0, 1.0),), (4, 4)), "bins"),
    ],
)
def test_an_impossible_domain_names_its_key(make: Callable[[], object], path: str):
    with pytest.raises(SpecError) as caught:
        make()
    assert caught.value.path == path


@pytest.mark.parametrize("good", [[1, 2], np.array([1, 2]), np.ma.array([1, 2], mask=[0, 0])])
@pytest.mark.parametrize(
    "bad", [np.ma.array([1, 2], mask=[False, True]), np.array([True, False]), [np.True_, 1]]
)
def test_a_row_with_a_mask_or_booleans_is_refused_beside_any_other(good: Any, bad: Any):
    grid = Grid(5, 7)
    assert grid.index([good, good]).tolist() == [9, 9]
    with pytest.raises(ValueOutsideDomainError) as caught:
        grid.index([good, bad])
    assert caught.value.position == 1


@pytest.mark.parametrize("unit", ["ns", "s", "generic"])
@pytest.mark.parametrize(
    "domain", [Size(5), Interval(((0.0, 9.0),), (3,)), Labels((1, 2)), Labels(("1 seconds", "b"))]
)
def test_durations_are_not_numbers(domain: Domain, unit: str):
    """numpy counts them as integers, without their unit."""
    durations = np.array([1, 2], dtype=f"timedelta64[{unit}]" if unit != "generic" else "m8")
    for labels in (durations, list(durations), [2, durations[0]]):
        with pytest.raises(ValueOutsideDomainError):
            domain.index(labels)


def parse_domain(table: dict[str, Any]) -> object:
    return parse.parse_domain(table, path="domain", base=Path())


def test_a_boolean_in_an_array_of_its_own_is_refused():
    with pytest.raises(ValueOutsideDomainError):
        Size(5).index([2, np.array(True)])


def test_numpys_masked_arrays_are_imported_only_for_them():
    """Every device and command would wait for them."""
    code = "import sys; from ldpstream.mechanisms import SystemEntropy; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert b"numpy" in loaded.stdout.split()
    assert b"numpy.ma" not in loaded.stdout.split()

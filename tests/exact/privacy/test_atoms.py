"""Reports on atoms: the values that published queries do not tell apart are reported alike."""

import json
import tomllib
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ldpstream.mechanisms import CollectionSpec
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.domains.atoms import Atoms, atoms_of
from ldpstream.mechanisms.domains.lattice import Grid, Size
from ldpstream.mechanisms.domains.parse import Domain
from ldpstream.mechanisms.domains.queries import make_range
from ldpstream.mechanisms.exact.dyadic import budget, exp_floor
from tests.exact.enumeration import times
from tests.ratios import in_units, is_within

TABLE: dict[str, Any] = {
    "mechanism": "subset-selection",
    "epsilon": 1.0,
    "domain": {"size": 24},
    "workload": "published",
    "publish": {"ranges": {"a": [0, 7], "b": [4, 15], "c": [12, 23]}},
}
SETS = {"publish": {"ranges": {"a": [0, 5], "b": [4, 9]}}, "domain": {"size": 10}}


def spec_of(**keys: object) -> CollectionSpec:
    table = {key: value for key, value in (TABLE | keys).items() if value is not None}
    return CollectionSpec.from_mapping("hours", table, base=Path())


def names(domain: Domain) -> list[object]:
    assert isinstance(domain, Atoms)
    return domain.labels(np.arange(domain.size))


def mean_variance(spec: CollectionSpec) -> float:
    """Return a published range's variance under uniform data, as a mean over the ranges."""
    domain, decoder = spec.domain, spec.mechanism.decoder
    values = domain.index(np.arange(domain.written.size))
    written = TABLE["publish"] if domain.written.size == 24 else SETS["publish"]
    variances = []
    for bounds in written["ranges"].values():
        weights = np.zeros(domain.size)
        weights[make_range("range", bounds, domain).values(domain.shape)] = 1.0
        variances.append(decoder.noise(weights)[values].mean())
    return float(np.mean(variances))


@pytest.mark.parametrize(
    ("keys", "epsilon", "on_values", "on_atoms"),
    [
        ({}, 0.5, 86.53156, 14.84788),
        ({}, 1.0, 20.20009, 3.45479),
        ({}, 3.0, 0.98614, 0.14455),
        (SETS, 1.0, 7.76108, 1.49216),
        (SETS, 2.0, 1.33923, 0.26812),
    ],
)
def test_a_query_has_the_variance_of_the_table(
    keys: dict[str, Any], epsilon: float, on_values: float, on_atoms: float
):
    atoms = spec_of(**keys, epsilon=epsilon)
    values = spec_of(**keys, epsilon=epsilon, workload=None)
    assert (mean_variance(values), mean_variance(atoms)) == pytest.approx(
        (on_values, on_atoms), abs=5.1e-6
    )


Rows = list[list[Fraction]]


def variances(channel: Rows, decoder: list[Fraction]) -> list[Fraction]:
    """Return the variance of one report's estimate for each value."""
    squares = [h * h for h in decoder]
    return [times(row, squares) - times(row, decoder) ** 2 for row in channel]


def averaged(channel: Rows, atom_of: list[int], shares: list[Fraction]) -> Rows:
    """Return the channel on atoms: the mean of the rows of an atom's values by their shares."""
    rows = []
    for atom in range(max(atom_of) + 1):
        inside = [x for x, own in enumerate(atom_of) if own == atom]
        total = sum(shares[x] for x in inside)
        columns = range(len(channel[0]))
        rows.append([sum(shares[x] * channel[x][y] for x in inside) / total for y in columns])
    return rows


@pytest.mark.parametrize("seed", range(20))
def test_the_mean_of_rows_inside_atoms_keeps_privacy_and_variance(seed: int):
    """Brute force of the proof in docs/theory.md, section 8, for random channels, in rationals.

    With h decoded by Qh = w and w constant on atoms: no ratio grows, reports have the same
    probabilities, h is unbiased for the same query, and has the same variance in the population.
    """
    rng = np.random.default_rng(seed)
    k, outputs = 5, 7
    weights = rng.integers(1, 20, (k, outputs))
    channel = [[Fraction(int(w), int(row.sum())) for w in row] for row in weights]
    atom_of = [0, 1, 0, 2, 1]
    parts = rng.integers(1, 9, k).tolist()
    shares = [Fraction(part, sum(parts)) for part in parts]
    # Any h whose means are the same within atoms: move h along one report at a time.
    decoder = solution(channel, [Fraction([3, -1, 4][atom]) for atom in atom_of])
    means = [times(row, decoder) for row in channel]
    assert means == [[3, -1, 4][atom] for atom in atom_of]

    merged = averaged(channel, atom_of, shares)
    mass = [sum(s for s, own in zip(shares, atom_of, strict=True) if own == a) for a in range(3)]
    for y in range(outputs):
        column, narrow = [row[y] for row in channel], [row[y] for row in merged]
        assert max(narrow) / min(narrow) <= max(column) / min(column)
        assert times(mass, narrow) == times(shares, column)
    assert [times(row, decoder) for row in merged] == [3, -1, 4]
    of_atoms = times(mass, variances(merged, decoder))
    assert of_atoms == times(shares, variances(channel, decoder))


def solution(channel: Rows, wanted: list[Fraction]) -> list[Fraction]:
    """Return some h with Qh = w, by Gauss-Jordan elimination."""
    rows = [[*row, w] for row, w in zip(channel, wanted, strict=True)]
    pivots = []
    for column in range(len(channel[0])):
        rest = [i for i in range(len(pivots), len(rows)) if rows[i][column]]
        if not rest:
            continue
        place = len(pivots)
        rows[place], rows[rest[0]] = rows[rest[0]], rows[place]
        rows[place] = [entry / rows[place][column] for entry in rows[place]]
        for i, row in enumerate(rows):
            if i != place:
                rows[i] = [a - row[column] * b for a, b in zip(row, rows[place], strict=True)]
        pivots.append(column)
    found = [Fraction(0)] * len(channel[0])
    for place, column in enumerate(pivots):
        found[column] = rows[place][-1]
    return found


@pytest.mark.parametrize("mechanism", ["subset-selection", "randomized-response", "block-hadamard"])
def test_every_pair_of_values_keeps_epsilon_at_every_report(mechanism: str):
    spec = spec_of(mechanism=mechanism, **SETS, epsilon=0.7)
    most, rows = exp_floor(budget(0.7)), in_units(spec.mechanism.channel().rows)
    for first, second in product(spec.domain.index(np.arange(10)).tolist(), repeat=2):
        assert is_within(rows[first], rows[second], most)
    assert spec.mechanism.certify().violation is None


def test_atoms_are_named_by_ranges_or_labels():
    modes = {"values": ["bus", "tram", "car", "bicycle", "foot", "boat"]}
    grid = {"ranges": {"corner": [[0, 1], [0, 2]]}}
    bins = {"interval": [0.0, 2.0], "bins": 8}
    sets = {"sets": {"public": ["bus", "tram"]}, "linear": {"fare": {"boat": 2, "tram": 3}}}
    for domain, publish, expected in (
        ({"size": 24}, TABLE["publish"], ["0..3", "4..7", "8..11", "12..15", "16..23"]),
        ({"size": 9}, {"ranges": {"a": [1, 2], "b": [5, 5]}}, ["0, 3..4 and 6..8", "1..2", "5"]),
        (bins, {"ranges": {"a": [0.5, 1.25]}}, ["0..0.5 and 1.25..2", "0.5..1.25"]),
        ({"grid": [3, 4]}, grid, ["0..1,0..2", "0..2,3..3 and 2..2,0..2"]),
        (
            {"grid": [2, 2]},
            {"linear": {"a": [1, 2, 2, 1]}},
            ["[0, 0] and [1, 1]", "[0, 1] and [1, 0]"],
        ),
        (modes, sets, ["bus", "tram", "car, bicycle and foot", "boat"]),
        (
            {"size": 24, "blocks": 12},
            {"ranges": {"a": [6, 17]}},
            ["0..5", "6..11", "12..17", "18..23"],
        ),
    ):
        assert names(spec_of(domain=domain, publish=publish).domain) == expected


def test_names_of_scattered_atoms_are_short_and_different():
    even = np.arange(0, 4_000, 2)
    domain = atoms_of(Size(4_000), [even], [])
    assert names(domain) == ["0, 2, 4, 6 and 1,996 more", "1, 3, 5, 7 and 1,996 more"]
    places = atoms_of(Grid(40, 40), [np.arange(0, 1_600, 3), np.arange(0, 1_600, 7)], [])
    assert len(set(names(places))) == places.size == 4


def test_many_queries_are_told_apart_exactly():
    sets = [np.array([value]) for value in range(150)]
    domain = atoms_of(Size(200), sets, [])
    assert domain.size == 151
    assert domain.index(np.arange(200)).tolist() == [*range(150), *[150] * 50]


def test_the_fingerprint_holds_the_map():
    spec = spec_of()
    content = json.loads(spec.canonical)
    runs = [[0, 4], [1, 4], [2, 4], [3, 4], [4, 8]]
    assert content["domain"] == {"atoms": runs, "of": {"size": 24}}
    renamed = {"ranges": {"x": [12, 23], "y": [0, 7], "z": [4, 15]}, "top": 3}
    assert spec_of(publish=renamed).fingerprint == spec.fingerprint
    moved = {"ranges": {"a": [0, 7], "b": [4, 14], "c": [12, 23]}}
    assert spec_of(publish=moved).fingerprint != spec.fingerprint


def test_blocks_divide_atoms_and_keep_their_names(tmp_path: Path):
    lines = [f"{label},{'north' if label < 'f' else 'south'}" for label in "abcdefghij"]
    (tmp_path / "places.csv").write_text("\n".join(lines))
    table = TABLE | {
        "domain": {"file": "places.csv", "header": False},
        "publish": {"sets": {"some": ["a", "b", "j"]}},
    }
    spec = CollectionSpec.from_mapping("places", table, base=tmp_path)
    assert names(spec.domain) == ["a and b", "c, d and e", "f, g, h and i", "j"]
    policy = spec.mechanism.policy
    assert policy.blocks.of_value.tolist() == [0, 0, 1, 1]
    assert policy.blocks.names == ("north", "south")


NEED = 'with the same budget for any two values (of a block), which workload = "published" needs'


@pytest.mark.parametrize(
    ("keys", "path", "expected"),
    [
        ({"mechanism": "tree"}, "mechanism", f"{NEED}, got tree"),
        ({"mechanism": "l1-bits"}, "mechanism", f"{NEED}, got l1-bits"),
        ({"mechanism": "high-low", "sensitive": [1]}, "mechanism", f"{NEED}, got high-low"),
        ({"policy": {"metric": "l1"}}, "policy", "no policy with workload"),
        ({"publish": None}, "workload", "queries in publish, got none"),
        ({"publish": {"quantiles": [0.5]}}, "workload", "queries in publish, got none"),
        ({"publish": {"ranges": {"a": [0, 23]}}}, "workload", "at least two values apart"),
        ({"publish": {"ranges": {"a": [0, 99]}}}, "publish.ranges.a", "whole numbers in 0..23"),
        ({"publish": {"ranges": {"a": "0..9"}}}, "publish.ranges.a", "a list, got '0..9'"),
        ({"publish": {"ranges": [[0, 9]]}}, "publish.ranges", "a table of queries by name"),
        ({"publish": {"linear": {"a": [True] * 24}}}, "publish.linear.a", "a list of numbers"),
        ({"publish": {"sets": {"a": {"1": 2}}}}, "publish.sets.a", "a list, got a table"),
        (
            {"domain": {"interval": [0.0, 1.0], "bins": 4, "rounding": "random"}},
            "domain.rounding",
            "a mechanism with a budget for each step",
        ),
        (
            {"domain": {"words": {"bits": 32, "rounds": 4, "kept": 64}}},
            "workload",
            "no such key with words",
        ),
    ],
)
def test_what_contradicts_is_refused(keys: dict[str, Any], path: str, expected: str):
    with pytest.raises(SpecError) as caught:
        spec_of(**keys)
    assert caught.value.path == f"collection.hours.{path}"
    assert expected in caught.value.expected


def test_attributes_of_records_report_their_own_atoms():
    text = """
    mechanism = "subset-selection"
    epsilon = 1.0
    [domain.attributes]
    place = { grid = [4, 4], workload = "published" }
    hour = { size = 24 }
    [publish.attributes.place]
    ranges = { centre = [[1, 2], [1, 2]] }
    """
    spec = CollectionSpec.from_mapping("trips", tomllib.loads(text), base=Path())
    place = spec.attributes["place"].domain
    assert len(names(place)) == 2
    assert spec.domain.column_names == ("place.1", "place.2", "hour")
    spec.domain.check([{"place": [1, 1], "hour": 3}])
    assert len(spec.domain.parse_columns([["0", "3", "5"]])) == 1

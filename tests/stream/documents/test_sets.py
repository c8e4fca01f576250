"""Blocks and sets by name, areas, and quantiles of each axis, in every way of asking."""

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from aiohttp.test_utils import TestClient, TestServer

import ldpstream as ldp
from ldpstream.agents.cli.python.reports import define_collection
from ldpstream.agents.config.query.capabilities import read_options
from ldpstream.agents.document.build import build_document
from ldpstream.agents.document.flat import document_csv, document_rows
from ldpstream.agents.document.model import EstimateDocument
from ldpstream.agents.state.context import WindowTotals
from ldpstream.agents.web import build_http
from ldpstream.agents.web.estimates import one_axis
from ldpstream.mechanisms.base.errors import QueryError
from tests.exact.enumeration import accumulated
from tests.seeded import SeededEntropy
from tests.stream.asking import ask, post
from tests.stream.cli import invoke, refused
from tests.stream.querying import ldpstream, windows
from tests.stream.serving import CITY, START_MS, Pipeline, serve_collections

ZONES = "JFK,Queens\nLGA,Queens\nAstoria,Queens\nEWR,Newark\nSoHo,Manhattan\nHarlem,Manhattan\n"
VISITS = ["JFK"] * 300 + ["Astoria"] * 200 + ["EWR"] * 100 + ["SoHo"] * 400
PATH = "/api/collections/zones/estimate"


CAFE, CAFE_NFD = "Caf\u00e9", "Cafe\u0301"


def zones(folder: Path, **keys: Any) -> dict[str, Any]:
    (folder / "zones.csv").write_text(ZONES)
    return {
        "mechanism": "block-hadamard",
        "epsilon": 2.0,
        "domain": {"file": str(folder / "zones.csv")},
        "partitions": 1,
        "minimum": 1,
        "window": {"size": "1m", "idle": "off", "future": "1m", "retention": "1h"},
        "publish": {"sets": {"airports": ["JFK", "LGA", "EWR"]}},
        **keys,
    }


def served(folder: Path, **keys: Any) -> TestClient[Any, Any]:
    pipeline = serve_collections({"zones": zones(folder, **keys)})
    times_ms = [START_MS] * len(VISITS)
    pipeline.collections["zones"].report(0, VISITS, times_ms=times_ms)
    pipeline.collections["zones"].close(START_MS + 60_000)
    return TestClient(TestServer(build_http(pipeline)))


async def test_a_block_is_asked_for_by_its_name_and_exact(tmp_path: Path) -> None:
    async with served(tmp_path) as client:
        document = await ask(client, f"{PATH}?range=Queens&range=Manhattan&range=Newark")
    shares = [(one["name"], one["share"], one["low"], one["high"]) for one in document["ranges"]]
    assert shares == [
        ("Queens", 0.5, 0.5, 0.5),
        ("Manhattan", 0.4, 0.4, 0.4),
        ("Newark", 0.1, 0.1, 0.1),
    ]


async def test_published_sets_are_in_every_document_and_asked_for_by_name(tmp_path: Path) -> None:
    async with served(tmp_path) as client:
        published = (await ask(client, PATH))["ranges"]
        assert [one["name"] for one in published] == ["airports"]
        # Seven standard errors: by Hoeffding's bound exceeded with probability below 1e-9.
        assert abs(published[0]["share"] - 0.4) < 7 * published[0]["se"]
        assert published == (await ask(client, f"{PATH}?range=airports"))["ranges"]
        given = {"name": "airports", "values": ["EWR", "JFK", "LGA"]}
        assert published == (await post(client, {"ranges": [given]}, path=PATH))["ranges"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Bronx",
            "range: expected the name of a set or a block, one of airports",
        ),
        (
            "0..3",
            "range: expected a domain with an order; of labels the name of a block or of a set",
        ),
    ],
)
async def test_a_name_that_is_none_is_refused(tmp_path: Path, text: str, expected: str) -> None:
    async with served(tmp_path) as client:
        answer = await client.get(PATH, params={"range": text})
        assert answer.status == 400
        assert (await answer.json())["error"].startswith(expected)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"name": "x", "values": ["Bronx"]}, "ranges: expected labels of the domain, got 'Bronx'"),
        ({"name": "x", "values": ["JFK", "JFK"]}, "ranges: expected each label once"),
        ({"name": "x"}, "expected either bounds or values"),
        ({"name": "x", "values": ["JFK"], "bounds": [[0, 1]]}, "expected either bounds or values"),
        ({"name": "x", "bounds": [[0, 1]]}, "name a set of them in publish.sets"),
    ],
)
async def test_a_wrong_set_is_refused(tmp_path: Path, given: dict[str, Any], expected: str) -> None:
    async with served(tmp_path) as client:
        answer = await client.post(PATH, json={"ranges": [given]})
        assert answer.status == 400
        assert expected in (await answer.json())["error"]


@pytest.mark.parametrize(
    ("sets", "expected"),
    [
        ({"x": ["Bronx"]}, "publish.sets.x: expected labels of the domain, got 'Bronx'"),
        ({"x": []}, "publish.sets.x: expected a list of labels, at least one"),
        ({"x": ["JFK", "JFK"]}, "publish.sets.x: expected each label once"),
        ({"Queens": ["JFK"]}, "publish.sets.Queens: expected another name: it is that of a block"),
        ({CAFE: ["JFK"], CAFE_NFD: ["LGA"]}, "expected each name once"),
    ],
)
def test_a_wrong_configured_set_is_refused(
    tmp_path: Path, sets: dict[str, Any], expected: str
) -> None:
    with pytest.raises(ValueError, match=expected.replace(".", r"\.")):
        ldp.define_collection("zones", **zones(tmp_path, publish={"sets": sets}))


@pytest.mark.parametrize("written", [CAFE, CAFE_NFD])
@pytest.mark.parametrize("typed", [CAFE, CAFE_NFD])
async def test_names_are_found_in_any_of_unicodes_spellings(
    tmp_path: Path, written: str, typed: str
) -> None:
    keys = {
        "mechanism": "block-hadamard",
        "domain": {"values": [written, "b", "c", "d"], "blocks": [["b", "c"], [typed, "d"]]},
        "block_names": ["B", f"{written} block"],
        "value_labels": {typed: "Coffee"},
        "publish": {"sets": {f"{written} set": [typed, "b"]}},
    }
    config = ldp.define_collection("zones", **{**zones(tmp_path), **keys})
    assert config.names.value_labels == {None: {written: "Coffee"}}
    found = read_options(config.options, config.spec, {"range": [f"{typed} block", f"{typed} set"]})
    assert [one.values((4,)).tolist() for one in found.ranges] == [[0, 3], [0, 1]]


def test_a_weight_is_given_once_for_each_label_and_a_name_for_each_query(tmp_path: Path) -> None:
    twice = {CAFE: 1.0, CAFE_NFD: 2.0}
    weights = {"values": [CAFE, "b"]}, {"linear": {"x": twice}}
    names = {"size": 2}, {"linear": {name: [1.0, 2.0] for name in twice}}
    for domain, publish in (weights, names):
        keys = {"mechanism": "randomized-response", "domain": domain, "publish": publish}
        with pytest.raises(ValueError, match=r"publish\.linear.*expected each (label|name) once"):
            ldp.define_collection("zones", **{**zones(tmp_path), **keys})
    ordered = {"mechanism": "randomized-response", "domain": {"size": 4}}
    publish = {"ranges": {"x": [0, 1]}, "sets": {"x": [3]}}
    with pytest.raises(ValueError, match=r"publish\.sets\.x: expected each name once"):
        ldp.define_collection("zones", **{**zones(tmp_path), **ordered, "publish": publish})


def test_sets_of_an_attribute_are_published_with_it(tmp_path: Path) -> None:
    table = zones(
        tmp_path,
        mechanism="subset-selection",
        domain={"attributes": {"zone": {"file": str(tmp_path / "zones.csv")}, "age": {"size": 4}}},
        publish={"attributes": {"zone": {"sets": {"airports": ["JFK", "LGA", "EWR"]}}}},
    )
    collection = ldp.define_collection("zones", **table)
    (airports,) = collection.options.about("zone").ranges
    assert (airports.name, airports.values((6,)).tolist()) == ("airports", [0, 1, 3])
    table["publish"] = {"sets": {"airports": ["JFK"]}}
    with pytest.raises(ValueError, match=r"set sets of an attribute in attributes\.NAME"):
        ldp.define_collection("zones", **table)


async def test_merged_blocks_are_told_by_name(tmp_path: Path) -> None:
    async with served(tmp_path, minimum=1000, minimum_block=150) as client:
        document = await ask(client, f"{PATH}?range=Newark&range=Queens")
    assert document["merged"]["names"] == ["Newark", "Manhattan"]
    newark, queens = document["ranges"]
    assert (newark["share"], queens["share"]) == (None, 0.5)
    assert b'"Newark, Manhattan"' in document_csv(EstimateDocument.model_validate(document))


def test_commands_take_names(tmp_path: Path) -> None:
    (tmp_path / "zones.csv").write_text(ZONES)
    (tmp_path / "zones.toml").write_text("""
[collection.zones]
mechanism = "block-hadamard"
epsilon = 2.0
minimum = 1
domain = { file = "zones.csv" }
publish = { sets = { airports = ["JFK", "LGA", "EWR"] } }
""")
    (tmp_path / "visits.csv").write_text("\n".join(VISITS) + "\n")
    file = str(tmp_path / "zones.toml")
    made = invoke("privatize", "-c", file, "zones", str(tmp_path / "visits.csv"))
    (tmp_path / "reports.jsonl").write_text(made.stdout)
    asked = ("estimate", "-c", file, "zones", str(tmp_path / "reports.jsonl"))
    shown = invoke(*asked, "--range", "Queens", "--range", "airports").stdout
    assert [line for line in shown.splitlines() if "Queens" in line and " 50.00% " in line]
    assert "airports" in shown
    assert "one of airports, Queens" in refused(invoke(*asked, "--range", "Bronx"))


CROWD = {**CITY, "epsilon": 4.0}
RINGS = {**CROWD, "domain": {"interval": [0.0, 8.0], "bins": 16}}
SUMMED = {**CROWD, "project": "simplex"}
WORDS = {**CROWD, "domain": {"values": [f"word {number}" for number in range(40)]}}


@pytest.fixture
def pipeline() -> Pipeline:
    tables = {"city": CROWD, "rings": RINGS, "words": WORDS, "summed": SUMMED}
    publish: dict[str, Any] = {"publish": {"top": 3}}
    made = serve_collections({name: table | publish for name, table in tables.items()})
    even = {
        "city": [[row, column] for row in range(6) for column in range(10)] * 20,
        "rings": [0.5 * place for place in range(16)] * 60,
        "words": [f"word {number}" for number in range(40)] * 40,
    }
    loud = {"city": [[4, 7]] * 900, "rings": [3.2] * 900, "words": ["word 7"] * 900}
    for name, served in made.collections.items():
        like = "city" if name == "summed" else name
        labels = even[like] + loud[like]
        served.report(0, labels, times_ms=[START_MS] * len(labels))
    return made


async def entries_of(url: str, name: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    (document,) = await windows(url, name, "--areas", "--top", "0")
    areas = document["areas"]
    return areas, areas["entries"]


@pytest.mark.parametrize(
    ("name", "loud", "family"),
    [("city", "4..4,7..7", 4 + 60), ("rings", "3.0..3.5", 31), ("words", "word 7", 41)],
)
async def test_areas_that_stand_out_are_named_and_can_be_asked_for(
    url: str, name: str, loud: str, family: int
) -> None:
    areas, entries = await entries_of(url, name)
    named = {one["name"]: one for one in entries}
    assert loud in named
    assert areas["family"] >= family
    roots = [one for one in entries if one["inside"] is None]
    assert [one["name"] for one in roots] == (
        [f"block {block}" for block in range(4)] if name == "city" else ["all values"]
    )
    assert all(one["low"] == one["share"] == one["high"] for one in roots)
    if name == "words":
        assert named["all values"]["rest"]["values"] == 40 - len(entries) + 1
        return
    asked = [one for one in entries if one["inside"] is not None]
    ranges = [word for one in asked for word in ("--range", one["name"])]
    (document,) = await windows(url, name, *ranges)
    for one, other in zip(asked, document["ranges"], strict=True):
        assert one["share"] == pytest.approx(other["share"])


async def test_a_terminal_shows_each_area_below_the_one_around_it(url: str) -> None:
    areas, entries = await entries_of(url, "city")
    told = (await ldpstream("query", url, "city", "--areas")).stdout
    assert f"{len(entries)} of {areas['family']} areas shown" in told
    for one in entries:
        assert one["name"] in told
    assert "  the rest" in told


async def test_areas_are_not_projected_where_shares_are(url: str) -> None:
    _, entries = await entries_of(url, "summed")
    table = (await ldpstream("query", url, "summed", "--areas", "--csv")).stdout
    rows = [row for row in csv.DictReader(io.StringIO(table)) if row["kind"] == "area"]
    assert [(row["name"], float(row["value"]), row["projection"]) for row in rows] == [
        (one["name"], one["share"], "none") for one in entries
    ]


MECHANISMS: dict[str, dict[str, Any]] = {
    "l1-bits": {"epsilon": 4.0, "domain": {"sizes": [6, 9]}},
    "l1-geometric": {"epsilon": 4.0, "domain": {"sizes": [6, 9]}},
    "block-hadamard": {"epsilon": 6.0, "domain": {"sizes": [6, 9]}},
    "tree": {"epsilon": 6.0, "domain": {"sizes": [6, 9]}},
    "private weights": {
        "mechanism": "l1-bits",
        "epsilon": 4.0,
        "domain": {"sizes": [6, 9]},
        "weights": {"private": 3},
    },
}
AXES: dict[str, Any] = {"epsilon": 4.0, "domain": {"sizes": [6, 9]}}
LINE: dict[str, Any] = {"domain": {"size": 6}}
N = 4000


def document_of(keys: dict[str, Any], values: np.ndarray, n: int = N) -> EstimateDocument:
    publish = {"quantiles": [0.15, 0.4], "top": 3}
    collection = define_collection("c", **{"minimum": 0, "publish": publish, **keys})
    mechanism, entropy = collection.spec.mechanism, SeededEntropy(3)
    if collection.spec.domain.estimated is not collection.spec.domain:
        values = values * 4 + 1
    statistic = accumulated(mechanism, mechanism.privatize(values[:n], entropy=entropy))
    totals = WindowTotals(0, 3_600_000, statistic, n, late=0, rejected=0)
    return build_document(collection, totals, window=None, final=True)


@pytest.mark.parametrize("name", MECHANISMS)
def test_they_are_those_of_the_coordinates(name: str):
    rng = np.random.default_rng(5)
    columns = rng.binomial(5, 0.6, N), rng.binomial(8, 0.3, N)
    keys = {"mechanism": name, **MECHANISMS[name]}
    document = document_of(keys, np.ravel_multi_index(columns, (6, 9)))
    assert document.quantiles == []
    found = {(one.axis, one.p): one for one in document.axis_quantiles}
    assert list(found) == [(0, 0.15), (0, 0.4), (1, 0.15), (1, 0.4)]
    for (axis, p), one in found.items():
        truth = np.quantile(columns[axis], p, method="inverted_cdf")
        assert one.value == truth
        assert one.low <= truth <= one.high
    rows = [row for row in document_rows(document) if "quantile" in row]
    assert ["axis 0" in row for row in rows] == [True, True, False, False]


def test_coordinates_of_bins_are_bins():
    domain = {"interval": [[0.0, 1.0], [0.0, 10.0]], "bins": [2, 5]}
    keys = {"mechanism": "l1-bits", "epsilon": 9.0, "domain": domain}
    document = document_of(keys, np.full(N, 7))
    assert [one.value for one in document.axis_quantiles] == [[0.5, 1.0]] * 2 + [[4.0, 6.0]] * 2
    empty = document_of(keys, np.full(N, 7), 0)
    assert {one.value for one in empty.axis_quantiles} == {None}


def test_comparisons_and_series_leave_them_out_or_refuse_them():
    """Published ones are left out; whoever asks for them is told."""
    publish = {"quantiles": [0.5]}
    grid = define_collection("c", mechanism="l1-bits", publish=publish, **AXES)
    domain = grid.spec.domain
    assert one_axis(grid.options, domain, explicit=False).quantiles == ()
    with pytest.raises(QueryError, match="one ordered dimension"):
        one_axis(grid.options, domain, explicit=True)
    line = define_collection("c", mechanism="l1-bits", publish=publish, **{**AXES, **LINE})
    assert one_axis(line.options, line.spec.domain, explicit=True).quantiles == (0.5,)

"""Shares of blocks and sets of labels by name: published, over HTTP, in Python and as commands."""

from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

import ldpstream as ldp
from ldpstream.agents.config.query.capabilities import read_options
from ldpstream.agents.document.flat import document_csv
from ldpstream.agents.document.model import EstimateDocument
from ldpstream.agents.web import build_http
from tests.stream.asking import ask, post
from tests.stream.cli import invoke, refused
from tests.stream.serving import START_MS, serve_collections

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

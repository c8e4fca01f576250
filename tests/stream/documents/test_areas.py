"""Areas over HTTP and in `ldpstream query`."""

import csv
import io
from typing import Any

import pytest

from tests.stream.querying import ldpstream, windows
from tests.stream.serving import CITY, START_MS, Pipeline, serve_collections

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

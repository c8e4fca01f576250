"""`GET .../change`: what changed between two spans, on real replicas without a broker."""

import csv
import io
from typing import Any

import pytest

from ldpstream.agents.document.model import ChangeDocument
from tests.stream.asking import Client, ask
from tests.stream.serving import MINUTE_MS, START_MS, Pipeline, serve_collections

MODES: dict[str, Any] = {
    "mechanism": "block-hadamard",
    "epsilon": 2.0,
    "domain": {"values": ["bus", "train", "tram", "walk"]},
    "partitions": 1,
    "minimum": 1,
    "window": {"size": "1m", "retention": "1h", "future": "10m", "grace": "10m"},
    "publish": {"sets": {"rail": ["train", "tram"]}},
}
BLOCKS: dict[str, Any] = {
    **MODES,
    "domain": {"interval": [0.0, 8.0], "bins": 8, "blocks": 4},
    "publish": {"quantiles": [0.5]},
}
SPREAD: dict[str, Any] = {**MODES, "spread": {"reports": 1, "horizon": "10m"}}
HELD: dict[str, Any] = {**MODES, "hold": 3}
RECORDS: dict[str, Any] = {
    **MODES,
    "domain": {"attributes": {"a": {"size": 4}, "b": {"size": 2}}},
    "publish": {},
}
PATH = "/api/collections/modes/change"


def minute(number: int) -> int:
    return START_MS + number * MINUTE_MS


@pytest.fixture
def pipeline() -> Pipeline:
    """Reports of three minutes, the same in the first two; trams gain what buses lose."""
    tables = {"modes": MODES, "spread": SPREAD, "held": HELD, "empty": MODES}
    tables["few"] = {**MODES, "minimum": 100}
    made = serve_collections(tables)
    mixes = [(1000, 1000, 1000, 1000), (1000, 1000, 1000, 1000), (400, 1000, 1600, 1000)]
    for name in ("modes", "spread", "held"):
        for number, mix in enumerate(mixes):
            labels = [
                label
                for label, count in zip(MODES["domain"]["values"], mix, strict=True)
                for _ in range(count)
            ]
            made.collections[name].report(
                0, labels, times_ms=[minute(number)] * len(labels), seed=number
            )
    few = made.collections["few"]
    for number, n in enumerate((400, 30, 400, 30)):
        few.report(0, ["bus"] * n, times_ms=[minute(number)] * n, seed=number)
    few.close(minute(4))
    return made


def spans(after: tuple[int, int], before: tuple[int, int] | None = None) -> str:
    text = f"?start={minute(after[0])}&end={minute(after[1])}"
    if before is None:
        return text
    return f"{text}&before_start={minute(before[0])}&before_end={minute(before[1])}"


async def test_the_newest_window_is_compared_with_the_one_before(client: Client) -> None:
    found = await ask(client, f"{PATH}?top=all")
    ChangeDocument.model_validate(found)
    assert (found["estimand"], found["devices"], found["withheld"]) == (
        "population",
        "fresh",
        False,
    )
    assert [found[name]["n"] for name in ("before", "after")] == [4000, 4000]
    told = {one["value"]: one["told"] for one in found["values"]}
    assert told == {"bus": "fell", "train": None, "tram": "rose", "walk": None}
    (rail,) = found["ranges"]
    assert (rail["name"], rail["told"]) == ("rail", "rose")
    assert (found["told"], found["family"]) == (3, 5)
    assert rail["low"] <= rail["change"] <= rail["high"]


async def test_equal_spans_have_no_change(client: Client) -> None:
    found = await ask(client, PATH + spans((1, 2)))
    assert found["told"] == 0
    assert all(one["low"] <= 0.0 <= one["high"] for one in found["values"])
    # As published: up to 20 values, those that changed most first.
    sizes = [abs(one["change"]) / one["se"] for one in found["values"]]
    assert sizes == sorted(sizes, reverse=True)


async def test_any_two_spans_that_do_not_overlap(client: Client) -> None:
    pooled = await ask(client, PATH + spans((2, 3), (0, 2)))
    assert pooled["before"]["n"] == 8000
    turned = await ask(client, PATH + spans((0, 2), (2, 3)))
    rose = {one["value"]: one["change"] for one in pooled["values"]}
    assert {one["value"]: -one["change"] for one in turned["values"]} == rose
    refused = await ask(client, PATH + spans((1, 3), (0, 2)), 400)
    assert refused["error"].startswith("before_start: expected a span that does not overlap")


async def test_what_is_known_of_devices_makes_bounds_narrower(client: Client) -> None:
    widths = {}
    for name in ("modes", "spread", "held"):
        found = await ask(client, f"/api/collections/{name}/change?top=all")
        widths[found["devices"]] = sum(one["high"] - one["low"] for one in found["values"])
    declared = await ask(client, f"{PATH}?top=all&devices=different")
    narrow = sum(one["high"] - one["low"] for one in declared["values"])
    assert widths["different"] < widths["fresh"] < widths["held"]
    assert narrow == pytest.approx(widths["different"], rel=0.1)


async def test_a_span_with_few_reports_withholds_the_change(client: Client) -> None:
    path = "/api/collections/few/change"
    found = await ask(client, path + spans((3, 4)))
    ChangeDocument.model_validate(found)
    assert (found["withheld"], "values" in found) == (True, False)
    assert "fewer than 100 reports" in found["reason"]
    assert found["after"]["n"] == 30


async def test_spans_that_are_told_from_one_part_are_not_compared(client: Client) -> None:
    """The second minute has so few reports that it is told only together with the third."""
    path = "/api/collections/few/change"
    found = await ask(client, path + spans((2, 3), (1, 2)))
    assert "some of the same reports" in found["reason"]
    apart = await ask(client, path + spans((2, 3), (0, 1)))
    assert (apart["withheld"], apart["after"]["n"]) == (False, 430)
    assert apart["after"]["span"]["start"] < apart["after"]["window"]["start"]


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("?estimand=respondents", "estimand: unknown parameter"),
        ("?project=simplex", "project: unknown parameter"),
        ("?devices=same", "devices: expected different, got 'same'"),
        ("?blocks=true", "blocks: expected false: reports disclose no blocks"),
        ("?blocks=yes", "blocks: expected true or false"),
        ("?before_start=0", "before_end: expected before_start and before_end, or neither"),
        ("?start=2026-11-21T10:00:30Z&end=2026-11-21T10:02:00Z", "start: expected the edge"),
        ("?quantile=0.5", "quantile: expected an ordered domain"),
    ],
)
async def test_what_cannot_be_compared_is_refused(client: Client, query: str, error: str) -> None:
    assert (await ask(client, PATH + query, 400))["error"].startswith(error)


async def test_without_reports_there_is_nothing_to_compare(client: Client) -> None:
    assert "no window" in (await ask(client, "/api/collections/empty/change", 404))["error"]


async def test_a_reader_that_has_the_answer_gets_a_304(client: Client) -> None:
    first = await client.get(PATH)
    tag = first.headers["ETag"]
    assert (await client.get(PATH, headers={"If-None-Match": tag})).status == 304
    other = await client.get(f"{PATH}?devices=different", headers={"If-None-Match": tag})
    assert other.status == 200


async def test_csv_has_a_row_for_each_change_and_another_tag(client: Client) -> None:
    found = await ask(client, f"{PATH}?top=all")
    answer = await client.get(f"{PATH}?top=all&format=csv")
    assert answer.content_type == "text/csv"
    assert answer.headers["ETag"] != (await client.get(f"{PATH}?top=all")).headers["ETag"]
    rows = list(csv.DictReader(io.StringIO(await answer.text())))
    assert [row["kind"] for row in rows] == ["value"] * 4 + ["range"]
    entries = [*found["values"], *found["ranges"]]
    for row, entry in zip(rows, entries, strict=True):
        assert row["name"] == entry.get("value", entry.get("name"))
        for name in ("before", "after", "change", "se", "low", "high"):
            assert float(row[name]) == entry[name], name
        assert row["told"] == (entry["told"] or "")
        ends = [row[name] for name in ("before_start", "before_end", "start", "end")]
        windows = found["before"]["window"], found["after"]["window"]
        assert ends == [one[end] for one in windows for end in ("start", "end")]
    few = await client.get(f"{PATH.replace('modes', 'few')}?format=csv")
    (row,) = csv.DictReader(io.StringIO(await few.text()))
    assert (row["kind"], row["withheld"], row["change"]) == ("none", "true", "")


class TestBlocks:
    """A collection whose reports disclose blocks."""

    @pytest.fixture
    def pipeline(self) -> Pipeline:
        made = serve_collections({"modes": BLOCKS})
        for number, first in enumerate((0.5, 0.5)):
            values = [first] * 2000 + [6.5] * 2000
            made.collections["modes"].report(
                0, values, times_ms=[minute(number)] * len(values), seed=number
            )
        return made

    async def test_a_share_that_is_exact_has_a_change_that_is_not(self, client: Client) -> None:
        found = await ask(client, f"{PATH}?blocks=true&top=0")
        for block in found["blocks"]:
            assert (block["before"], block["after"], block["told"]) == (0.5, 0.5, None)
            assert block["low"] < -0.02
            assert block["high"] > 0.02
        (median,) = found["quantiles"]
        assert median["told"] is None
        assert median["low"] <= median["steps"] <= median["high"]


class TestRecords:
    """A collection of records."""

    @pytest.fixture
    def pipeline(self) -> Pipeline:
        made = serve_collections({"modes": RECORDS})
        for number in range(2):
            values = [{"a": 1 + number, "b": 0}] * 4000
            made.collections["modes"].report(
                0, values, times_ms=[minute(number)] * len(values), seed=number
            )
        return made

    async def test_an_attribute_is_compared(self, client: Client) -> None:
        found = await ask(client, f"{PATH}?attribute=a&top=all")
        ChangeDocument.model_validate(found)
        assert [one["told"] for one in found["values"]] == [None, "fell", "rose", None]
        assert 1500 < found["after"]["n"] < 2500

    async def test_without_one_it_is_refused(self, client: Client) -> None:
        error = (await ask(client, PATH, 400))["error"]
        assert error.startswith("attribute: expected one of a, b")

"""`GET .../series`: many windows in one answer, on real replicas without a broker."""

import asyncio
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from ldpstream.agents.document import series as computing
from ldpstream.agents.document.series import Series, SeriesList
from ldpstream.agents.web import build_http, home_points
from ldpstream.agents.web.description import describe_status
from ldpstream.agents.web.estimates import kept_windows
from ldpstream.mechanisms.base.times import format_time
from tests.stream.asking import Client, ask
from tests.stream.conftest import is_changed
from tests.stream.serving import AGES as HOPPING
from tests.stream.serving import MINUTE_MS, START_MS, Pipeline, serve_collections

MODES: dict[str, Any] = {
    "mechanism": "block-hadamard",
    "epsilon": 2.0,
    "domain": {"values": ["bus", "train", "tram", "walk"]},
    "partitions": 1,
    "minimum": 1,
    "window": {"size": "1m", "retention": "2h", "future": "1h", "grace": "1h"},
    "publish": {"sets": {"rail": ["train", "tram"]}},
}
AGES: dict[str, Any] = {
    **MODES,
    "domain": {"interval": [0.0, 8.0], "bins": 8},
    "publish": {"quantiles": [0.5]},
}
RECORDS: dict[str, Any] = {
    **MODES,
    "domain": {"attributes": {"a": {"size": 4}, "b": {"size": 2}}},
    "publish": {},
}
PATH = "/api/collections/modes/series"
WINDOWS = 30


def minute(number: int) -> int:
    return START_MS + number * MINUTE_MS


@pytest.fixture(scope="module")
def half_an_hour() -> Pipeline:
    return count_half_an_hour()


@pytest.fixture
def pipeline(request: pytest.FixtureRequest, half_an_hour: Pipeline) -> Pipeline:
    return count_half_an_hour() if is_changed(request) else half_an_hour


def count_half_an_hour() -> Pipeline:
    """Return a pipeline with reports, all but those of the last five minutes final."""
    few = {**MODES, "minimum": 100}
    made = serve_collections({"modes": MODES, "few": few, "ages": AGES, "records": RECORDS})
    for number in range(WINDOWS):
        times = [minute(number)]
        labels = ["bus"] * 120 + ["train"] * 60 + ["walk"] * 20
        reports = {
            "modes": labels,
            "few": ["bus"] * 40,
            "ages": [2.5] * 100,
            "records": [{"a": 1, "b": 0}] * 50,
        }
        for name, values in reports.items():
            collection = made.collections[name]
            collection.report(0, values, times_ms=times * len(values), seed=number)
    for collection in made.collections.values():
        collection.close(minute(WINDOWS - 5))
    return made


async def test_each_point_says_what_the_document_of_its_span_says(client: Client) -> None:
    found = await ask(client, f"{PATH}?top=2&range=rail&value=walk&linear=1,2,3,4")
    Series.model_validate(found)
    points = found["points"]
    assert points["n"] == [200] * WINDOWS
    assert points["final"] == [True] * (WINDOWS - 5) + [False] * 5
    assert points["start"] == [format_time(minute(number)) for number in range(WINDOWS)]
    lines = [(line["kind"], line["name"]) for line in found["lines"]]
    assert lines == [
        ("value", "bus"), ("value", "train"), ("value", "walk"),
        ("range", "rail"), ("linear", "linear-1"),
    ]  # fmt: skip
    span = f"start={points['start'][7]}&end={points['end'][7]}"
    path = f"/api/collections/modes/estimate?{span}&project=none"
    document = await ask(client, f"{path}&range=rail&linear=1,2,3,4")
    (rail,), (mean,) = document["ranges"], document["linear"]
    columns = ("estimate", "low", "high")
    assert [found["lines"][3][name][7] for name in columns] == pytest.approx(
        [rail[name] for name in ("share", "low", "high")], rel=1e-5
    )
    assert [found["lines"][4][name][7] for name in columns] == pytest.approx(
        [mean[name] for name in ("mean", "low", "high")], rel=1e-5
    )
    # The largest values were found by looking, so their bounds hold for the whole domain.
    bus = (await ask(client, f"{path}&top=2"))["distribution"][0]
    assert [found["lines"][0][name][7] for name in columns] == pytest.approx(
        [bus[name] for name in ("share", "low", "high")], rel=1e-5
    )


async def test_more_windows_than_points_are_added_up(client: Client) -> None:
    found = await ask(client, f"{PATH}?points=7")
    points, windows = found["points"], found["windows_a_point"]
    assert len(points["n"]) <= 7
    assert sum(points["n"]) == WINDOWS * 200
    assert points["start"][0] == format_time(START_MS)
    assert points["start"][1:] == points["end"][:-1]
    assert points["n"][1:-1] == [windows * 200] * (len(points["n"]) - 2)
    part = await ask(client, f"{PATH}?start={minute(2)}&end={format_time(minute(4) + 30_000)}")
    assert part["points"]["n"] == [200, 200]


async def test_what_is_told_from_one_part_is_one_point(client: Client) -> None:
    """Three minutes make a part of at least 100 reports, and are drawn once."""
    found = await ask(client, "/api/collections/few/series")
    points = found["points"]
    shown = [n for n, withheld in zip(points["n"], points["withheld"], strict=True) if not withheld]
    assert shown == [120] * len(shown)
    spans = list(zip(points["start"], points["end"], strict=True))
    assert len(set(spans)) == len(spans)
    line = found["lines"][0]
    for place, withheld in enumerate(points["withheld"]):
        assert (line["estimate"][place] is None) == withheld


async def test_finals_are_computed_once(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    first = await ask(client, PATH)
    computed = []
    point = computing.SeriesQuery.point

    def counted(query: Any, *arguments: Any, **keywords: Any) -> Any:
        computed.append(keywords["window"][0])
        return point(query, *arguments, **keywords)

    monkeypatch.setattr(computing.SeriesQuery, "point", counted)
    assert await ask(client, PATH) == first
    assert computed == [minute(number) for number in range(WINDOWS - 5, WINDOWS)]


async def test_the_home_page_finds_the_points_of_finals_computed(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once after each window that closes; the rest of the answer is the same."""
    made, another = list[str](), asyncio.Event()
    compute = home_points.compute_home_points

    async def compute_noted(queues: Any, collection: Any) -> None:
        await compute(queues, collection)
        made.append(collection.config.name)
        another.set()

    async def until_made(number: int) -> None:
        async with asyncio.timeout(60):
            while len(made) < number:
                another.clear()
                await another.wait()

    # A shorter wait, and counted.
    monkeypatch.setattr(home_points, "_WAIT_SECONDS", 0.01)
    monkeypatch.setattr(home_points, "compute_home_points", compute_noted)
    path = f"/api/series?{home_points.HOME_QUERY}"
    async with TestClient(TestServer(build_http(pipeline))) as client:
        alone = await ask(client, path)
    app = build_http(pipeline)
    app.cleanup_ctx.append(home_points.run_home_points)
    async with TestClient(TestServer(app)) as client:
        await until_made(4)
        point, computed = computing.SeriesQuery.point, set[tuple[str, int]]()

        def count_point(query: Any, config: Any, *arguments: Any, **keywords: Any) -> Any:
            computed.add((config.name, keywords["window"][0]))
            return point(query, config, *arguments, **keywords)

        with monkeypatch.context() as counting:
            counting.setattr(computing.SeriesQuery, "point", count_point)
            assert await ask(client, path) == alone
        newest = range(WINDOWS - 5, WINDOWS)
        shown = {one for one in computed if one[0] != "few"}  # Which is withheld, and not kept.
        assert shown == {
            (name, minute(at)) for name in ("modes", "ages", "records") for at in newest
        }
        modes = pipeline.collections["modes"]
        modes.close(minute(WINDOWS - 4))
        await until_made(5)
        assert made == ["modes", "few", "ages", "records", "modes"]


async def test_a_collection_that_is_counted_again_is_computed_again(
    client: Client, pipeline: Pipeline
) -> None:
    before = await ask(client, PATH)
    again = serve_collections({"modes": MODES}).collections["modes"]
    for number in range(WINDOWS):
        again.report(0, ["tram"] * 200, times_ms=[minute(number)] * 200, seed=number)
    again.close(minute(WINDOWS - 5))
    pipeline.collections = {**pipeline.collections, "modes": again}
    after = await ask(client, PATH)
    assert after["points"] == before["points"]
    assert after["lines"][0]["estimate"][0] != before["lines"][0]["estimate"][0]


async def test_late_windows_and_new_finals_are_told(client: Client, pipeline: Pipeline) -> None:
    await ask(client, PATH)
    modes = pipeline.collections["modes"]
    modes.report(0, ["walk"] * 100, times_ms=[minute(WINDOWS - 1)] * 100, seed=99)
    assert (await ask(client, PATH))["points"]["n"][-1] == 300
    modes.close(minute(WINDOWS))
    assert (await ask(client, PATH))["points"]["final"][-1]


async def test_all_collections_in_one_request(client: Client) -> None:
    found = await ask(client, "/api/series?points=10&published=true")
    SeriesList.model_validate(found)
    assert [one["collection"] for one in found["series"]] == ["modes", "few", "ages", "records"]
    ages, records = found["series"][2:]
    assert [line["kind"] for line in ages["lines"]] == ["value", "quantile"]
    assert ages["lines"][1]["estimate"][0] == [2.0, 3.0]
    assert records["attribute"] == "a"
    one = await ask(client, "/api/series?points=10&published=true&collection=ages")
    assert one["series"] == [ages]
    unknown = await ask(client, "/api/series?collection=x", 400)
    assert unknown["error"].startswith("collection: expected one of modes, few")


async def test_a_collection_that_cannot_answer_keeps_the_others(
    client: Client, pipeline: Pipeline
) -> None:
    pipeline.collections["few"].replicas[0].head = None
    found = await ask(client, "/api/series?points=5")
    assert [one["collection"] for one in found["series"]] == ["modes", "ages", "records"]
    assert "still being read" in found["problems"]["few"]


async def test_answers_are_tagged_and_compressed(client: Client) -> None:
    for path in (PATH, "/api/series"):
        answer = await client.get(path, headers={"Accept-Encoding": "gzip"})
        assert answer.headers["Content-Encoding"] == "gzip"
        again = await client.get(path, headers={"If-None-Match": answer.headers["ETag"]})
        assert again.status == 304


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("?points=501", "points: expected a whole number in 1..500"),
        ("?top=all", "top: expected at most 100 values"),
        ("?top=101", "top: expected at most 100 values"),
        ("?value=plane", "value: expected"),
        ("?project=simplex", "project: unknown parameter"),
        ("?start=yesterday", "start: expected a time"),
    ],
)
async def test_what_cannot_be_asked_is_refused(client: Client, query: str, error: str) -> None:
    assert (await ask(client, PATH + query, 400))["error"].startswith(error)


async def test_too_much_for_one_answer_is_refused(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ldpstream.agents.web.series.CELLS_LIMIT", 4 * 50)
    error = (await ask(client, f"{PATH}?points=51", 400))["error"]
    assert error.startswith("points: expected at most 50 with 1 numbers each over 4 values")
    # Who does not say how many gets as many as can be computed.
    monkeypatch.setattr("ldpstream.agents.web.series.CELLS_LIMIT", 4 * 10)
    found = await ask(client, PATH)
    assert len(found["points"]["n"]) <= 10
    assert sum(found["points"]["n"]) == WINDOWS * 200


async def test_the_status_says_what_a_home_page_needs(client: Client) -> None:
    answer = await ask(client, "/api/series?status=true&published=true&last=12")
    SeriesList.model_validate(answer)
    series = {one["collection"]: one for one in answer["series"]}
    listed = {}
    for name, one in series.items():
        path = f"/api/collections/{name}"
        assert one["status"] == await ask(client, f"{path}/status")
        listed[name] = (await ask(client, f"{path}/windows"))["windows"]
        finals = [window for window in listed[name] if window["final"]]
        assert one["windows"] == [finals[-1], listed[name][len(finals)]]
        assert one["windows_a_point"] == 1
    before, newest = (one["window"] for one in listed["modes"][WINDOWS - 7 : WINDOWS - 5])
    span = f"start={newest['start']}&end={newest['end']}"
    then = f"before_start={before['start']}&before_end={before['end']}"
    path = f"/api/collections/modes/change?{span}&{then}&top=all"
    assert series["modes"]["change"] == await ask(client, path)
    # A quantile has the bounds that it has beside the others of its kind.
    path = f"/api/collections/ages/estimate?{span}&simultaneous=true"
    (half,) = (await ask(client, path))["quantiles"]
    at = series["ages"]["points"]["start"].index(newest["start"])
    (line,) = (one for one in series["ages"]["lines"] if one["kind"] == "quantile")
    columns = {"estimate": "value", "low": "low", "high": "high"}
    assert {name: line[name][at] for name in columns} == {
        name: half[column] for name, column in columns.items()
    }


async def test_the_status_says_what_stands_out_of_a_grid_without_queries() -> None:
    grid = {**MODES, "domain": {"grid": [8, 8]}, "publish": {}}
    ranges = {**grid, "publish": {"ranges": {"corner": [[0, 1], [0, 1]]}}}
    made = serve_collections({"grid": grid, "ranges": ranges})
    for served in made.collections.values():
        labels = [[1, 1]] * 3000 + [[6, 2]] * 1000
        served.report(0, labels, times_ms=[minute(0)] * 4000)
        served.close(minute(1))
    async with TestClient(TestServer(build_http(made))) as client:
        answer = await ask(client, "/api/series?status=true&published=true&last=12")
        SeriesList.model_validate(answer)
        series = {one["collection"]: one["standing"] for one in answer["series"]}
        span = f"start={format_time(minute(0))}&end={format_time(minute(1))}"
        path = f"/api/collections/grid/estimate?{span}&top=0&areas=true"
        entries = (await ask(client, path))["areas"]["entries"]
    named = [area for area in entries if area["inside"] is not None]
    assert series["ranges"] is None
    assert series["grid"] == {
        "count": len(named),
        "largest": max(named, key=lambda area: area["share"]),
    }
    assert named


async def test_a_headline_has_lines_of_one_kind_as_beside_all_others(client: Client) -> None:
    options = "published=true&status=true&last=12"
    every = (await ask(client, f"/api/series?{options}"))["series"]
    some = (await ask(client, f"/api/series?{options}&headline=true"))["series"]
    kinds = {"modes": "range", "few": "range", "ages": "quantile", "records": "quantile"}
    for whole, headline in zip(every, some, strict=True):
        kind = kinds[headline["collection"]]
        lines = [line for line in whole["lines"] if line["kind"] == kind]
        assert lines
        assert headline == {**whole, "lines": lines}


async def test_published_values_are_bounded_with_all_others(client: Client) -> None:
    """Lines are often picked for what they show, so their bounds hold for the whole domain."""
    found = await ask(client, f"{PATH}?published=true&top=0&value=walk&value=bus")
    lines = {line["name"]: line for line in found["lines"] if line["kind"] == "value"}
    assert list(lines) == ["walk", "bus"]
    span = f"start={found['points']['start'][3]}&end={found['points']['end'][3]}"
    path = f"/api/collections/modes/estimate?{span}&top=all&simultaneous=true"
    document = await ask(client, path)
    for entry in document["distribution"]:
        if line := lines.get(entry["value"]):
            told = [entry[name] for name in ("share", "low", "high")]
            columns = ("estimate", "low", "high")
            assert [line[name][3] for name in columns] == pytest.approx(told, rel=1e-5)


async def test_the_newest_windows_are_those_of_the_whole_list(
    pipeline: Pipeline,
) -> None:
    """A home page lists the newest windows alone: also where none of them is final, or hops."""
    for collection in pipeline.collections.values():
        every = kept_windows(collection)
        for last in (1, 5, 24, 100):
            some = kept_windows(collection, last=last)
            assert some == every[-len(some) :]
            assert len(some) >= min(last, len(every))
            assert any(info.final for info in some)
    hopping = serve_collections({"ages": HOPPING}).collections["ages"]
    for number in range(12):
        hopping.report(0, [2.5] * 10, times_ms=[minute(number)] * 10, seed=number)
    hopping.close(minute(9))
    every = kept_windows(hopping)
    assert [kept_windows(hopping, last=last)[-last:] for last in (1, 3, 8)] == [
        every[-last:] for last in (1, 3, 8)
    ]
    assert describe_status(hopping).open_windows == sum(not info.published for info in every)

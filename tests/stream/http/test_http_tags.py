"""ETags of estimates and finals, which say whether an answer is new."""

import re
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from ldpstream.agents.web import build_http
from ldpstream.agents.web import computation as computing
from tests.stream.asking import CITY_PATH, FIRST, Client, three_collections
from tests.stream.serving import CITY, MINUTE_MS, START_MS, Pipeline, serve_collections, visits

SPAN = {"start": FIRST[0], "end": FIRST[1]}
TWO_MINUTES = {"start": str(START_MS), "end": str(START_MS + 2 * MINUTE_MS)}


async def test_a_known_tag_is_answered_304_without_computing(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await client.get(CITY_PATH, params=SPAN)
    tag = first.headers["ETag"]
    assert re.fullmatch(r'"[0-9a-f]{32}"', tag)
    assert first.headers["Cache-Control"] == "private, no-cache"
    monkeypatch.setattr(computing, "write_document", None)
    for known in (tag, f'"x", {tag}', f"W/{tag}", "*"):
        again = await client.get(CITY_PATH, params=SPAN, headers={"If-None-Match": known})
        assert (again.status, await again.read(), again.headers["ETag"]) == (304, b"", tag)
        assert again.headers["Cache-Control"] == "private, no-cache"
        assert "Content-Security-Policy" in again.headers


async def test_the_areas_of_a_final_are_computed_once(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    span = {**SPAN, "areas": "true"}
    first = await (await client.get(CITY_PATH, params=span)).read()
    monkeypatch.setattr(computing, "write_document", None)
    assert await (await client.get(CITY_PATH, params=span)).read() == first
    # What is open may change, and is computed anew.
    assert (await client.get(CITY_PATH)).status == 500


async def test_every_change_changes_the_tag(client: Client, pipeline: Pipeline) -> None:
    async def tag(query: str = "", **headers: str) -> str:
        span = f"?start={FIRST[0]}&end={FIRST[1]}"
        answer = await client.get(CITY_PATH + span + query, headers=headers)
        assert answer.status == 200
        return answer.headers["ETag"]

    queries = [
        "", "&top=3", "&method=bernstein", "&confidence=0.9", "&estimand=population",
        "&simultaneous=true", "&project=simplex", "&range=0..1,0..1", "&range=0..1,0..2",
        "&linear=" + ",".join(["1"] * 60), "&linear=" + ",".join(["2"] * 60), "&format=csv",
    ]  # fmt: skip
    tags = [await tag(query) for query in queries]
    assert len(set(tags)) == len(queries)
    assert [await tag(query) for query in queries] == tags
    city = pipeline.collections["city"]
    # A late report changes the answer, though not the final.
    city.report(1, visits(7, 1), times_ms=[START_MS])
    assert await tag() != tags[0]


async def test_any_worker_gives_the_same_tag() -> None:
    tags = []
    for _ in range(2):
        async with TestClient(TestServer(build_http(three_collections()))) as client:
            tags.append((await client.get(CITY_PATH)).headers["ETag"])
    assert tags[0] == tags[1]


@pytest.mark.parametrize(
    "changed", [{"epsilon": 2.0}, {"window": {**CITY["window"], "size": "2m"}}, {"minimum": 1_000}]
)
async def test_a_final_of_another_spec_window_or_minimum_has_another_tag(
    client: Client, pipeline: Pipeline, changed: dict[str, Any]
) -> None:
    """Its address is the same, so that a client with the old one has to notice."""
    pipeline.collections["city"].close(START_MS + 2 * MINUTE_MS)
    old = await client.get(CITY_PATH, params=TWO_MINUTES)
    again = serve_collections({"city": {**CITY, **changed}})
    city = again.collections["city"]
    city.report(0, visits(1, 200), times_ms=[START_MS] * 200)
    city.close(START_MS + 2 * MINUTE_MS)
    async with TestClient(TestServer(build_http(again))) as other:
        known = {"If-None-Match": old.headers["ETag"]}
        answer = await other.get(CITY_PATH, params=TWO_MINUTES, headers=known)
        assert answer.status == 200
        assert await answer.read() != await old.read()
    for kept in (old, answer):
        assert not re.search("immutable|max-age", kept.headers["Cache-Control"])

"""Which windows a document is of, and ages by the worker's clock, over HTTP."""

from email.utils import parsedate_to_datetime

import pytest
from aiohttp.test_utils import TestClient, TestServer

from ldpstream.agents.web import build_http
from ldpstream.mechanisms.base.times import parse_time
from tests.stream.serving import CITY, START_MS, serve_collections, stopped_clock, visits

pytestmark = pytest.mark.asyncio


async def test_a_document_has_the_size_of_its_window_and_a_span_has_none():
    pipeline = serve_collections({"city": {**CITY, "window": {"size": "2m", "hop": "1m"}}})
    pipeline.clock = stopped_clock("2031-05-06T07:08:09Z")
    pipeline.collections["city"].report(0, visits(1, 300), times_ms=[START_MS] * 300)
    async with TestClient(TestServer(build_http(pipeline))) as client:
        path = "/api/collections/city"
        for minutes, size in ((1, None), (2, "2m every 1m"), (3, None)):
            span = {"start": str(START_MS), "end": str(START_MS + 60_000 * minutes)}
            answer = await client.get(f"{path}/estimate", params=span)
            assert (await answer.json()).get("size") == size
            date = parsedate_to_datetime(answer.headers["Date"]).isoformat()
            assert parse_time(date) == parse_time("2031-05-06T07:08:09Z")
        listed = await (await client.get(f"{path}/windows")).json()
        status = await (await client.get(f"{path}/status")).json()
        assert (listed["size"], status["size"], status["other_sizes"]) == ("2m every 1m",) * 2 + (
            [],
        )

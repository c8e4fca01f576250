"""Estimates by likelihood over HTTP: how they are asked for, announced and limited."""

from collections.abc import AsyncIterator
from typing import Any

import numpy as np
import pytest
import pytest_asyncio
from aiohttp.test_utils import TestClient, TestServer

from ldpstream.agents.web import build_http, estimates
from tests.stream.asking import Client, ask, post
from tests.stream.serving import RIDES, START_MS, serve_collections

STARTS: dict[str, Any] = {
    "mechanism": "l1-geometric",
    "epsilon": 0.2,
    "domain": {"interval": [0.0, 1.0], "bins": 20},
    "method": "profile",
    "partitions": 1,
    "minimum": 1,
    "window": {"size": "1m"},
    "publish": {"top": 0, "quantiles": [0.5]},
}
PATH = "/api/collections/starts/estimate"


@pytest_asyncio.fixture
async def client() -> AsyncIterator[Client]:
    """Serve start times, and rides, whose mechanism has no likelihood."""
    pipeline = serve_collections({"starts": STARTS, "rides": RIDES})
    values = np.random.default_rng(1).beta(2.0, 5.0, 2_000).tolist()
    pipeline.collections["starts"].report(0, values, times_ms=[START_MS] * 2_000)
    async with TestClient(TestServer(build_http(pipeline))) as made:
        yield made


async def test_likelihood_can_be_asked_for_in_an_address_and_in_a_body(client: Client) -> None:
    query = "?method=profile&range=0.0..0.5&top=all"
    told = await ask(client, PATH + query)
    asked = {
        "method": "profile",
        "ranges": ["0.0..0.5"],
        "top": "all",
    }
    assert await post(client, asked, path=PATH) == told
    assert [one["bound"] for one in told["quantiles"]] == ["profile"]
    table = await client.get(f"{PATH}{query}&format=csv")
    rows = (await table.text()).splitlines()
    assert rows[-1].split(",")[13] == "quantile"
    assert rows[-1].split(",")[-3:-1] == ["profile", ""]


async def test_published_documents_are_profiled_as_configured(client: Client) -> None:
    told = await ask(client, PATH)
    assert (told["method"], told["projection"]) == ("profile", "none")
    assert [one["bound"] for one in told["quantiles"]] == ["profile"]


async def test_collections_say_whether_they_have_a_likelihood(client: Client) -> None:
    told = (await ask(client, "/api/collections"))["collections"]
    assert {one["name"]: one["likelihood"] for one in told} == {"starts": True, "rides": False}
    path = "/api/collections/rides/estimate?top=all&"
    error = (await ask(client, f"{path}method=profile", 400))["error"]
    assert "which is for l1-geometric in one dimension" in error


async def test_queries_that_would_take_too_long_are_refused(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(estimates, "LIKELIHOOD_LIMIT", 2 * 120)
    for query in ("?top=1&quantile=0.1&quantile=0.2", "?top=all", "?top=0&quantile=0.1&range=0..1"):
        answer = await client.get(f"{PATH}{query}&method=profile")
        error = (await answer.json()).get("error", "")
        refused = "range" not in query
        assert answer.status == (400 if refused else 200)
        assert (
            "expected padded or another, or at most 2 values, ranges and quantiles together with "
            "profile over 20 values" in error
        ) == refused
    assert (await client.get(f"{PATH}?top=all&method=padded")).status == 200

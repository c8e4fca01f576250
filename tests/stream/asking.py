"""Three collections behind the HTTP API, and requests to it, without a broker."""

from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestClient

from tests.stream.serving import (
    AGES,
    CITY,
    MINUTE_MS,
    RIDES,
    START_MS,
    Pipeline,
    foreign_frame,
    serve_collections,
    visits,
)

Client = TestClient[web.Request, web.Application]
CITY_PATH = "/api/collections/city/estimate"
TOKEN = "correct-horse-battery-staple"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
FIRST = ("2026-11-21T10:00:00Z", "2026-11-21T10:01:00Z")


def three_collections() -> Pipeline:
    """`city` has a final and an open window, late and rejected messages; `rides` is empty."""
    made = serve_collections({"city": CITY, "rides": RIDES, "ages": AGES})
    city = made.collections["city"]
    for partition in range(2):
        for minute in range(2):
            seed = 10 * partition + minute
            times = [START_MS + minute * MINUTE_MS] * 200
            city.report(partition, visits(seed, 200), times_ms=times, seed=seed)
    city.deliver(0, foreign_frame())
    city.deliver(1, b"no frame")
    city.close(START_MS + MINUTE_MS)
    city.report(1, visits(5, 3), times_ms=[START_MS] * 3)
    ages = made.collections["ages"]
    ages.report(0, [12.0] * 500 + [55.0] * 300, times_ms=[START_MS] * 800)
    return made


async def ask(client: Client, path: str, status: int = 200) -> Any:
    """Get a path, expecting this status, and return the JSON of the answer."""
    answer = await client.get(path)
    assert answer.status == status, await answer.text()
    assert answer.content_type == "application/json"
    return await answer.json()


async def post(client: Client, asked: Any, status: int = 200, path: str = CITY_PATH) -> Any:
    """Post a body, expecting this status, and return the JSON of the answer."""
    answer = await client.post(path, json=asked)
    assert answer.status == status, await answer.text()
    return await answer.json()

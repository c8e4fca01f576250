"""Windows of local days on the page: by their dates, with their hours where clocks change."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from ldpstream.agents.web import serve
from ldpstream.mechanisms.base.times import parse_time
from tests.browser.looking import open_view, rows
from tests.stream.serving import CITY, Pipeline, serve_collections, stopped_clock, visits

pytestmark = pytest.mark.asyncio(loop_scope="session")

DAY = {"size": "1d", "timezone": "Europe/Berlin", "idle": "off", "retention": "30d"}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def pipeline() -> Pipeline:
    """Give a city's days of which one has 25 hours: 200 reports of each day's first minute."""
    served = serve_collections({"city": {**CITY, "partitions": 1, "window": DAY}})
    served.clock = stopped_clock("2026-10-26T23:00:03Z")
    city = served.collections["city"]
    for seed, day in enumerate(("24T00:00:00+02", "25T00:00:00+02", "26T00:00:00+01")):
        time_ms = parse_time(f"2026-10-{day}:00")
        city.report(0, visits(seed, 200), times_ms=[time_ms] * 200, seed=seed)
    city.close(parse_time("2026-10-27T00:00:00+01:00"))
    return served


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def url(pipeline: Pipeline) -> AsyncIterator[str]:
    """Serve it."""
    async with serve(pipeline, port=0) as started:
        yield started


async def test_days_are_named_by_their_dates(page: Page, url: str) -> None:
    # The viewer's clock is far off: ages are the worker's.
    await page.clock.set_fixed_time("2031-01-01T00:00:00Z")
    await open_view(page, url, "city", "values")
    assert await page.locator("#window option").all_inner_texts() == [
        *("newest final", "live, still open", "the last 7 days", "the last 30 days"),
        *("Mon, Oct 26", "Sun, Oct 25 (25 h)", "Sat, Oct 24"),
    ]
    await page.select_option("#window", label="Sun, Oct 25 (25 h)")
    await expect(page.locator("#facts")).to_contain_text("Sun, Oct 25 (25 h)")
    await expect(page.locator("#facts")).not_to_contain_text("UTC")
    await open_view(page, url, "city", "time")
    named = [row[0] for row in await rows(page, "#window-rows")]
    assert named == ["Mon, Oct 26", "Sun, Oct 25 (25 h)", "Sat, Oct 24"]
    await open_view(page, url, "city", "overview")
    row = page.locator("#overview-rows tbody tr")
    await expect(row).to_contain_text("1d, Europe/Berlin")
    await expect(row).to_contain_text("Mon, Oct 26, 3 s ago")

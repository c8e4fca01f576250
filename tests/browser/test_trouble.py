"""What a page shows when answers do not come, and that it goes on once they do."""

import asyncio
from collections import Counter

import pytest
from playwright.async_api import Page, Route, expect

from tests.browser.looking import drawn, open_view
from tests.processes import PATIENCE_SECONDS
from tests.stream.serving import MINUTE_MS, START_MS, Pipeline

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_numbers_of_one_collection_never_stand_under_the_name_of_another(
    page: Page, url: str
) -> None:
    await page.route("**/ages/windows*", lambda route: route.fulfill(status=503, body="{}"))
    await open_view(page, url, "modes", "values")
    await page.select_option("#collection", "ages")
    await expect(page.locator("#problem")).to_contain_text("503")
    await expect(page.locator("#facts")).to_be_hidden()
    await expect(page.locator("#value-rows")).to_be_hidden()
    await page.unroute("**/ages/windows*")
    await expect(page.locator("#facts")).to_be_visible()
    await expect(page.locator("#problem")).to_be_hidden()


async def test_a_stream_that_has_fallen_silent_is_taken_up_again(
    page: Page, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As over a connection that is gone, which nobody is told of.
    monkeypatch.setattr("ldpstream.agents.web.events.HEARTBEAT_SECONDS", 3600.0)
    await page.clock.install()
    await open_view(page, url, "modes", "values")
    await expect(page.locator("#live")).to_have_text("Live")
    async with page.expect_request("**/events"):
        await page.clock.fast_forward(46_000)
        await expect(page.locator("#live")).to_have_text("Polling")
        await page.clock.fast_forward(2_000)
    await expect(page.locator("#live")).to_have_text("Live")


async def test_every_answer_is_read_to_its_end(page: Page, url: str) -> None:
    """A browser keeps one that nobody reads, which in a page of every day are thousands."""
    begun, ended = Counter[str](), Counter[str]()
    page.on("request", lambda request: begun.update([request.url]))
    page.on("requestfinished", lambda request: ended.update([request.url]))
    page.on("requestfailed", lambda request: ended.update([request.url]))
    await page.clock.install()
    await open_view(page, url, "modes", "values")
    for _ in range(3):
        async with page.expect_request_finished(lambda request: "/healthz" in request.url):
            await page.clock.run_for(5_000)
    await expect(page.locator("#live")).to_have_text("Live")
    async with asyncio.timeout(PATIENCE_SECONDS):
        while set(begun - ended) != {f"{url}/api/collections/modes/events"}:
            await page.wait_for_timeout(20)


async def test_a_worker_that_never_answers_is_not_waited_for(page: Page, url: str) -> None:
    asked: list[Route] = []
    await page.clock.install()
    await open_view(page, url, "modes", "values")
    await page.route("**/api/collections", lambda route: asked.append(route))
    await page.select_option("#top", "10")
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not asked:
            await page.wait_for_timeout(20)
    await page.clock.fast_forward(61_000)
    await expect(page.locator("#problem")).to_contain_text("does not answer")
    await page.unroute("**/api/collections")
    await page.clock.fast_forward(16_000)
    await expect(page.locator("#problem")).to_be_hidden()


async def test_a_window_that_expires_while_it_is_asked_for_is_no_trouble(
    page: Page, url: str
) -> None:
    asked: list[Route] = []

    async def gone_at_first(route: Route) -> None:
        asked.append(route)
        if len(asked) == 1:
            await route.fulfill(status=410, json={"error": "start: expected a later time"})
        else:
            await route.continue_()

    await page.route("**/modes/estimate*", gone_at_first)
    await page.goto(f"{url}/#collection=modes&view=values")
    await page.evaluate(
        "() => { window.said = []; new MutationObserver("
        "() => window.said.push(document.querySelector('#problem').textContent)"
        ").observe(document.querySelector('#problem'), {childList: true}); }"
    )
    await drawn(page, "values")
    assert len(asked) > 1
    assert await page.evaluate("window.said") == []


async def test_new_numbers_of_a_place_are_not_said_aloud(
    page: Page, url: str, pipeline: Pipeline
) -> None:
    await open_view(page, url, "places", "map")
    readout, said = page.locator("#tip"), page.locator("#tip-said[aria-live=polite]")
    await page.focus("#map-frame")
    await page.keyboard.press("ArrowDown")
    await expect(said).to_contain_text("Place [1, 0]")
    before, shown = await said.inner_text(), await readout.inner_text()
    # Its block was empty: its shares were 0.
    pipeline.collections["places"].report(
        0, [[1, 0]] * 5000, times_ms=[START_MS + 7 * MINUTE_MS] * 5000
    )
    await expect(readout).not_to_have_text(shown, use_inner_text=True)
    assert await said.inner_text() == before
    assert await readout.get_attribute("aria-live") is None
    await page.keyboard.press("ArrowDown")
    await expect(said).to_contain_text("Place [2, 0]")

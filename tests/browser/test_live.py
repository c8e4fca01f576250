"""A page that stays open: numbers come, windows become final, workers go and ask for a token."""

import asyncio
import re
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import BrowserContext, Page, expect

from ldpstream.agents.config.secret import GivenSecret
from tests.brokers import broker
from tests.browser.looking import ask, open_view, rows
from tests.browser.showing import MODES, report
from tests.browser.test_numbers import listed
from tests.lab import START_MS, Lab
from tests.ledger import WINDOW_MS
from tests.ports import free_ports
from tests.stream.serving import MINUTE_MS, Pipeline, serve, serve_collections
from tests.stream.serving import START_MS as SERVED_MS

pytestmark = pytest.mark.asyncio(loop_scope="session")

TOKEN = "open-sesame-open-sesame"
# The elements of the header and of the dialog that change.
_TOUCHED = """() => {
  window.touched = [];
  const note = seen => seen.forEach(({target}) => window.touched.push(target.id));
  const watch = new MutationObserver(note);
  const all = {subtree: true, childList: true, characterData: true, attributes: true};
  for (const one of document.querySelectorAll("header, dialog")) watch.observe(one, all);
}"""


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    """A collection on the embedded broker."""
    with broker("embedded") as running:
        yield Lab(running, tmp_path)


def in_order(document: dict[str, Any]) -> list[list[Any]]:
    """Return the rows of ordered values, which the page lists in their order."""
    entries = sorted(document["distribution"], key=itemgetter("value"))
    return listed(entries, "value")


async def test_a_selection_of_text_outlasts_new_numbers(
    page: Page, url: str, pipeline: Pipeline
) -> None:
    await open_view(page, url, "modes", "values", "&top=all")
    await expect(page.locator("#live")).to_have_text("Live")
    await page.evaluate(
        "() => getSelection().setBaseAndExtent("
        "document.querySelector('#bounds').firstChild, 7,"
        "document.querySelector('#value-rows tbody tr:nth-child(3) th a').firstChild, 3)"
    )
    selected = await page.evaluate("getSelection().toString()")
    assert selected.startswith("hold with 95%")
    assert selected.endswith("bus")
    for seed in (81, 82):
        before = await page.locator("#n").inner_text()
        report(pipeline.collections["modes"], 7, 500, seed=seed)
        await expect(page.locator("#n")).not_to_have_text(before)
        now = await page.evaluate("getSelection().toString()")
        assert (now[:40], now[-3:]) == (selected[:40], "bus")


_SHOW = """state => {
  Object.defineProperty(document, "visibilityState", {value: state, configurable: true});
  document.dispatchEvent(new Event("visibilitychange"));
}"""


async def test_any_number_of_tabs_stays_open_beside_the_one_that_is_shown(
    context: BrowserContext, url: str
) -> None:
    """Without HTTP/2 a browser opens six connections to a server."""
    tabs: list[Page] = []
    for _ in range(8):
        tab = await context.new_page()
        await open_view(tab, url, "modes", "values")
        await expect(tab.locator("#live")).to_have_text("Live")
        await tab.evaluate(_SHOW, "hidden")
        tabs.append(tab)
    # A tab that is shown again follows the collection again.
    await tabs[0].evaluate(_SHOW, "visible")
    await expect(tabs[0].locator("#live")).to_have_text("Live")
    for tab in tabs:
        await tab.close()


@pytest.mark.broker
async def test_live_data_of_a_worker_until_a_window_is_final(page: Page, lab: Lab) -> None:
    """The numbers are the API's while the window is open and once it is final; no reload."""

    def frame(n: int) -> bytes:
        return lab.frame(n, first_ms=START_MS, last_ms=START_MS + WINDOW_MS - 1)

    with lab.worker() as worker:
        topic = lab.collection.topics.source
        async with lab.producer() as producer:
            await page.goto(f"{worker.url}/#collection=trips&view=values")
            await expect(page.locator("#waiting")).to_contain_text("No reports have been counted")
            await page.evaluate("window.sameDocument = true")
            await producer.send_and_wait(topic, frame(900), partition=0)
            await expect(page.locator("#n")).to_have_text("900")
            await expect(page.locator("#live")).to_have_text("Live")
            await expect(page.locator("#state-words")).to_contain_text("still open")
            for partition in range(4):
                await producer.send_and_wait(topic, frame(500), partition=partition)
            await expect(page.locator("#n")).to_have_text("2,900")
        together = {"top": 20, "simultaneous": "true"}
        document = await ask(worker.url, "trips/estimate", **together, method="anytime")
        assert await rows(page, "#value-rows") == in_order(document)
        await lab.close(START_MS + WINDOW_MS)
        await expect(page.locator("#bounds")).to_contain_text("method padded")
        await expect(page.locator("#announce")).to_contain_text("is final with 2,900 reports")
        final = await ask(worker.url, "trips/estimate", **together)
        assert final["final"] is True
        assert await rows(page, "#value-rows") == in_order(final)
        assert final["distribution"] != document["distribution"]
        assert await page.evaluate("window.sameDocument") is True


async def test_a_new_window_comes_to_all_views_by_itself(
    page: Page, url: str, pipeline: Pipeline
) -> None:
    modes = pipeline.collections["modes"]
    await open_view(page, url, "modes", "time")
    assert len(await rows(page, "#window-rows")) == 8
    report(modes, 8, 3000, seed=31)
    await expect(page.locator("#window-rows tbody tr")).to_have_count(9)
    first = page.locator("#window-rows tbody tr").first
    await expect(first).to_contain_text("provisional")
    modes.close(SERVED_MS + 9 * MINUTE_MS)
    await expect(first).to_contain_text("final")


async def test_new_numbers_change_a_table_in_place(
    page: Page, url: str, pipeline: Pipeline
) -> None:
    """Its rows stay, and with them what is selected and where one reads."""
    await open_view(page, url, "smokers", "values")
    before = await page.locator("#n").inner_text()
    await page.evaluate("for (const row of document.querySelectorAll('tr')) row.stays = true")
    report(pipeline.collections["smokers"], 7, 2000, seed=33)
    await expect(page.locator("#n")).not_to_have_text(before)
    document = await ask(url, "smokers/estimate", method="anytime", top=20, simultaneous="true")
    assert await rows(page, "#value-rows") == listed(document["distribution"], "value")
    stay = "rows => rows.map(row => row.stays === true)"
    assert await page.locator("#value-rows tr").evaluate_all(stay) == [True] * 3


async def test_an_update_adds_a_second_to_the_age_and_changes_nothing_else_around_the_numbers(
    page: Page, url: str, pipeline: Pipeline
) -> None:
    await open_view(page, url, "smokers", "values")
    await expect(page.locator("#live")).to_have_text("Live")
    await page.evaluate(_TOUCHED)
    for seed in (34, 35, 36):
        before = await page.locator("#n").inner_text()
        report(pipeline.collections["smokers"], 7, 1000, seed=seed)
        await expect(page.locator("#n")).not_to_have_text(before)
    await page.wait_for_timeout(2100)
    assert set(await page.evaluate("window.touched")) == {"age-text"}


async def test_without_a_stream_the_page_polls(page: Page, url: str, pipeline: Pipeline) -> None:
    await page.route("**/events", lambda route: route.fulfill(status=503, body="{}"))
    smokers = pipeline.collections["smokers"]
    await open_view(page, url, "smokers", "values")
    await expect(page.locator("#live")).to_have_text("Polling")
    before = await page.locator("#n").inner_text()
    report(smokers, 7, 1000, seed=32)
    await expect(page.locator("#n")).not_to_have_text(before)


async def test_a_token_is_asked_for_and_kept_for_the_tab(page: Page, pipeline: Pipeline) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    async with serve(pipeline, token=GivenSecret(TOKEN)) as url:
        await page.goto(f"{url}/#collection=modes&view=values")
        await expect(page.locator("#token-form")).to_be_visible()
        assert await page.evaluate("document.activeElement.id") == "token"
        # Nothing to choose from, and no link that would answer 401.
        for hidden in ("#tools", "#open-links"):
            await expect(page.locator(hidden)).to_be_hidden()
        await page.keyboard.type("a token, but wrong")
        await page.keyboard.press("Enter")
        # No header can hold a blank: the field itself refuses it.
        assert await page.locator("#token:invalid").count() == 1
        await page.fill("#token", "wrong")
        await page.keyboard.press("Enter")
        await expect(page.locator("#token-refused")).to_have_text("That is not the token.")
        await page.fill("#token", TOKEN)
        await page.keyboard.press("Enter")
        await expect(page.locator("#value-rows tbody tr")).to_have_count(6)
        await expect(page.locator("#live")).to_have_text("Live")
        assert not await page.locator("#token-form").is_visible()
        await expect(page.locator("#open-links")).to_be_hidden()
        await expect(page.get_by_role("button", name="Theme: auto")).to_be_visible()
        await page.reload()
        await expect(page.locator("#value-rows tbody tr")).to_have_count(6)
        assert await page.evaluate("sessionStorage.length + localStorage.length") == 1
    assert not any(TOKEN in one for one in asked)


async def test_a_token_that_is_replaced_is_asked_for_again(page: Page, pipeline: Pipeline) -> None:
    (port,) = free_ports(1)
    rows = page.locator("#value-rows tbody tr")
    for secret in (TOKEN, TOKEN[::-1]):
        async with serve(pipeline, port=port, token=GivenSecret(secret)) as url:
            if secret == TOKEN:
                await page.goto(f"{url}/#collection=modes&view=values")
            await expect(page.locator("#token-form")).to_be_visible()
            await page.fill("#token", secret)
            await page.keyboard.press("Enter")
            await expect(page.locator("#token-form")).to_be_hidden()
            await expect(rows).to_have_count(6)
            await expect(page.locator("#live")).to_have_text("Live")
            await expect(page.locator("#problem")).to_be_hidden()


async def test_a_worker_that_goes_away_is_told_and_taken_up_again(page: Page) -> None:
    pipeline = serve_collections({"modes": MODES})
    report(pipeline.collections["modes"], 0, 500, seed=1)
    age, updated = page.locator("#age"), re.compile(r"updated \d+ s ago")
    # One that nobody is given while nobody serves it.
    (port,) = free_ports(1)
    async with serve(pipeline, port=port) as url:
        await open_view(page, url, "modes", "values")
        await expect(page.locator("#live")).to_have_text("Live")
        await expect(age).to_have_text(updated)
    await expect(page.locator("#problem")).to_contain_text("does not answer")
    await expect(page.locator("#age.late")).to_have_text(
        re.compile(r"not current, updated \d+ s ago")
    )
    await asyncio.sleep(0.1)
    async with serve(pipeline, port=port):
        await expect(page.locator("#problem")).to_be_hidden()
        await expect(page.locator("#live")).to_have_text("Live")
        await expect(age).to_have_text(updated)
        await expect(page.locator("#age.late")).to_have_count(0)

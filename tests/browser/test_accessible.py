"""axe-core finds nothing in any state of the page, wide or narrow, light or dark, in two languages.

States: the home page, every view, comparisons, what stands out, the list of keys, the form for a
token, and a report card. Each is looked at on all `SCREENS`, of which two speak German and two
Arabic, and in both themes, which differ in colours alone.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.async_api import Browser, Page, Route

from tests.browser.conftest import PATIENCE_MS
from tests.browser.looking import VIEWS, open_view

pytestmark = pytest.mark.asyncio(loop_scope="session")

AXE = (Path(__file__).parent / "vendor" / "axe" / "axe.min.js").read_text()
SCREENS = {
    "desk": (1440, 900, "ar-EG"),
    "zoomed": (720, 450, "de-DE"),
    "phone": (390, 844, "ar-EG"),
    "narrow": (320, 640, "de-DE"),
}
STATES = (
    *((collection, view, "") for collection, view in VIEWS),
    ("modes", "values", "&window=&compare=before"),
    ("ages", "cumulative", "&window=&compare=before"),
    ("places", "map", "&window=&compare=before"),
    ("ages", "values", "&window=&top=areas"),
)
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
_OTHER_COLOURS = {"runOnly": {"type": "tag", "values": ["cat.color"]}}
"""All that a theme may change."""
_RUN = """([where, more]) => axe.run(where, {resultTypes: ["violations"], ...more})
  .then(found => found.violations
  .map(one => `${one.id}: ${one.nodes.map(node => node.target.join(" ")).join("; ")}`))"""


async def violations(page: Page, *where: str, **options: Any) -> list[str]:
    """Return what axe-core finds, of any impact.

    It looks at the parts of the page that selectors name, or at all of it.
    """
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(AXE)
    found: list[str] = await page.evaluate(_RUN, [[*where] or ["html"], options])
    return found


async def violations_of_themes(page: Page) -> dict[str, list[str]]:
    """Return what axe-core finds in each theme, and assert that the themes differ."""
    found, grounds = dict[str, list[str]](), set()
    for theme in THEMES:
        await page.emulate_media(color_scheme=theme)
        found[theme] = await violations(page, **({} if theme == THEMES[0] else _OTHER_COLOURS))
        grounds.add(await page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert len(grounds) == len(THEMES)
    return {theme: said for theme, said in found.items() if said}


@asynccontextmanager
async def seen_on(browser: Browser, screen: str) -> AsyncIterator[Page]:
    """Give a page on a screen, without motion."""
    width, height, locale = SCREENS[screen]
    context = await browser.new_context(
        locale=locale, viewport={"width": width, "height": height}, reduced_motion="reduce"
    )
    context.set_default_timeout(PATIENCE_MS)
    try:
        yield await context.new_page()
    finally:
        await context.close()


@pytest.mark.parametrize("screen", SCREENS)
async def test_no_state_has_violations(browser: Browser, url: str, screen: str) -> None:
    width, *_ = SCREENS[screen]
    found: dict[str, dict[str, list[str]]] = {}
    async with seen_on(browser, screen) as page:
        for collection, view, more in STATES:
            await open_view(page, url, collection, view, more)
            if view == "privacy":
                await page.locator("#proof .good").wait_for()
            if "compare" in more:
                await page.wait_for_selector("#compared-sum:not(:empty)", state="attached")
            await page.evaluate(
                "() => document.querySelectorAll('details').forEach(d => d.open = true)"
            )
            found[f"{collection} {view} {more}"] = await violations_of_themes(page)
            # Nothing is wider than the screen: whoever cannot scroll sideways misses nothing.
            wide = await page.evaluate("document.documentElement.scrollWidth")
            assert wide <= width, (view, more, width)
    assert {name: said for name, said in found.items() if said} == {}


@pytest.mark.parametrize("screen", SCREENS)
async def test_no_dialog_form_or_card_has_violations(
    browser: Browser, url: str, screen: str
) -> None:
    async with seen_on(browser, screen) as page:
        await open_view(page, url, "modes", "values")
        async with page.expect_download() as saving:
            await page.click("#save-card")
        card = await asyncio.to_thread(Path(await (await saving.value).path()).read_text)
        # On a phone only the key leads there.
        await page.keyboard.press("?")
        await page.wait_for_selector("#keys[open]")
        assert await violations_of_themes(page) == {}

        async def refuse(route: Route) -> None:
            await route.fulfill(status=401, json={"error": "a token is needed"})

        await page.route("**/api/collections", refuse)
        await page.goto("about:blank")
        await page.goto(f"{url}/")
        await page.wait_for_selector("#token-form:not([hidden])")
        assert await violations_of_themes(page) == {}
        await page.goto("about:blank")
        await page.set_content(f"<html lang=en><title>A card</title><main><h1>A card</h1>{card}")
        assert await violations(page) == []


async def test_axe_would_notice(page: Page, url: str) -> None:
    """The check can fail: without its label a field is a critical violation."""
    await open_view(page, url, "modes", "values")
    assert await violations(page) == []
    await page.evaluate(
        "() => { const top = document.querySelector('#top'); top.parentElement.replaceWith(top); }"
    )
    assert any(said.startswith("select-name") for said in await violations(page))

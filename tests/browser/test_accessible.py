"""axe-core finds nothing serious on any view, on a desk in either theme, and on a phone."""

from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.async_api import Browser, Page

from tests.browser.conftest import PATIENCE_MS
from tests.browser.looking import VIEWS, open_view

pytestmark = pytest.mark.asyncio(loop_scope="session")

AXE = (Path(__file__).parent / "vendor" / "axe" / "axe.min.js").read_text()
SCREENS = {"desk": (1280, 900), "phone": (320, 640)}
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
_OTHER_COLOURS = {"runOnly": {"type": "tag", "values": ["cat.color"]}}
"""All that a theme may change."""
_RUN = """([where, more]) => axe.run(where, {resultTypes: ["violations"], ...more})
  .then(found => found.violations
  .filter(one => ["serious", "critical"].includes(one.impact)
    || ["region", "heading-order"].includes(one.id))
  .map(one => `${one.id}: ${one.nodes.map(node => node.target.join(" ")).join("; ")}`))"""


async def violations(page: Page, *where: str, **options: Any) -> list[str]:
    """Return what axe-core finds that is serious or critical, or confuses a reader by ear.

    It looks at the parts of the page that selectors name, or at all of it.
    """
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(AXE)
    found: list[str] = await page.evaluate(_RUN, [[*where] or ["html"], options])
    return found


@pytest.mark.parametrize("screen", SCREENS)
async def test_no_view_has_serious_violations(browser: Browser, url: str, screen: str) -> None:
    width, height = SCREENS[screen]
    context = await browser.new_context(
        viewport={"width": width, "height": height}, reduced_motion="reduce"
    )
    context.set_default_timeout(PATIENCE_MS)
    page = await context.new_page()
    found: dict[str, list[str]] = {}
    grounds = set()
    for collection, view in VIEWS:
        await open_view(page, url, collection, view)
        if view == "privacy":
            await page.locator("#proof .good").wait_for()
        await page.evaluate(
            "() => document.querySelectorAll('details').forEach(d => d.open = true)"
        )
        for theme in THEMES if screen == "desk" else THEMES[:1]:
            await page.emulate_media(color_scheme=theme)
            rules = {} if theme == THEMES[0] else _OTHER_COLOURS
            found[f"{collection} {view} {theme}"] = await violations(page, **rules)
            grounds.add(await page.evaluate("getComputedStyle(document.body).backgroundColor"))
        # Nothing is wider than the screen: whoever cannot scroll sideways misses nothing.
        assert await page.evaluate("document.documentElement.scrollWidth") <= width, (view, width)
    await context.close()
    assert len(grounds) == (len(THEMES) if screen == "desk" else 1)
    assert {name: said for name, said in found.items() if said} == {}


async def test_axe_would_notice(page: Page, url: str) -> None:
    """The check can fail: without its label a field is a critical violation."""
    await open_view(page, url, "modes", "values")
    assert await violations(page) == []
    await page.evaluate(
        "() => { const top = document.querySelector('#top'); top.parentElement.replaceWith(top); }"
    )
    assert any(said.startswith("select-name") for said in await violations(page))

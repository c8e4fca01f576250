"""Everything can be done without a mouse, by keys that a dialog lists, and is told aloud."""

import pytest
from playwright.async_api import BrowserContext, Page, expect

from tests.browser.looking import drawn, open_view
from tests.browser.test_accessible import THEMES, violations

pytestmark = pytest.mark.asyncio(loop_scope="session")

FOCUSED = "document.activeElement.id || document.activeElement.className"


async def tab_to(page: Page, script: str, answer: str) -> None:
    """Press Tab until a script of the element that has the focus answers so."""
    for _ in range(30):
        await page.keyboard.press("Tab")
        if await page.evaluate(script) == answer:
            return
    raise AssertionError(f"{answer} is not in the tab order")


async def test_from_the_first_tab_to_a_cell_of_the_map(page: Page, url: str) -> None:
    await open_view(page, url, "modes", "values")
    await page.keyboard.press("Tab")
    assert await page.evaluate(FOCUSED) == "skip"
    await tab_to(page, FOCUSED, "collection")
    # One key: of several, those that come late would begin another word.
    await page.keyboard.type("p")
    await expect(page.locator("#tab-map")).to_be_visible()
    await tab_to(page, FOCUSED, "tab-values")
    await page.keyboard.press("ArrowRight")
    assert await page.evaluate(FOCUSED) == "tab-map"
    await expect(page.locator("#tab-map")).to_have_attribute("aria-selected", "true")
    await expect(page.locator("#map-sum")).not_to_be_empty()
    await tab_to(page, FOCUSED, "map-frame")
    await expect(page.locator("#tip")).to_contain_text("Place [0, 0]")
    for key, place in {
        "ArrowDown": "[1, 0]",
        "ArrowRight": "[1, 1]",
        "PageDown": "[11, 1]",
        "End": "[11, 349]",
        "ArrowUp": "[10, 349]",
        "Home": "[10, 0]",
        "PageUp": "[0, 0]",
    }.items():
        await page.keyboard.press(key)
        await expect(page.locator("#tip strong").first).to_have_text(f"Place {place}")


async def test_tabs_turn_around_at_their_ends(page: Page, url: str) -> None:
    await open_view(page, url, "ages", "values")
    await page.focus("#tab-values")
    for key, tab in (
        ("ArrowLeft", "tab-health"),
        ("ArrowRight", "tab-values"),
        ("End", "tab-health"),
        ("ArrowLeft", "tab-privacy"),
        ("Home", "tab-values"),
        ("ArrowRight", "tab-cumulative"),
    ):
        await page.keyboard.press(key)
        assert await page.evaluate(FOCUSED) == tab
    await expect(page.locator("[role=tabpanel]:visible")).to_have_count(1)
    assert await page.locator("[role=tab][tabindex='0']").count() == 1


async def test_what_is_said_aloud_is_the_state_and_not_every_number(page: Page, url: str) -> None:
    await open_view(page, url, "modes", "values")
    said = page.locator("#announce[aria-live=polite]")
    await expect(said).to_have_text("Window Sat, Nov 21, 10:07 – 10:08 UTC of modes is open.")
    await page.focus("#older")
    await page.keyboard.press("Enter")
    await expect(said).to_have_text(
        "Window Sat, Nov 21, 10:06 – 10:07 UTC of modes is final with 6,226 reports."
    )
    assert await page.locator("#value-rows").evaluate("t => t.closest('[aria-live]')") is None


async def test_charts_have_names_and_tables(page: Page, url: str) -> None:
    for view, chart in (("time", "#time-charts"), ("cumulative", "#cdf-chart")):
        await open_view(page, url, "ages", view)
        assert await page.get_attribute(chart, "role") == "application"
        label = await page.get_attribute(chart, "aria-label") or ""
        assert "arrow keys move" in label
        assert "below" in label


async def test_the_theme_is_chosen_and_kept(page: Page, url: str) -> None:
    await open_view(page, url, "modes", "values")
    ground = "getComputedStyle(document.body).backgroundColor"
    await page.emulate_media(color_scheme="light")
    light = await page.evaluate(ground)
    await page.focus("#theme")
    await page.keyboard.press("Enter")
    await page.keyboard.press("Enter")
    await expect(page.locator("#theme")).to_have_text("☾ dark")
    dark = await page.evaluate(ground)
    assert dark != light
    await page.reload()
    assert await page.evaluate(ground) == dark
    await page.keyboard.press("Tab")
    await page.click("#theme")
    await expect(page.locator("#theme")).to_have_text("◐ auto")
    assert await page.evaluate(ground) == light


FINAL = "2026-11-21T10:05:00Z"
_FOCUSED = "document.activeElement.id"
_COPIED = "navigator.clipboard.readText()"


async def test_c_compares_with_the_window_before_and_ends_that(page: Page, url: str) -> None:
    await open_view(page, url, "modes", "values", f"&window={FINAL}")
    compared, said = page.locator("#strip .compared"), page.locator("#announce")
    await page.keyboard.press("c")
    await expect(compared).to_have_attribute("data-to", "2026-11-21T10:04:00Z")
    await expect(page.locator("#value-rows th.change")).to_be_visible()
    await expect(said).to_contain_text("reports, compared with Sat, Nov 21, 10:04 – 10:05.")
    # In a list of choices letters choose, and a browser's own keys stay its own.
    await page.focus("#top")
    await page.keyboard.press("c")
    await page.focus("#tab-values")
    await page.keyboard.press("Alt+c")
    assert "compare=before" in page.url
    await page.keyboard.press("Shift+C")
    await expect(compared).to_have_count(0)
    await expect(said).not_to_contain_text("compared")
    await page.go_back()
    await expect(compared).to_have_count(1)


async def test_where_nothing_is_compared_c_does_nothing(page: Page, url: str) -> None:
    await open_view(page, url, "modes", "values")
    for button in ("#tab-time", "#all"):
        await page.click(button)
        await drawn(page, "time" if button == "#tab-time" else "overview")
        await page.keyboard.press("c")
        assert "compare" not in page.url
    await open_view(page, url, "modes", "values", "&top=areas")
    await expect(page.locator("#compare")).to_be_disabled()
    await page.keyboard.press("c")
    assert "compare" not in page.url
    await open_view(page, url, "modes", "health", "&compare=before")
    await expect(page.locator("#strip .compared")).to_have_count(0)
    await page.click("#tab-values")
    await expect(page.locator("#strip .compared")).to_have_count(1)


async def test_c_opens_the_choice_where_no_window_is_before(page: Page, url: str) -> None:
    await open_view(page, url, "modes", "values", "&window=2026-11-21T10:00:00Z")
    assert await page.locator("#compare option[value=before]").count() == 0
    await page.keyboard.press("c")
    assert await page.evaluate(_FOCUSED) == "compare"
    assert "compare" not in page.url


@pytest.mark.parametrize(
    ("collection", "view", "picker"),
    [
        ("modes", "values", "search"),
        ("modes", "time", "add-line"),
        ("spots", "time", "collection"),
        ("places", "map", "measure"),
        ("modes", "health", "collection"),
    ],
)
async def test_a_slash_picks(page: Page, url: str, collection: str, view: str, picker: str) -> None:
    await open_view(page, url, collection, view, "&lines=%5B%22walk%22%5D")
    await page.keyboard.press("/")
    assert await page.evaluate(_FOCUSED) == picker


async def test_a_question_mark_lists_the_keys_and_escape_goes_back(page: Page, url: str) -> None:
    await open_view(page, url, "modes", "values", f"&window={FINAL}")
    dialog = page.locator("dialog#keys")
    await page.focus("#older")
    await page.keyboard.press("?")
    await expect(dialog).to_be_visible()
    listed = await dialog.locator("kbd").all_inner_texts()
    shown = await page.evaluate(
        "[...document.querySelectorAll('[aria-keyshortcuts]')].map(one => one.ariaKeyShortcuts)"
    )
    assert set(shown) == {"C", "/", "P", "?"}
    assert {*shown, "←", "Enter", "+", "−", "0", "Esc"} <= set(listed)
    for theme in THEMES:
        await page.emulate_media(color_scheme=theme)
        assert await violations(page) == []
    await page.keyboard.press("p")
    await page.keyboard.press("c")
    await page.keyboard.press("Escape")
    await expect(dialog).to_be_hidden()
    assert await page.evaluate(_FOCUSED) == "older"
    await expect(page.locator("#pause")).to_have_attribute("aria-pressed", "false")
    assert "compare" not in page.url


async def test_keys_can_be_turned_off(page: Page, url: str) -> None:
    """As whoever speaks to a computer needs it: words would press them."""
    await open_view(page, url, "modes", "values", f"&window={FINAL}")
    await page.click("#list-keys")
    await page.uncheck("#letters")
    await page.click("#close-keys")
    assert await page.evaluate(_FOCUSED) == "list-keys"
    await page.reload()
    await drawn(page, "values")
    for key in "c/p?":
        await page.keyboard.press(key)
    assert await page.evaluate(_FOCUSED) == ""
    await expect(page.locator("dialog#keys")).to_be_hidden()
    await expect(page.locator("#pause")).to_have_attribute("aria-pressed", "false")
    assert "compare" not in page.url


async def test_a_copied_link_opens_what_is_shown(
    context: BrowserContext, page: Page, url: str
) -> None:
    await context.grant_permissions(["clipboard-read", "clipboard-write"], origin=url)
    await page.goto(f"{url}/#collection=modes&compare=before&top=10")
    await drawn(page, "values")
    words, before = page.locator("#state-words"), page.url
    shown = await words.inner_text()
    await page.click("#copy")
    await expect(page.locator("#copied[role=status]")).to_have_text("Copied")
    assert page.url == before
    copied: str = await page.evaluate(_COPIED)
    # The page follows the newest final window, and compares it with the one before it.
    for part in ("view=values", "window=2026-11-21T10%3A06", "compare=2026-11-21T10%3A05"):
        assert part in copied
    assert "top=10" in copied
    await page.goto("about:blank")
    await page.goto(copied)
    await drawn(page, "values")
    assert await words.inner_text() == shown
    await expect(page.locator("#strip .compared")).to_have_count(1)
    await expect(page.locator("#copied")).to_be_empty()


async def test_where_nothing_can_be_copied_the_address_is_shown_selected(
    page: Page, url: str
) -> None:
    await page.add_init_script("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    await open_view(page, url, "modes", "values", f"&window={FINAL}")
    await page.click("#copy")
    field = page.locator("#address")
    await expect(field).to_be_focused()
    address = await field.input_value()
    assert address.startswith(f"{url}/#")
    assert await page.evaluate("getSelection().toString()") == address
    assert await violations(page) == []
    await page.keyboard.press("Escape")
    await expect(field).to_be_hidden()
    assert await page.evaluate(_FOCUSED) == "copy"
    await expect(page.locator("#copied")).to_be_empty()

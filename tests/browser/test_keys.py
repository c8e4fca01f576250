"""Keys act everywhere but in fields and dialogs, a dialog lists them, and an address is copied."""

import pytest
from playwright.async_api import BrowserContext, Page, expect

from tests.browser.looking import drawn, open_view
from tests.browser.test_accessible import THEMES, violations

pytestmark = pytest.mark.asyncio(loop_scope="session")

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

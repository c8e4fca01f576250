"""What a page shows, for comparing with what the API answers."""

from collections.abc import Callable
from typing import Any

from aiohttp import ClientSession
from playwright.async_api import Page, Route

from ldpstream.agents.web.page import load_modules

# Every view, with every part that some collection has.
VIEWS = (
    ("modes", "values"),
    ("ages", "cumulative"),
    ("ages", "time"),
    ("places", "map"),
    ("places", "privacy"),
    ("smokers", "values"),
    ("modes", "health"),
    ("modes", "overview"),
)
_FILLED = {"map": "#map-sum:not(:empty)", "privacy": "#settings dd"}
_ROWS = """
table => [...table.tBodies[0].rows].map(row => [...row.cells].map(cell => {
  const number = cell.querySelector("data");
  return number ? Number(number.value) : cell.className === "chart" ? "chart" : cell.textContent;
}))
"""


async def open_view(page: Page, url: str, collection: str, view: str, more: str = "") -> None:
    """Open a view and wait until it is drawn: of the open window, unless `more` names another."""
    more = more if "&window" in more else f"{more}&window=live"
    await page.goto("about:blank")
    await page.goto(f"{url}/#collection={collection}&view={view}{more}")
    await drawn(page, view)


async def open_modules(page: Page, url: str) -> None:
    """Open a page that can import single modules, such as `/js/format.js`."""

    async def module(route: Route) -> None:
        path = route.request.url.removeprefix(f"{url}/")
        await route.fulfill(body=load_modules()[path], content_type="text/javascript")

    await page.route(f"{url}/js/**", module)
    await page.goto(url)


async def change_answers(page: Page, path: str, change: Callable[[Any], None]) -> None:
    """Give the page other answers than the worker's: `change` changes their content in place."""

    async def changed(route: Route) -> None:
        answer = await route.fetch()
        content = await answer.json()
        change(content)
        await route.fulfill(response=answer, json=content)

    await page.route(path, changed)


async def drawn(page: Page, view: str) -> None:
    """Wait until a view shows numbers of the worker."""
    if view != "overview":  # It is of no single window.
        await page.wait_for_selector("#facts:not([hidden])")
    await page.wait_for_selector(f"#{view} {_FILLED.get(view, 'tbody tr')}", state="attached")


async def rows(page: Page, table: str) -> list[list[Any]]:
    """Return the cells of a table: exact numbers where a cell has one, else its text."""
    found: list[list[Any]] = await page.locator(table).evaluate(_ROWS)
    return found


async def ask(url: str, path: str, **query: Any) -> Any:
    """Return an answer of the API; a list asks for a parameter several times."""
    pairs = [
        (name, str(one))
        for name, value in query.items()
        for one in (value if isinstance(value, list) else [value])
    ]
    async with (
        ClientSession() as session,
        session.get(f"{url}/api/collections/{path}", params=pairs) as answer,
    ):
        assert answer.status == 200, await answer.text()
        return await answer.json()


async def lines(page: Page) -> list[str]:
    """Return the names of the lines that are drawn over time."""
    buttons = page.locator("#lines button")
    return [str(await one.get_attribute("data-line")) for one in await buttons.all()]


async def drawn_windows(page: Page) -> list[dict[str, list[Any]]]:
    """Return what the table over time says, newest first: each line's numbers, and the window's."""
    names = ["", *await lines(page)]
    found = []
    for row in await rows(page, "#window-rows"):
        parts = [row[:4], *(row[at : at + 3] for at in range(4, len(row), 3))]
        found.append(dict(zip(names, parts, strict=True)))
    return found


def numbers(entry: dict[str, Any], *names: str) -> list[Any]:
    """Return fields of an entry in order."""
    return [entry[name] for name in names]


def within(entry: dict[str, Any]) -> dict[str, Any]:
    """Return a share in its bounds, where the page shows it, and the count that goes with it."""
    share = min(max(entry["share"], entry["low"]), entry["high"])
    if share == entry["share"]:
        return entry
    return {**entry, "share": share, "count": entry["count"] * share / entry["share"]}
